"""The background's colour goes on without a step when faces move, and a lamp shows in it all the same."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.session.colour_continuity import Background, ColourContinuity
from phase_rppg.signal import quality
from phase_rppg.types import ByteArray

FACE = (60.0, 40.0, 40.0, 50.0)


def wall(light: float = 1.0) -> ByteArray:
    """A wall that is much brighter on the right; (120,160,3)."""
    across = np.linspace(40, 180, 160)[None, :, None] * np.array([1.0, 0.9, 0.7])
    return np.broadcast_to(np.rint(across * light), (120, 160, 3)).astype(np.uint8)


def moved(by: float) -> tuple[float, float, float, float]:
    return (FACE[0] + by, *FACE[1:])


def test_a_face_that_moves_leaves_no_step_in_the_background() -> None:
    background = Background()
    background.place(wall(), [FACE], 0.0)
    before = background.measure(wall(), 0.0)
    background.place(wall(), [moved(40)], 0.0)
    after = background.measure(wall(), 0.0)
    np.testing.assert_allclose(np.array(after, float), np.array(before, float), rtol=1e-5)


def test_a_lamp_is_seen_in_the_background_while_the_face_moves() -> None:
    background, fps, bpm = Background(), 30.0, 90.0
    rows = []
    for i in range(300):
        rgb = wall(1 + 0.02 * np.sin(2 * np.pi * bpm / 60 * i / fps))
        if i % 100 == 0:
            background.place(rgb, [moved(i / 5)], i / fps)
        rows.append(background.measure(rgb, i / fps))
    trace = np.array(rows, float)  # (T,3)
    assert quality.shared_line(trace / trace.mean(0), fps, bpm, full_scale=0.02) > 0.9


def test_where_faces_fill_the_picture_there_is_no_background() -> None:
    background = Background()
    assert background.measure(wall(), 0.0) is None
    background.place(wall(), [(0.0, 0.0, 160.0, 120.0)], 0.0)
    assert background.measure(wall(), 0.0) is None


def test_the_seam_fades() -> None:
    seam = ColourContinuity(0.0)
    seam.join(np.full(3, 110.0), np.full(3, 100.0))
    levels = [float(seam.scale(np.full(3, 100.0), t)[0]) for t in np.arange(0.0, 60.0, 1 / 30)]
    assert levels[0] == pytest.approx(110)
    assert levels[-1] == pytest.approx(100, abs=1)
    assert np.abs(np.diff(levels)).max() < 0.02  # slowly
