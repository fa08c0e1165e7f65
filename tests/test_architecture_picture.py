"""The committed picture of the architecture shows the imports of the sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_committed_picture_is_current(tmp_path: Path) -> None:
    drawn = tmp_path / "architecture.svg"
    subprocess.run([sys.executable, ROOT / "scripts" / "architecture-picture", "--out", drawn], check=True)
    committed = (ROOT / "docs" / "images" / "architecture.svg").read_text(encoding="utf-8")
    assert drawn.read_text(encoding="utf-8") == committed, "run scripts/architecture-picture"
