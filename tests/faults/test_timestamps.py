"""Unusual clocks give the true rate, or none; never a rate on a wrong clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from faults.table import Row, faults
from phase_rppg.types import ByteArray
from phase_rppg.video.encode import write_video

Pictures = list[ByteArray]
T_S = np.arange(270) / 30


def write_at(path: Path, pictures: Pictures, t_s: np.ndarray, chosen: np.ndarray | None = None) -> Path:
    shown = pictures if chosen is None else [pictures[i] for i in chosen]
    write_video(path, shown, t_s=t_s, crf=14, preset="veryfast")
    return path


def slow(fps: float) -> Callable[[Path, Pictures], Path]:
    def make(path: Path, pictures: Pictures) -> Path:
        chosen = np.unique(np.round(np.arange(0, 270, 30 / fps)).astype(int).clip(max=269))
        return write_at(path, pictures, T_S[chosen], chosen)

    return make


def variable(path: Path, pictures: Pictures) -> Path:
    """A third of the frames is missing at random: 20 frames per second on average."""
    chosen = np.sort(np.random.default_rng(0).permutation(270)[:180])
    return write_at(path, pictures, T_S[chosen], chosen)


def dropped(path: Path, pictures: Pictures) -> Path:
    """One second without frames."""
    chosen = np.flatnonzero((T_S < 4) | (T_S >= 5))
    return write_at(path, pictures, T_S[chosen], chosen)


def jump(path: Path, pictures: Pictures) -> Path:
    """The times jump by an hour in the middle."""
    return write_at(path, pictures, T_S + 3600.0 * (T_S >= 4.5))


def stamped(change: Callable[[int, int], int]) -> Callable[[Path, Pictures], Path]:
    """Write a Matroska file in which frame n has the time change(n, true time), in ms within its cluster."""

    def make(path: Path, pictures: Pictures) -> Path:
        video = path.with_suffix(".mkv")
        write_video(video, pictures, 30, codec="mjpeg", quality=3)
        data, place, number = bytearray(video.read_bytes()), 0, 0
        while (place := data.find(b"\xa3", place)) >= 0:  # SimpleBlock: size, track, time, flags, JPEG
            length = 9 - data[place + 1].bit_length()
            at = place + 1 + length
            if data[at : at + 1] != b"\x81" or data[at + 4 : at + 6] != b"\xff\xd8":
                place += 1
                continue
            old_ms = int.from_bytes(data[at + 1 : at + 3], "big", signed=True)
            data[at + 1 : at + 3] = change(number, old_ms).to_bytes(2, "big", signed=True)
            size = int.from_bytes(data[place + 1 : at], "big") & ((1 << 7 * length) - 1)
            number, place = number + 1, at + size
        assert number == len(pictures)
        video.write_bytes(data)
        return video

    return make


@faults(
    Row("5 frames per second", "no reading: LOW_FPS", 3, case=slow(5)),
    Row("7 frames per second", "no reading: LOW_FPS", 3, case=slow(7)),
    Row("the times jump by an hour", "no reading: TOO_SHORT", 3, case=jump),
)
def test_a_clock_that_cannot_be_used_gives_no_rate(
    row: Row, measure: Any, pictures: Pictures, tmp_path: Path
) -> None:
    found = measure(row.case(tmp_path / "clock.mp4", pictures), "--model", "pos")
    assert found.code == row.exit_code
    assert found.rates == []
    assert found.reasons == {row.happens.rpartition(" ")[2]}


@faults(
    Row("a variable frame rate", "the rate is correct", 0, "the reading", case=variable),
    Row("one second of frames is missing", "no rate in windows with the gap", 3, case=dropped),
    Row("every fifth frame has the time of the previous one", "a warning; the rate is correct", 0,
        "the reading", case=stamped(lambda n, ms: ms - 34 * (n % 5 == 4))),
    Row("half a second of frames goes back in time", "a warning; the rate is correct", 0,
        "the reading without these frames", case=stamped(lambda n, ms: ms - 1000 * (100 <= n < 115))),
)  # fmt: skip
def test_an_uneven_clock_gives_the_true_rate_or_none(
    row: Row, measure: Any, pictures: Pictures, tmp_path: Path
) -> None:
    found = measure(row.case(tmp_path / "clock.mp4", pictures), "--model", "pos")
    assert found.code == row.exit_code, found
    assert all(abs(bpm - 72) < 3 for bpm in found.rates)
    if "warning" in row.happens:
        assert any("not later than the previous one" in text for text in found.document["warnings"])


@faults(
    Row("no frame has a timestamp", "no reading: BAD_TIMESTAMPS; the advice names --fps", 3,
        case="no_timestamps"),
)  # fmt: skip
def test_a_missing_clock_gives_no_rate(row: Row, measure: Any, film: Callable[[str], Path]) -> None:
    found = measure(film(row.case), "--model", "pos")
    assert found.code == row.exit_code
    assert found.rates == []
    assert found.reasons == {"BAD_TIMESTAMPS"}
