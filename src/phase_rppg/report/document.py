"""Results as JSON documents, CSV rows and text; absent values are null or empty, never NaN.

`SCHEMA_VERSION` is the version of docs/measure.schema.json. It increases when a field is added or changed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any, TypeGuard

from ..session.reasons import advice
from ..session.results import FaceResult, Result, WindowResult
from ..signal.breathing import Breathing, BreathingReading
from ..text import csv_cell
from ..types import Estimate, NoReading, Reading, Reason, SummaryEstimate
from .signals import beat_rows

SCHEMA_VERSION = 3
CSV_COLUMNS = (
    "video", "face", "start_s", "end_s", "bpm", "low", "high", "p_ok", "p_alive", "snr_db", "reason",
)  # fmt: skip
SUMMARY_COLUMNS = (
    "video", "face", "position", "bpm", "low", "high", "range_low", "range_high", "p_ok", "p_alive",
    "probable_bpm", "reason", "error",
)  # fmt: skip
MIN_CHANGE_BPM = 10.0  # smallest change over time that is shown as a range


def document(
    result: Result, windows: Callable[[Iterator[Any]], Any] = list, *, full: bool = False
) -> dict[str, Any]:
    """Return the JSON document of one video, which docs/measure.schema.json describes.

    `windows` converts the iterator over the windows of a face; with `iter` they are created while the
    document is written. `full` adds the waveform and the beats of each face.
    """
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "video": result.video,
        "duration_s": round(result.duration_s, 3),
        "method": result.method,
        "faces": [
            face_document(face, windows) | (_signals(face, windows) if full else {}) for face in result.faces
        ],
        "warnings": list(result.warnings),
    }
    if not result.faces:
        found["reason"] = str(result.reason or Reason.NO_FACE)
    return found


def error_document(video: str, problem: str) -> dict[str, Any]:
    """Return the JSON document of a video that could not be measured."""
    return {"schema_version": SCHEMA_VERSION, "video": video, "error": problem}


def csv_text(results: Iterable[Result]) -> str:
    """Return CSV text with a header and one row per window of every face."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for result in results:
        for face in result.faces:
            for window in face.windows:
                row = {"video": result.video, "face": face.id, **window_row(window)}
                writer.writerow(["" if row[name] is None else csv_cell(row[name]) for name in CSV_COLUMNS])
    return text.getvalue()


def summary_csv(documents: Iterable[dict[str, Any]]) -> str:
    """Return CSV text with one row per face of every document, and one per video that was not measured."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SUMMARY_COLUMNS)
    for found in documents:
        rows = [
            {"face": face["id"], "position": face["position"], **face["summary"]}
            for face in found.get("faces", [])
        ]
        for row in rows or [{"reason": found.get("reason"), "error": found.get("error")}]:
            row["video"] = found["video"]
            cells = [row.get(name) for name in SUMMARY_COLUMNS]
            writer.writerow(["" if cell is None else csv_cell(cell) for cell in cells])
    return text.getvalue()


def face_text(face: FaceResult) -> str:
    """Return the summary of a face as text."""
    return reading_text(face.summary, face.advice)


def reading_text(reading: Reading, remedy: str = "") -> str:
    """Return the rate with its interval or range and its confidence, or why there is none.

    `remedy` is the advice for a missing reading, if it is known.
    """
    if isinstance(reading, Estimate):
        return f"{rate_text(reading)}, {confidence_text(reading.p_ok)}"
    text = remedy or advice(reading)
    return (
        f"no reading: {text}"
        if reading.probable_bpm is not None
        else f"no reading: {reading.reason} – {text}"
    )


def rate_text(reading: Estimate) -> str:
    """Return the rate and its interval, or the range and the median if the rate changes over time."""
    if changes(reading):
        return f"{reading.range_low:.0f}–{reading.range_high:.0f} bpm, median {reading.bpm:.0f}"
    return f"{reading.bpm:.1f} bpm ({reading.low:.0f}–{reading.high:.0f})"


def changes(reading: Reading) -> TypeGuard[SummaryEstimate]:
    """Return whether the rate changes over time by more than the interval of a window shows."""
    if not isinstance(reading, SummaryEstimate):
        return False
    return reading.range_high - reading.range_low > max(MIN_CHANGE_BPM, reading.high - reading.low)


def confidence_text(p_ok: float) -> str:
    """Return the confidence of a reading as text."""
    return f"{percent(p_ok)} sure to be within 5 bpm"


def percent(p_ok: float) -> str:
    """Return a probability as a percentage between 1 % and 99 %."""
    return f"{min(max(round(100 * p_ok), 1), 99)} %"


def has_reading(result: Result) -> bool:
    """Return whether any face of a result has a rate."""
    return any(isinstance(face.summary, Estimate) for face in result.faces)


def face_document(
    face: FaceResult, windows: Callable[[Iterator[Any]], Any] = list, *, full: bool = False
) -> dict[str, Any]:
    """Return one face of the JSON document; see `document`."""
    reading = face.summary
    hrv = None
    if face.hrv is not None:
        hrv = {key: _rounded(value, 3) for key, value in asdict(face.hrv).items()}
    limits = {
        name: {key: _rounded(value, 4) for key, value in asdict(limit).items()}
        for name, limit in sorted(face.hrv_limits.items())
    }
    return {
        "id": face.id,
        "position": face.position,
        "summary": {
            "bpm": _bpm(reading),
            **_interval(reading),
            **_range(reading),
            "probable_bpm": _probable_bpm(reading),
            "p_ok": round(reading.p_ok, 4),
            "p_alive": round(reading.p_alive, 4),
            "reason": _reason(reading),
            "advice": None if isinstance(reading, Estimate) else face.advice or advice(reading),
        },
        "hrv": hrv,
        "hrv_limits": limits,
        "breathing": _breathing(face.breathing),
        "boxes": windows(_boxes(face)),
        "windows": windows(map(window_row, face.windows)),
        **(_signals(face, windows) if full else {}),
    }


def _breathing(reading: BreathingReading) -> dict[str, Any]:
    """Return the breathing rate, or the reason why there is none."""
    if isinstance(reading, Breathing):
        rates = {name: round(getattr(reading, name), 2) for name in ("per_minute", "low", "high")}
        return {**rates, "p_ok": round(reading.p_ok, 4), "reason": None}
    absent = dict.fromkeys(("per_minute", "low", "high"))
    return {**absent, "p_ok": round(reading.p_ok, 4), "reason": str(reading.reason)}


def _boxes(face: FaceResult) -> Iterator[dict[str, Any]]:
    """Yield the box of the face over time, where it was seen."""
    track = face.boxes
    for t_s, box, present in zip(track.t_s, track.boxes, track.present, strict=True):
        if present:
            yield {"time_s": round(float(t_s), 3), "box": [round(float(value), 1) for value in box]}


def _signals(face: FaceResult, convert: Callable[[Iterator[Any]], Any]) -> dict[str, Any]:
    """Return the waveform and the beats of a face; invalid samples are null."""
    wave = face.wave
    values = (round(float(v), 6) if ok else None for v, ok in zip(wave.values, wave.valid, strict=True))
    beats = ({"time_s": round(t, 4), "ibi_s": _rounded(ibi, 4)} for t, ibi in beat_rows(face))
    return {
        "wave": {"fps": wave.fps, "start_s": round(wave.start_s, 4), "values": convert(values)},
        "beats": convert(beats),
    }


def window_row(window: WindowResult) -> dict[str, Any]:
    """Return one window, for a JSON document, a JSON line or a CSV row."""
    return {
        "start_s": round(window.start_s, 3),
        "end_s": round(window.end_s, 3),
        "bpm": _bpm(window.reading),
        **_interval(window.reading),
        "p_ok": round(window.reading.p_ok, 4),
        "p_alive": round(window.reading.p_alive, 4),
        "snr_db": round(window.peak.snr_db, 2) if window.peak is not None else None,
        "reason": _reason(window.reading),
    }


def _bpm(reading: Reading) -> float | None:
    return round(reading.bpm, 2) if isinstance(reading, Estimate) else None


def _interval(reading: Reading) -> dict[str, float | None]:
    if isinstance(reading, Estimate):
        return {"low": round(reading.low, 2), "high": round(reading.high, 2)}
    return {"low": None, "high": None}


def _range(reading: Reading) -> dict[str, float | None]:
    if isinstance(reading, SummaryEstimate):
        return {"range_low": round(reading.range_low, 2), "range_high": round(reading.range_high, 2)}
    return {"range_low": None, "range_high": None}


def _probable_bpm(reading: Reading) -> float | None:
    return _rounded(reading.probable_bpm, 2) if isinstance(reading, NoReading) else None


def _reason(reading: Reading) -> str | None:
    return None if isinstance(reading, Estimate) else str(reading.reason)


def _rounded(value: float | int | None, digits: int) -> float | int | None:
    return round(value, digits) if isinstance(value, float) else value
