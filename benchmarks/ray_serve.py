"""Run deploy/ray_serve.py on a local Ray cluster, and compare its answer with `phase measure --json`.

    python benchmarks/ray_serve.py --out benchmarks/results/ray_serve.json

One replica serves on the loopback interface. Requests: without a token, a clip with a true rate, a body that
is no video, and the counters. The packages are those of `pip install "phase-rppg[serve]" "ray[serve]" httpx`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "a-token-of-this-run-only"
PATIENCE_S = "600"  # on a busy machine; Ray Serve gives up on a proxy after 5 s


def prepare() -> None:
    """Set what Ray and the example read at import, in this process and in those of the cluster."""
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]),
        "PHASE_SERVE_TOKEN": TOKEN, "PHASE_SERVE_REPLICAS": "1",
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": PATIENCE_S,
        "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": PATIENCE_S,
    }  # fmt: skip
    sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]


def expected_document(clip: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "phase_rppg", "measure", str(clip), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def serve_app(port: int) -> Any:
    """Start a cluster of this machine and the example on it; return the module `ray`."""
    import ray
    from ray import serve

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, _node_ip_address="127.0.0.1")
    # Ray Serve waits 60 s for its proxy, which a busy machine exceeds. `wait_until_healthy` waits longer.
    with contextlib.suppress(TimeoutError):
        serve.start(http_options={"host": "127.0.0.1", "port": port})
    from deploy.ray_serve import app

    serve.run(app)
    return ray


def wait_until_healthy(client: Any) -> None:
    import httpx

    end_s = time.monotonic() + float(PATIENCE_S)
    while time.monotonic() < end_s:
        with contextlib.suppress(httpx.TransportError):
            if client.get("/healthz", timeout=30).status_code == 200:
                return
        time.sleep(1)
    raise SystemExit(f"the service did not answer within {PATIENCE_S} s")


def ask(url: str, clip: Path) -> dict[str, Any]:
    """Send the requests and return what was answered."""
    import httpx

    video = {"Content-Type": "video/mp4"}
    token = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=url, timeout=float(PATIENCE_S)) as client:
        wait_until_healthy(client)
        refused = client.post("/v1/measure", content=clip.read_bytes(), headers=video)
        start_s = time.monotonic()
        answer = client.post("/v1/measure", content=clip.read_bytes(), headers=video | token)
        answer_s = time.monotonic() - start_s
        broken = client.post("/v1/measure", content=b"no video", headers=video | token)
        metrics = client.get("/metrics", headers=token).text
        health = client.get("/healthz").json()
    return {
        "status_without_token": refused.status_code,
        "status": answer.status_code,
        "status_of_no_video": broken.status_code,
        "health": health["status"],
        "document": answer.json(),
        "answer_s": round(answer_s, 2),
        "videos_counted": 'phase_videos_total{reading="yes"} 1' in metrics,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    prepare()
    from cli.filmset import FilmSet

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="phase-ray-serve-") as name:
        clip = FilmSet(Path(name)).face()
        expected = expected_document(clip)
        ray = serve_app(port)
        try:
            found = ask(f"http://127.0.0.1:{port}", clip)
        finally:
            ray.shutdown()
    document = found.pop("document")
    same = document == expected | {"video": document.get("video")}
    bpm = document["faces"][0]["summary"]["bpm"] if "faces" in document else None
    statuses = (found["status_without_token"], found["status"], found["status_of_no_video"])
    passed = same and statuses == (401, 200, 422) and found["videos_counted"]
    made = {
        "command": "python benchmarks/ray_serve.py", "ray": ray.__version__, **found, "bpm": bpm,
        "equal_to_phase_measure": same, "passed": passed,
    }  # fmt: skip
    text = json.dumps(made, indent=1) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    if not passed:
        raise SystemExit("the service did not answer as `phase serve` does")


if __name__ == "__main__":
    main()
