"""Small, easy worlds that render quickly."""

from __future__ import annotations

import pytest

from phase_rppg.synth.world import World, parse

EASY = """
[pulse]
bpm = 72.0
rsa = 0.0
hrv_s = 0.0
drift_bpm = 0.0
amplitude = 0.03
blood_spread = 0.0
[motion]
kind = "fixed"
[camera]
noise = 0.6
skin_level = 0.4
[frame]
face_px = 48.0
[crop]
offset = 0.0
jitter = 0.0
"""


@pytest.fixture(scope="session")
def easy() -> World:
    return parse(EASY, "easy")
