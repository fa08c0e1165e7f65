"""The background colour is continuous when faces move, and still shows the flicker of the light."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.session.colour_continuity import Background, ColourContinuity
from phase_rppg.signal import quality
from phase_rppg.types import ByteArray

FACE = (60.0, 40.0, 40.0, 50.0)


def background_picture(light: float = 1.0) -> ByteArray:
    """A background that is much brighter on the right; (120,160,3)."""
    across = np.linspace(40, 180, 160)[None, :, None] * np.array([1.0, 0.9, 0.7])
    return np.broadcast_to(np.rint(across * light), (120, 160, 3)).astype(np.uint8)


def moved(by: float) -> tuple[float, float, float, float]:
    return (FACE[0] + by, *FACE[1:])


def test_a_face_that_moves_causes_no_step_in_the_background() -> None:
    background = Background()
    background.update_region(background_picture(), [FACE], 0.0)
    before = background.sample(background_picture(), 0.0)
    background.update_region(background_picture(), [moved(40)], 0.0)
    after = background.sample(background_picture(), 0.0)
    np.testing.assert_allclose(np.array(after, float), np.array(before, float), rtol=1e-5)


def test_flicker_is_visible_in_the_background_while_the_face_moves() -> None:
    background, fps, bpm = Background(), 30.0, 90.0
    rows = []
    for i in range(300):
        rgb = background_picture(1 + 0.02 * np.sin(2 * np.pi * bpm / 60 * i / fps))
        if i % 100 == 0:
            background.update_region(rgb, [moved(i / 5)], i / fps)
        rows.append(background.sample(rgb, i / fps))
    trace = np.array(rows, float)  # (T,3)
    assert quality.shared_line(trace / trace.mean(0), fps, bpm, full_scale=0.02) > 0.9


def test_there_is_no_background_if_faces_fill_the_picture() -> None:
    background = Background()
    assert background.sample(background_picture(), 0.0) is None
    background.update_region(background_picture(), [(0.0, 0.0, 160.0, 120.0)], 0.0)
    assert background.sample(background_picture(), 0.0) is None


def test_the_scale_decays_slowly() -> None:
    continuity = ColourContinuity(0.0)
    continuity.join(np.full(3, 110.0), np.full(3, 100.0))
    levels = [float(continuity.scale(np.full(3, 100.0), t)[0]) for t in np.arange(0.0, 60.0, 1 / 30)]
    assert levels[0] == pytest.approx(110)
    assert levels[-1] == pytest.approx(100, abs=1)
    assert np.abs(np.diff(levels)).max() < 0.02
