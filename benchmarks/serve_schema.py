"""Send requests that schemathesis generates from /openapi.json to a running `phase serve`.

    phase serve --port 8421 &
    python benchmarks/serve_schema.py --url http://127.0.0.1:8421 [--out benchmarks/results/serve_schema.json]

Each operation gets a bounded number of requests. One check is left out: that valid data are accepted. A
schema cannot say which bytes are a video, so that random bodies are refused with 422.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8421")
    parser.add_argument("--examples", type=int, default=30, help="requests per operation and phase")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if urlsplit(options.url).hostname not in ("127.0.0.1", "localhost"):
        raise SystemExit("only a server on this machine is tested")
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{options.url}/openapi.json",
        "--max-examples", str(options.examples), "--seed", "1", "--workers", "1",
        "--exclude-checks", "positive_data_acceptance", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout[-6000:], done.stderr[-2000:])
    if options.out:
        cases = re.search(r"(\d+) generated(?:, (.*))?", done.stdout)
        record = {
            "command": "python benchmarks/serve_schema.py",
            "passed": done.returncode == 0,
            "test_cases": int(cases[1]) if cases else None,
            "summary": done.stdout.strip().splitlines()[-12:],
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
