"""The clock of PURE: time 0 is the first picture, wherever the oximeter begins."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.datasets import pure
from phase_rppg.datasets.base import Found

START_NS = 1_392_643_993_642_815_000


def recording(root: Path, offset_s: float, names_hold_times: bool) -> Found:
    """Ten pictures at 30 Hz and 30 oximeter rows at 60 Hz that begin `offset_s` after the first picture."""
    stamps_ns = [START_NS + round(index / 30 * 1e9) for index in range(10)]
    for index, stamp_ns in enumerate(stamps_ns):
        (root / (f"Image{stamp_ns}.png" if names_hold_times else f"Image{index:03d}.png")).touch()
    rows = [
        {"Timestamp": START_NS + round((offset_s + index / 60) * 1e9), "Value": {"waveform": index % 7}}
        for index in range(30)
    ]
    label = root / "01-01.json"
    pictures = [{"Timestamp": stamp_ns} for stamp_ns in stamps_ns]
    label.write_text(json.dumps({"/FullPackage": rows, "/Image": pictures}))
    return Found("01", "01-01", root, label)


@pytest.mark.parametrize("names_hold_times", [True, False], ids=["names", "json"])
@pytest.mark.parametrize("offset_s", [-1.5, 0.8])
def test_reference_times_count_from_the_first_picture(
    tmp_path: Path, offset_s: float, names_hold_times: bool
) -> None:
    reference = pure.read_reference(recording(tmp_path, offset_s, names_hold_times))
    np.testing.assert_allclose(reference.t_s, offset_s + np.arange(30) / 60, atol=1e-6)
    np.testing.assert_array_equal(reference.values, np.arange(30) % 7)
