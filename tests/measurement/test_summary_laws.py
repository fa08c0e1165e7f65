"""Laws of the summary of a video: one reading for all windows, the order of the faces, and their beats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from phase_rppg.measurement import summary
from phase_rppg.measurement.result_buffer import ResultBuffer
from phase_rppg.session.results import FaceEvent, WavePiece, WindowResult
from phase_rppg.types import Estimate, NoReading, Quality, Reading, Reason, Waveform

FPS = 30.0


def window(reading: Reading, face: int = 0, face_px: float = 100.0) -> WindowResult:
    numbers = dict.fromkeys(
        ("snr_db", "amplitude", "background", "motion", "coverage", "luma", "clipped", "colourfulness", "fps",
         "max_gap_s", "support"), 0.0
    )  # fmt: skip
    quality = Quality(**numbers, face_px=face_px)
    return WindowResult(face, reading.start_s, reading.end_s, reading, None, quality)


def estimates(rows: Sequence[tuple[float, float]]) -> list[WindowResult]:
    """Windows of 10 s every second with (bpm, p_ok); the interval is from 1 below to 3 above."""
    return [
        window(Estimate(bpm, bpm - 1, bpm + 3, p_ok, float(i), 10.0 + i))
        for i, (bpm, p_ok) in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("rows", "bpm"),
    [
        ([(70.0, 0.9)], 70),
        ([(90.0, 0.5), (60.0, 0.5), (70.0, 0.5)], 70),
        ([(60.0, 0.9), (80.0, 0.3), (90.0, 0.3)], 60),  # 0.9 of 1.5 lies at 60
        ([(60.0, 0.3), (80.0, 0.3), (90.0, 0.9)], 90),
        ([(60.0, 0.0), (61.0, 0.0), (62.0, 0.0)], 61),  # without any confidence, the plain median
    ],
)
def test_the_rate_is_the_median_weighted_by_confidence(rows: list[tuple[float, float]], bpm: float) -> None:
    found = summary.summarise(estimates(rows))
    assert isinstance(found, Estimate)
    assert (found.bpm, found.low, found.high) == (bpm, bpm - 1, bpm + 3)
    assert found.p_ok == pytest.approx(np.mean([p_ok for _, p_ok in rows]))
    assert (found.start_s, found.end_s) == (0.0, 9.0 + len(rows))


def test_the_interval_holds_the_rate() -> None:
    first = window(Estimate(70.0, 69.0, 71.0, 0.5, 0.0, 10.0))
    rows = [
        first,
        window(Estimate(60.0, 71.0, 72.0, 0.4, 1.0, 11.0)),
        window(Estimate(61, 71, 72, 0.4, 2, 12)),
    ]
    found = summary.summarise(rows)
    assert isinstance(found, Estimate)
    assert (found.bpm, found.low) == (61, 61)
    rows = [window(Estimate(80.0, 60.0, 70.0, 0.5, 0.0, 10.0))]
    found = summary.summarise(rows)
    assert isinstance(found, Estimate)
    assert (found.bpm, found.high) == (80, 80)


def test_without_an_estimate_the_most_common_reason_is_given() -> None:
    reasons = [(Reason.MOTION, 0.3), (Reason.NO_PULSE, 0.1), (Reason.MOTION, 0.2)]
    windows = [window(NoReading(r, float(i), 10.0 + i, p)) for i, (r, p) in enumerate(reasons)]
    assert summary.summarise(windows) == NoReading(Reason.MOTION, 0.0, 12.0, 0.3)
    mixed = [*windows, window(Estimate(70.0, 69.0, 71.0, 0.9, 3.0, 13.0))]
    assert isinstance(summary.summarise(mixed), Estimate)


def buffer_of(*faces: tuple[float, float]) -> ResultBuffer:
    """A buffer of faces with (width in px, seconds seen); the face is not seen in the last second."""
    buffer = ResultBuffer()
    for index, (face_px, seen_s) in enumerate(faces):
        count = round((seen_s + 1) * FPS)
        valid = np.arange(count) < round(seen_s * FPS)
        buffer.add([WavePiece(index, Waveform(np.zeros(count), FPS, 0.0, valid))])
        for offset in (-50.0, 0.0, 1.0):  # the median width is that of the face
            buffer.add([window(NoReading(Reason.NO_PULSE, 0.0, 10.0), index, face_px + offset)])
    return buffer


def test_faces_are_ordered_by_area_times_duration() -> None:
    found = summary.summarise_faces(buffer_of((100, 10), (60, 20), (80, 20), (100, 10)))
    assert [face.id for face in found] == [2, 0, 3, 1]
    assert [face.seen_s for face in found] == pytest.approx([20, 10, 10, 20])
    assert [face.face_px for face in found] == [80, 100, 100, 60]
    assert all(face.hrv is None and len(face.beats_s) == 0 for face in found)


def test_faces_that_were_seen_for_less_than_two_seconds_are_left_out() -> None:
    assert [face.id for face in summary.summarise_faces(buffer_of((100, 1.9), (50, 2.0)))] == [1]
    assert [face.id for face in summary.summarise_faces(buffer_of((50, 1.9), (100, 1.8)))] == [1]
    assert summary.summarise_faces(ResultBuffer()) == ()


def test_a_face_without_a_wave_is_left_out() -> None:
    buffer = buffer_of((100, 10))
    buffer.add([window(NoReading(Reason.NO_FACE, 0.0, 10.0), face=7)])
    assert [face.id for face in summary.summarise_faces(buffer)] == [0]


def test_only_losses_are_kept_of_the_events_of_faces() -> None:
    buffer = ResultBuffer()
    kinds = [
        (3, 1.0, "appeared"),
        (3, 2.0, "lost"),
        (3, 3.0, "returned"),
        (3, 4.0, "lost"),
        (4, 5.0, "ended"),
    ]
    buffer.add([FaceEvent(*kind) for kind in kinds])
    assert buffer.lost_s == {3: [2.0, 4.0]}


def pulse(seconds: float, bpm: float = 72.0, start_s: float = 4.0, first_s: float = 0.3) -> Waveform:
    """A tone whose first maximum is `first_s` after its start."""
    values = np.cos(2 * np.pi * bpm / 60 * (np.arange(round(seconds * FPS)) / FPS - first_s))
    return Waveform(values, FPS, start_s, np.ones(len(values), bool))


def shown(start_s: float, end_s: float, bpm: float = 72.0) -> WindowResult:
    return window(Estimate(bpm, 0.4 * bpm, 2 * bpm, 0.9, start_s, end_s))  # a wide interval


@pytest.mark.parametrize("first_s", [0.3, 0.0, 0.001, -0.001])
def test_each_beat_is_found_once_across_blocks_of_a_minute(first_s: float) -> None:
    """200 s are four blocks; beats are every 60/72 s, also exactly between two blocks."""
    windows = [shown(4.0 + i, 14.0 + i) for i in range(0, 191, 5)]
    beats_s = summary.find_shown_beats(pulse(200, first_s=first_s), windows)
    truth_s = 4.0 + first_s + np.arange(2, 239) * 60 / 72  # the filter settles within two beats
    assert len(beats_s) == pytest.approx(240, abs=1)
    assert np.abs(truth_s[:, None] - beats_s).min(1).max() < 0.01
    assert np.diff(beats_s).min() > 0.7


def test_beats_lie_within_windows_that_have_an_estimate() -> None:
    windows = [shown(24.0, 34.0), window(NoReading(Reason.MOTION, 34.0, 44.0)), shown(44.0, 54.0)]
    beats_s = summary.find_shown_beats(pulse(100), windows)
    inside = ((beats_s >= 24) & (beats_s < 34)) | ((beats_s >= 44) & (beats_s < 54))
    assert inside.all()
    assert len(beats_s) == pytest.approx(24, abs=1)
    assert len(summary.find_shown_beats(pulse(100), windows[1:2])) == 0
    early = summary.find_shown_beats(pulse(100), [shown(-20.0, 2.0), shown(2.0, 9.0)])
    assert len(early) == pytest.approx(6, abs=1)
    assert early.max() < 9


def test_beats_are_searched_near_the_rate_of_their_window() -> None:
    """72 bpm with a stronger wave at half the rate: the estimate decides which of both is found."""
    wave = pulse(100)
    slow = np.cos(2 * np.pi * 0.6 * np.arange(3000) / FPS)
    both = Waveform(0.6 * wave.values + slow, FPS, 4.0, wave.valid)
    for bpm, count in ((72.0, 120), (36.0, 60)):
        beats_s = summary.find_shown_beats(both, [shown(4.0, 104.0, bpm)])
        assert len(beats_s) == pytest.approx(count, abs=3)


def test_beats_follow_a_rate_that_changes_from_window_to_window() -> None:
    """50 bpm for 40 s, then 130 bpm; each window has the rate of its middle."""
    t_s = np.arange(2400) / FPS
    bpm = np.where(t_s < 40, 50.0, 130.0)
    wave = Waveform(np.cos(2 * np.pi * np.cumsum(bpm / 60) / FPS), FPS, 0.0, np.ones(2400, bool))
    starts = [*range(0, 31, 5), *range(40, 71, 5)]
    windows = [shown(first, first + 10.0, 50.0 if first < 40 else 130.0) for first in starts]
    beats_s = summary.find_shown_beats(wave, windows)
    for low_s, high_s, period_s in ((2, 34, 60 / 50), (46, 78, 60 / 130)):
        inside = beats_s[(beats_s > low_s) & (beats_s < high_s)]
        np.testing.assert_allclose(np.diff(inside), period_s, rtol=0.1)
