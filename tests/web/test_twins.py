"""The tests of the npm workspace: the port passes the conformance suite, and the page its own tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from phase_rppg.web.server import CONTENT_POLICY

WEB = Path(__file__).parent.parent.parent / "web"


def test_the_port_passes_the_conformance_suite(npm: str) -> None:
    done = subprocess.run(
        [npm, "test", "--silent"],
        cwd=WEB,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_exported_page_carries_the_policy_of_the_server() -> None:
    html = (WEB / "app" / "index.html").read_text(encoding="utf-8")
    policy = CONTENT_POLICY.replace("; frame-ancestors 'none'", "")  # not allowed in a page
    assert policy in " ".join(html.split())


def test_the_lock_file_names_no_host() -> None:
    assert "://" not in "".join(
        line for line in (WEB / "package-lock.json").read_text().splitlines() if "resolved" in line
    )
