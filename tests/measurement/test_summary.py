"""A summary shows the range over time, a probable rate, the positions of faces and the limits of HRV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg.measurement import offline
from phase_rppg.measurement.result_buffer import ResultBuffer
from phase_rppg.measurement.summary import summarise, summarise_faces
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import FacePosition, WavePiece, WindowResult
from phase_rppg.types import Estimate, NoReading, Quality, Reason, SummaryEstimate, Waveform
from phase_rppg.video.encode import write_video
from plain_face import FACE, FixedDetector, Held, frames, seconds, tone

pytestmark = pytest.mark.smoke

QUALITY = Quality(0, 0, 0, 0, 1, 100, 100, 0, 0.3, 30, 0.03)


def shown(index: int, bpm: float) -> WindowResult:
    reading = Estimate(bpm, bpm - 2, bpm + 2, 0.9, index, index + 10.0)
    return WindowResult(0, index, index + 10.0, reading, None, QUALITY)


def refused(
    index: int, p_ok: float, probable_bpm: float | None, reason: Reason = Reason.NO_PULSE, face: int = 0
) -> WindowResult:
    reading = NoReading(reason, index, index + 10.0, p_ok, probable_bpm, p_alive=1.0)
    return WindowResult(face, index, index + 10.0, reading, None, QUALITY)


def test_a_changing_rate_is_shown_as_a_range() -> None:
    found = summarise([shown(i, bpm) for i, bpm in enumerate([79, 90, 94, 96, 104])])
    assert isinstance(found, SummaryEstimate)
    assert (found.bpm, found.range_low, found.range_high) == (94, 79, 104)
    assert found.high - found.low == 4


def test_single_outliers_of_a_long_video_are_outside_the_range() -> None:
    rates = [60.0, *np.linspace(79, 104, 98).tolist(), 180.0]
    found = summarise([shown(i, bpm) for i, bpm in enumerate(rates)])
    assert isinstance(found, SummaryEstimate)
    assert 79 <= found.range_low < 81
    assert 102 < found.range_high <= 104


def test_a_probable_rate_is_never_a_reading() -> None:
    found = summarise([refused(0, 0.6, 62.0), refused(1, 0.82, 61.0), refused(2, 0.3, None)])
    assert found == NoReading(Reason.NO_PULSE, 0, 12, 0.82, 61.0, p_alive=1.0)
    assert not hasattr(found, "bpm")


def test_windows_that_disagree_have_no_probable_rate() -> None:
    found = summarise([refused(0, 0.6, 90.0), refused(1, 0.82, 61.0), refused(2, 0.6, 92.0)])
    assert found == NoReading(Reason.NO_PULSE, 0, 12, 0.82, p_alive=1.0)


def buffer_of(*centres_px: float) -> ResultBuffer:
    buffer = ResultBuffer()
    wave = Waveform(np.zeros(300), 30.0, 0.0, np.ones(300, bool))
    for face, x in enumerate(centres_px):
        position = FacePosition(face, 0.0, (x - 50, 0.0, 100.0, 100.0), np.zeros((5, 2)))
        buffer.add([position, refused(0, 0.1, None, face=face), WavePiece(face, wave)])
    return buffer


@pytest.mark.parametrize(
    ("centres_px", "names"),
    [
        ((300,), [None]),
        ((500, 200), ["right", "left"]),
        ((300, 310), [None, None]),  # one person with two tracks
        ((300, 100, 500), ["centre", "left", "right"]),
        ((300, 100, 500, 310), ["centre", "left", "right", "centre"]),
        ((100, 300, 500, 700), [f"{number} of 4 from left" for number in (1, 2, 3, 4)]),
    ],
)
def test_positions_of_several_faces(centres_px: tuple[float, ...], names: list[str | None]) -> None:
    assert [face.position for face in summarise_faces(buffer_of(*centres_px))] == names


def test_a_missing_reading_has_advice_by_its_cause() -> None:
    buffer = ResultBuffer()
    wave = Waveform(np.zeros(360), 30.0, 0.0, np.ones(360, bool))
    buffer.add([refused(0, 0.82, 61.0), refused(2, 0.7, 61.0), WavePiece(0, wave)])
    (face,) = summarise_faces(buffer, bits_per_pixel=0.43)
    assert face.advice == "probably 61 bpm (82 %), not sure enough; film 20 s more"


@pytest.fixture
def detector() -> Any:
    return FixedDetector()


def test_a_measured_face_has_boxes_and_a_picture(detector: Any) -> None:
    t_s = seconds(12)
    result = offline.measure(
        Held(frames(t_s, 0.01 * tone(t_s, 75))), SessionConfig(gated=False), detector=detector
    )
    (face,) = result.faces
    assert isinstance(face.summary, SummaryEstimate)
    assert face.advice == ""
    assert len(face.boxes.t_s) >= 6
    assert (np.diff(face.boxes.t_s) >= 1 - 1e-9).all()
    assert (face.boxes.boxes == FACE).all()
    assert face.position is None
    assert face.thumbnail is not None
    middle = face.thumbnail[40:56, 40:56].mean((0, 1))
    np.testing.assert_allclose(middle, [180, 130, 105], atol=12)
    assert result.bits_per_pixel is None
    assert face.hrv_limits["rmssd_ms"].name == "duration_s"
    assert face.hrv_limits["rmssd_ms"].value == pytest.approx(11, abs=1)


def test_the_size_of_a_file_per_pixel_is_known(detector: Any, tmp_path: Path) -> None:
    path = tmp_path / "face.avi"
    t_s = seconds(3)
    write_video(path, (frame.rgb for frame in frames(t_s, 0 * t_s)), 30, codec="raw")
    result = offline.measure(path, SessionConfig(), detector=detector)
    assert result.bits_per_pixel == pytest.approx(8 * path.stat().st_size / (90 * 60 * 80))
