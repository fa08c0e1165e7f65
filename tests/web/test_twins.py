"""The page's own code gives the answers that Python gives: vitest, on goldens written just now."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from phase_rppg.web.server import CONTENT_POLICY

WEB = Path(__file__).parent.parent.parent / "web"


def test_python_and_the_page_agree(npm: str, tmp_path: Path) -> None:
    goldens = tmp_path / "goldens.json"
    subprocess.run([sys.executable, str(Path(__file__).parent / "goldens.py"), str(goldens)], check=True)
    done = subprocess.run(
        [npm, "test", "--silent"],
        cwd=WEB,
        env={**os.environ, "PHASE_GOLDENS": str(goldens), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_exported_page_carries_the_policy_of_the_server() -> None:
    html = (WEB / "index.html").read_text(encoding="utf-8")
    policy = CONTENT_POLICY.replace("; frame-ancestors 'none'", "")  # not allowed in a page
    assert policy in " ".join(html.split())


def test_the_lock_file_names_no_host() -> None:
    assert "://" not in "".join(
        line for line in (WEB / "package-lock.json").read_text().splitlines() if "resolved" in line
    )
