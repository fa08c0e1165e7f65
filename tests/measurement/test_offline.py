"""A file is measured up to its first damage, and its windows are summarised."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from drawing import Actor, Film, clock, still
from phase_rppg.errors import VideoError
from phase_rppg.measurement.offline import measure
from phase_rppg.measurement.result_buffer import WindowTable
from phase_rppg.measurement.summary import find_shown_beats, summarise
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import WindowResult
from phase_rppg.signal import rate
from phase_rppg.signal.beat_timing import refine_beats
from phase_rppg.types import Estimate, NoReading, Quality, Reading, Reason, Waveform
from phase_rppg.video.encode import write_video

pytestmark = pytest.mark.smoke

UNGATED = SessionConfig(gated=False)
QUALITY = Quality(0, 0, 0, 0, 1, 100, 100, 0, 0.3, 30, 0.03)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("film") / "face.avi"
    source = Film((Actor(still(100, 80), 80, 84.0),), clock(13, 20), 160, 200)
    write_video(path, (frame.rgb for frame in source.frames()), 20, codec="raw")
    return path


def test_a_file_is_measured(film: Path) -> None:
    reached: list[float] = []
    result = measure(film, UNGATED, progress=reached.append)
    (face,) = result.faces
    assert isinstance(face.summary, Estimate)
    assert face.summary.bpm == pytest.approx(84, abs=1)
    assert result.video == str(film)
    assert result.duration_s == pytest.approx(13, abs=0.01)
    assert len(reached) == result.frame_count == 260
    assert result.warnings == ()


def test_a_given_frame_rate_scales_the_heart_rate(film: Path) -> None:
    result = measure(film, UNGATED, fps=25)
    (face,) = result.faces
    assert isinstance(face.summary, Estimate)
    assert face.summary.bpm == pytest.approx(84 * 25 / 20, abs=1.3)


def test_a_truncated_file_is_measured_with_a_warning(film: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.avi"
    data = film.read_bytes()
    cut.write_bytes(data[: int(0.85 * len(data))])
    result = measure(cut, UNGATED)
    (face,) = result.faces
    assert isinstance(face.summary, Estimate)
    assert face.summary.bpm == pytest.approx(84, abs=1)
    assert "ends after" in result.warnings[0]


def test_a_file_that_is_no_video_raises(tmp_path: Path) -> None:
    path = tmp_path / "text.mp4"
    path.write_text("no video")
    with pytest.raises(VideoError):
        measure(path)


def window(reading: Reading) -> WindowResult:
    return WindowResult(0, reading.start_s, reading.end_s, reading, None, QUALITY)


def test_a_summary_is_the_median_of_the_estimates() -> None:
    rates = [70.0, 71.0, 72.0, 140.0]
    windows = [window(Estimate(bpm, bpm - 2, bpm + 2, 0.9, i, i + 10.0)) for i, bpm in enumerate(rates)]
    windows.append(window(NoReading(Reason.MOTION, 4, 14.0)))
    summary = summarise(windows)
    assert isinstance(summary, Estimate)
    assert summary.bpm in (71, 72)
    assert summary.low <= summary.bpm <= summary.high
    assert (summary.start_s, summary.end_s) == (0, 14)
    assert summary.p_ok == pytest.approx(0.9)


def test_a_summary_without_estimates_has_the_most_common_reason() -> None:
    reasons = [Reason.MOTION, Reason.NO_PULSE, Reason.NO_PULSE]
    summary = summarise([window(NoReading(r, i, i + 10.0, 0.1 * i)) for i, r in enumerate(reasons)])
    assert isinstance(summary, NoReading)
    assert summary.reason is Reason.NO_PULSE
    assert summary.p_ok == pytest.approx(0.2)
    assert np.isfinite(summary.p_ok)


def long_wave(minutes: float) -> tuple[Waveform, WindowTable]:
    """A pulse between 66 and 78 bpm with an estimate in every window."""
    t_s = np.arange(round(60 * minutes * 30)) / 30
    bpm = 72 + 6 * np.sin(2 * np.pi * t_s / 47)
    values = np.cos(2 * np.pi * np.cumsum(bpm / 60) / 30).astype(np.float32)
    windows = WindowTable(0)
    for start_s in range(round(60 * minutes) - 9):
        middle_bpm = float(bpm[(start_s + 5) * 30])
        reading = Estimate(middle_bpm, middle_bpm - 1, middle_bpm + 1, 0.9, start_s, start_s + 10.0)
        windows.append(WindowResult(0, start_s, start_s + 10.0, reading, None, QUALITY))
    return Waveform(values, 30.0, 0.0, np.ones(len(t_s), bool)), windows


def test_beats_found_in_blocks_equal_those_of_the_whole_wave() -> None:
    wave, windows = long_wave(5)
    found_s, whole_s = find_shown_beats(wave, windows), refine_beats(wave, rate.find_beats(wave, 72.0))
    assert len(found_s) == len(whole_s)
    assert np.abs(found_s - whole_s).max() < 0.01


def test_beats_of_an_hour_need_the_memory_of_minutes() -> None:
    wave, windows = long_wave(60)
    tracemalloc.start()
    find_shown_beats(wave, windows)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 4_000_000
