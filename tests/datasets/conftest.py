"""The folder of real recordings, if there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real recordings: $PHASE_REAL_DATA, or `shared/data/real` beside the project."""
    here = Path(__file__).resolve().parents[2]
    place = Path(os.environ.get("PHASE_REAL_DATA") or here.parent / "shared" / "data" / "real")
    if not place.is_dir():
        pytest.skip("no real recordings: set PHASE_REAL_DATA to a folder with ubfc_rppg/ and pure/")
    return place
