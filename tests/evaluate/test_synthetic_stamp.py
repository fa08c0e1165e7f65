"""The data stamp is legible on every figure."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from phase_rppg.evaluate import plots, synthetic_stamp

TRUTH = np.array([60.0, 70.0, 80.0])


@pytest.mark.parametrize(
    "figure",
    [
        plots.scatter(TRUTH + 1, TRUTH),
        plots.scatter(TRUTH + 1, TRUTH, groups=["a", "b", "c"]),
        plots.bland_altman(TRUTH + np.array([1, 2, 0]), TRUTH, groups=["a", "b", "c"]),
    ],
    ids=["plain", "with a legend below", "Bland–Altman"],
)
def test_nothing_overlaps_the_stamp(figure: Figure) -> None:
    synthetic_stamp.draw_stamp(figure, synthetic_stamp.stamp_text([True]))
    figure.draw_without_rendering()
    (written,) = (text for text in figure.texts if "made by the generator" in text.get_text())
    box = written.get_window_extent()
    others = [*figure.legends, *figure.axes]
    assert not any(box.overlaps(other.get_tightbbox()) for other in others)
    assert any(text.get_text() == "FAKE DATA" for text in figure.texts)


@pytest.mark.parametrize(
    ("fake", "words"),
    [([True, True], "FAKE DATA: made"), ([True, False], "FAKE DATA mixed"), ([False], "REAL DATA")],
)
def test_one_synthetic_recording_changes_the_stamp(fake: list[bool], words: str) -> None:
    assert synthetic_stamp.stamp_text(fake).startswith(words)
