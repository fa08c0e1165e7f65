"""Comparison with the reference: every window counts once, with and without the gate."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from phase_rppg.cli.evaluate import _table
from phase_rppg.errors import ArgumentError, RecordingError
from phase_rppg.evaluate import session_evaluation
from phase_rppg.fileio import dump_json
from phase_rppg.session.results import FaceResult, Result, WindowResult
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, NoReading, Quality, Reason, Recording, Waveform

T_S = np.arange(0, 30, 1 / 60)
REFERENCE = Waveform(np.sin(2 * np.pi * 1.2 * T_S), 60.0, 0.0, np.ones(len(T_S), bool))  # 72 bpm
QUALITY = dict.fromkeys(Quality.__dataclass_fields__, 1.0)


def recording(reference: Waveform = REFERENCE) -> Recording:
    return Recording("folder", "anna", "anna", None, reference, {"light": "day"})  # type: ignore[arg-type]


def window(index: int, bpm: float, *, shown: bool, face_px: float = 100.0) -> WindowResult:
    start_s, end_s = float(index), index + 10.0
    peak = Peak(bpm, 0.5, 3.0, 1.0)
    quality = Quality(**{**QUALITY, "face_px": face_px})
    if shown:
        return WindowResult(0, start_s, end_s, Estimate(bpm, bpm, bpm, 0.9, start_s, end_s), peak, quality)
    return WindowResult(0, start_s, end_s, NoReading(Reason.MOTION, start_s, end_s, 0.3), peak, quality)


def result(*faces: list[WindowResult], seconds: float = 30.0) -> Result:
    t_s = np.arange(0, seconds, 1 / 30)
    wave = Waveform(np.sin(2 * np.pi * 1.2 * t_s - 0.3), 30.0, 0.0, np.ones(len(t_s), bool))
    summary = NoReading(Reason.NO_PULSE, 0.0, seconds)
    people = tuple(
        FaceResult(i, summary, tuple(windows), wave, np.zeros(0), None, 100.0, seconds)
        for i, windows in enumerate(faces)
    )
    return Result("anna.mp4", "pos", seconds, 30.0, len(t_s), people, None, ())


def test_errors_and_coverage_equal_the_constructed_ones() -> None:
    windows = [window(i, 72.0 if i % 2 else 82.0, shown=bool(i % 2)) for i in range(21)]
    compared = session_evaluation.compare_with_reference(recording(), result(windows), 10.0, 1.0)
    scores = session_evaluation.score(compared.rows)
    assert (scores.windows, scores.found, scores.shown) == (21, 21, 10)
    assert scores.coverage == pytest.approx(10 / 21)
    assert scores.ungated is not None
    assert scores.ungated.mae.value == pytest.approx(110 / 21, abs=0.05)
    assert scores.gated is not None
    assert scores.gated.mae.value == pytest.approx(0, abs=0.05)
    assert {row.reason for row in compared.rows if not row.shown} == {"MOTION"}


def test_a_window_without_a_face_reduces_the_coverage_only() -> None:
    compared = session_evaluation.compare_with_reference(
        recording(), result([window(3, 72.0, shown=True)]), 10.0, 1.0
    )
    scores = session_evaluation.score(compared.rows)
    assert (scores.windows, scores.found, scores.shown) == (21, 1, 1)
    assert compared.rows[0].reason == "NO_FACE"
    nobody = session_evaluation.score(
        session_evaluation.compare_with_reference(recording(), result(), 10.0, 1.0).rows
    )
    assert (nobody.windows, nobody.ungated, nobody.gated) == (21, None, None)


def test_the_larger_of_two_faces_is_evaluated() -> None:
    large = [window(0, 72.0, shown=True)]
    small = [window(0, 120.0, shown=True, face_px=30.0), window(1, 72.0, shown=True, face_px=30.0)]
    rows = session_evaluation.compare_with_reference(recording(), result(small, large), 10.0, 1.0).rows
    assert rows[0].bpm == 72.0
    assert rows[1].bpm == 72.0


def test_windows_without_a_reference_do_not_count() -> None:
    valid = T_S < 12
    broken = Waveform(REFERENCE.values, 60.0, 0.0, valid)
    windows = [window(i, 72.0, shown=True) for i in range(21)]
    rows = session_evaluation.compare_with_reference(recording(broken), result(windows), 10.0, 1.0).rows
    assert len(rows) < 6
    with pytest.raises(RecordingError, match="no window of 40 s"):
        session_evaluation.compare_with_reference(recording(), result(windows), 40.0, 1.0)


def test_the_whole_waveform_is_compared() -> None:
    whole = session_evaluation.compare_with_reference(
        recording(), result([window(0, 72.0, shown=True)]), 10.0, 1.0
    ).whole
    assert whole is not None
    assert whole.bpm == pytest.approx(72, abs=0.1)
    assert whole.macc > 0.95


def evaluation() -> session_evaluation.Evaluation:
    windows = [window(i, 75.0, shown=i < 5) for i in range(21)]
    one = session_evaluation.compare_with_reference(recording(), result(windows), 10.0, 1.0)
    problem = RecordingError("bert", "the video is missing")
    return session_evaluation.Evaluation("folder", "pos", 10.0, 1.0, (one,), (problem,))


def test_refused_rates_are_null_in_the_document() -> None:
    gated = session_evaluation.as_json(evaluation())
    rows = gated["recordings"][0]["windows"]
    assert [row["bpm"] for row in rows[:6]] == [75.0] * 5 + [None]
    every = session_evaluation.as_json(evaluation(), ungated=True)["recordings"][0]["windows"]
    assert all(row["bpm"] == 75.0 for row in every)
    assert gated["excluded"] == [{"name": "bert", "problem": "the video is missing"}]
    assert gated["conditions"]["light"]["day"]["count"] == 21
    assert gated["mean_of_recordings"]["ungated_mae"] == pytest.approx(3, abs=0.05)
    dump_json(gated)


def person(name: str, light: str, bpm: float) -> session_evaluation.RecordingResult:
    made = session_evaluation.compare_with_reference(
        recording(), result([window(i, bpm, shown=bool(i % 2)) for i in range(21)]), 10.0, 1.0
    )
    return replace(made, name=name, subject=name, conditions={"light": light})


def test_the_interval_over_subjects_lies_between_the_best_and_the_worst() -> None:
    people = (person("a", "day", 72.0), person("b", "lamp", 76.0), person("c", "lamp", 80.0))
    whole = session_evaluation.Evaluation("folder", "pos", 10.0, 1.0, people, ())
    for shown in (False, True):
        found = session_evaluation.mae_interval(whole, shown=shown)
        assert found is not None
        assert -0.05 <= found.low < 4 < found.high <= 8.05
    assert session_evaluation.mae_interval(replace(whole, results=people[:1]), shown=False) is None
    assert session_evaluation.as_json(whole)["mae_interval"]["gated"]["high"] <= 8.05


def test_the_table_has_a_row_for_each_condition() -> None:
    people = (person("a", "day", 72.0), person("b", "lamp", 76.0))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(_table(session_evaluation.Evaluation("folder", "pos", 10.0, 1.0, people, ())))
    lines = console.export_text().splitlines()
    day, lamp = (next(line for line in lines if f"light: {light}" in line) for light in ("day", "lamp"))
    assert "0.0" in day
    assert "4.0" in lamp
    assert any("95 % interval over subjects" in line for line in lines)


def test_single_videos_share_a_reference_or_have_one_each() -> None:
    videos = [Path("a.mp4"), Path("b.mp4")]
    assert [f.reference for f in session_evaluation.pair_videos(videos, [Path("r.json")])] == [
        Path("r.json")
    ] * 2
    assert [f.name for f in session_evaluation.pair_videos(videos, [Path("a.csv"), Path("b.csv")])] == [
        "a",
        "b",
    ]
    with pytest.raises(ArgumentError):
        session_evaluation.pair_videos(videos, [])


@pytest.mark.parametrize(("window_s", "step_s"), [(1.0, 1.0), (10.0, 0.0), (10.0, 11.0), (float("nan"), 1.0)])
def test_invalid_windows_are_refused(window_s: float, step_s: float) -> None:
    with pytest.raises(ArgumentError):
        session_evaluation.evaluate("folder", [], "pos", window_s=window_s, step_s=step_s)
