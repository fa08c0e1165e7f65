"""A colour trace is measured like a video, and a file that is no trace is refused with one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phase_rppg import Estimate, NoReading, Reason, RgbTrace, measure, measure_trace
from phase_rppg.cli import main
from phase_rppg.errors import ArgumentError, InputError, UnknownNameError
from phase_rppg.measurement.trace import read_trace
from phase_rppg.physics.pulse import PulseConfig, pulse_wave
from phase_rppg.types import FloatArray

FPS = 30.0
SKIN = np.array([170.0, 120.0, 100.0])
BLOOD = np.array([0.33, 0.77, 0.53])  # relative strength of the pulse in the three channels


def colours(bpm: float | None, seconds: float = 20.0, seed: int = 0, fps: float = FPS) -> FloatArray:
    """The mean colour (T,3) of a face with this pulse, or without one."""
    rng = np.random.default_rng(seed)
    count = round(seconds * fps)
    rows = SKIN * (1 + 2e-4 * rng.standard_normal((count, 3)))
    if bpm is not None:
        pulse = pulse_wave(PulseConfig(bpm=bpm), seconds, fps, rng).values
        rows = rows * (1 - 0.004 * np.outer(pulse, BLOOD))
    return rows


@pytest.mark.parametrize("fps", [20.0, 25.0, 30.0, 60.0])
@pytest.mark.parametrize("bpm", [52.0, 75.0, 130.0])
def test_a_trace_with_a_pulse_has_its_rate(bpm: float, fps: float) -> None:
    result = measure_trace(colours(bpm, fps=fps), fps=fps)
    (face,) = result.faces
    assert isinstance(face.summary, Estimate)
    assert face.summary.bpm == pytest.approx(bpm, abs=2)
    assert result.fps == pytest.approx(fps)
    assert result.duration_s == pytest.approx(20)
    assert result.method == "pos"
    assert face.wave.fps == pytest.approx(fps)


def test_a_trace_without_a_pulse_has_no_rate() -> None:
    for seed in range(4):
        (face,) = measure_trace(colours(None, seed=seed), fps=FPS).faces
        assert isinstance(face.summary, NoReading)


def test_grey_light_is_no_pulse() -> None:
    """A trace has no background, but the colour of blood differs from that of a lamp."""
    beat = np.sin(2 * np.pi * 1.2 * np.arange(600) / FPS)
    (face,) = measure_trace(SKIN * (1 + 0.004 * beat[:, None]), fps=FPS).faces
    assert isinstance(face.summary, NoReading)


def test_arrays_times_and_traces_give_one_result() -> None:
    rows = colours(80)
    t_s = np.arange(len(rows)) / FPS
    by_rate = measure_trace(rows, fps=FPS).to_dict(full=True)
    assert measure_trace(rows.tolist(), t_s=t_s.tolist()).to_dict(full=True) == by_rate
    trace = RgbTrace(rows, FPS, 0.0, np.ones(len(rows), bool))
    assert measure_trace(trace).to_dict(full=True) == by_rate


def test_rows_of_zeros_mean_that_there_is_no_face() -> None:
    rows = colours(72, 40.0)
    rows[450:750] = 0
    result = measure_trace(rows, fps=FPS)
    (face,) = result.faces
    assert not face.wave.valid[455:745].any()
    assert face.wave.valid[:440].all()
    assert face.seen_s == pytest.approx(30, abs=0.1)
    in_gap = [w for w in face.windows if w.start_s > 11 and w.end_s < 29]
    assert all(w.bpm is None for w in in_gap)
    assert isinstance(face.summary, Estimate)
    nothing = measure_trace(np.zeros((600, 3)), fps=FPS)
    assert (nothing.faces, nothing.reason) == ((), Reason.NO_FACE)


def test_the_past_does_not_depend_on_the_future_beyond_the_context() -> None:
    rows = colours(72, 35.0)
    changed = rows.copy()
    changed[900:] = colours(110, 5.0, seed=5)
    first, second = (measure_trace(r, fps=FPS, gated=False).faces[0].windows for r in (rows, changed))
    for one, other in zip(first, second, strict=True):
        if one.end_s <= 19:  # 10 s of context before the change at 30 s
            assert one == other


def test_a_short_trace_gets_one_window() -> None:
    (face,) = measure_trace(colours(72, 5.0), fps=FPS).faces
    assert len(face.windows) == 1
    assert isinstance(face.summary, NoReading)
    assert measure_trace(colours(72, 5.0), fps=FPS, gated=False).faces[0].windows[0].bpm is not None


def test_a_long_pause_begins_another_face_and_needs_no_memory() -> None:
    rows = colours(72, 40.0)
    t_s = np.arange(len(rows)) / FPS
    t_s[600:] += 1e9
    result = measure_trace(rows, t_s=t_s)
    assert len(result.faces) == 2
    assert all(len(face.wave.values) < 700 for face in result.faces)


@pytest.mark.parametrize(
    ("trace", "timing", "message"),
    [
        (np.ones((300, 2)), {"fps": 30}, "shape"),
        (np.ones(300), {"fps": 30}, "shape"),
        (np.zeros((0, 3)), {"fps": 30}, "shape"),
        (colours(72) / 255, {"fps": 30}, "multiply values of 0–1 by 255"),
        (colours(72) - 150, {"fps": 30}, "from 0 to 255"),
        (colours(72) * 2, {"fps": 30}, "from 0 to 255"),
        (colours(72), {}, "frame rate or the times"),
        (colours(72), {"fps": 30, "t_s": [0.0]}, "both"),
        (colours(72), {"fps": 0.0}, "above 0"),
        (colours(72), {"t_s": np.arange(599) / 30}, "one for each sample"),
        (colours(72), {"t_s": np.arange(600) * 33.3}, "divide milliseconds by 1000"),
        (colours(72), {"t_s": -np.arange(600) / 30}, "increasing"),
        ("text", {"fps": 30}, "an RgbTrace or an array"),
    ],
)
def test_a_wrong_trace_is_refused(trace: object, timing: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        measure_trace(trace, **timing)  # type: ignore[arg-type]


def test_only_methods_of_the_mean_colour_measure_a_trace() -> None:
    with pytest.raises(UnknownNameError, match="pos"):
        measure_trace(colours(72), fps=FPS, method="phasenet-stream")
    with pytest.raises(ArgumentError, match="mean colour"):
        measure_trace(colours(72), fps=FPS, method="2sr")
    assert measure_trace(colours(72), fps=FPS, method="chrom").method == "chrom"


def csv_file(folder: Path, rows: FloatArray, header: str = "t_s,r,g,b", unit: float = 1.0) -> Path:
    table = np.column_stack([unit * np.arange(len(rows)) / FPS, rows])
    path = folder / "trace.csv"
    np.savetxt(path, table, "%.6f", ",", header=header, comments="")
    return path


@pytest.mark.parametrize(
    ("header", "unit"), [("t_s,r,g,b", 1), ("t_ms,r,g,b", 1000), ("Time_s,Red,Green,Blue", 1)]
)
def test_a_file_and_an_array_give_the_same_rates(tmp_path: Path, header: str, unit: float) -> None:
    path = csv_file(tmp_path, colours(66), header, unit)
    by_file = measure(path)
    by_array = measure_trace(read_trace(path)[1], t_s=read_trace(path)[0])
    assert by_file.video == str(path)
    assert [w.bpm for w in by_file.faces[0].windows] == [w.bpm for w in by_array.faces[0].windows]
    assert measure(path, fps=60).faces[0].summary.bpm == pytest.approx(132, abs=2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a header with t_s, r, g and b; found nothing"),
        ("t_s,ppg\n0,1\n", "found t_s, ppg"),
        ("t_s,r,g,b\n", "has no samples"),
        ("t_s,r,g,b\n0,1,2,x\n", "row 2 is not a row of numbers"),
        ("t_s,r,g,b\n0,100,90,80\n0.03,100,90\n", "row 3"),
        ("t_s,r,g,b\n0,100,90,80\n0,100,90,80\n", "increasing times"),
        ("t_s,r,g,b\n0,100,90,80\n33,100,90,80\n66,100,90,80\n", "divide milliseconds"),
        ("t_s,r,g,b\n0,100,90,800\n0.1,100,90,80\n", "from 0 to 255"),
        ("t_s,r,g,b\n0," + "1" * 20_000 + ",90,80\n", "a field is too long"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=message) as caught:
        measure(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_trace_beyond_the_limits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = csv_file(tmp_path, colours(72))
    monkeypatch.setenv("PHASE_LIMITS", "samples=100")
    with pytest.raises(InputError, match="more than 100 rows"):
        measure(path)
    monkeypatch.setenv("PHASE_LIMITS", "label_mb=0.001")
    with pytest.raises(InputError, match="label_mb"):
        measure(path)


def test_the_command_measures_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def exit_code(path: Path) -> object:
        with pytest.raises(SystemExit) as ended:
            main(["measure", str(path)])
        return ended.value.code

    assert exit_code(csv_file(tmp_path, colours(66))) == 0
    printed = capsys.readouterr()
    assert "bpm" in printed.out
    assert printed.err == ""
    (tmp_path / "labels.csv").write_text("t_s,ppg\n0,1\n", "utf-8")
    assert exit_code(tmp_path / "labels.csv") == 4
    assert capsys.readouterr().err.count("\n") == 1
