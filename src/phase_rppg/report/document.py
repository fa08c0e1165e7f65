"""A result as a document (JSON), as rows (CSV) and as one line of text; there is never a NaN in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ..session.reasons import ADVICE
from ..session.results import FaceResult, Result, WindowResult
from ..types import Estimate, Reading, Reason

CSV_COLUMNS = ("video", "face", "start_s", "end_s", "bpm", "low", "high", "p_ok", "snr_db", "reason")


def document(result: Result, windows: Callable[[Iterator[Any]], Any] = list) -> dict[str, Any]:
    """The JSON document of one video, as docs/measure.schema.json describes it.

    `windows` is what the windows of a face are gathered in; with `iter` they are made while they are written.
    """
    found: dict[str, Any] = {
        "video": result.video,
        "duration_s": round(result.duration_s, 3),
        "method": result.method,
        "faces": [_face(face, windows) for face in result.faces],
        "warnings": list(result.warnings),
    }
    if not result.faces:
        found["reason"] = str(result.reason or Reason.NO_FACE)
    return found


def csv_text(results: Iterable[Result]) -> str:
    """One row per window of every face of every video, with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for result in results:
        for face in result.faces:
            for window in face.windows:
                row = {"video": result.video, "face": face.id, **window_row(window)}
                writer.writerow(["" if row[name] is None else row[name] for name in CSV_COLUMNS])
    return text.getvalue()


def line(face: FaceResult) -> str:
    """What a person reads about a face."""
    return sentence(face.summary)


def sentence(reading: Reading) -> str:
    """The rate with its interval, or why there is none."""
    if isinstance(reading, Estimate):
        return (
            f"{reading.bpm:.1f} bpm ({reading.low:.0f}–{reading.high:.0f}), "
            f"{sureness(reading.p_ok)} sure to be within 5 bpm"
        )
    return f"no reading: {reading.reason} – {ADVICE[reading.reason]}"


def sureness(p_ok: float) -> str:
    """A probability in words of a person: never 0 or 100 %."""
    return f"{min(max(round(100 * p_ok), 1), 99)} %"


def has_reading(result: Result) -> bool:
    return any(isinstance(face.summary, Estimate) for face in result.faces)


def _face(face: FaceResult, windows: Callable[[Iterator[Any]], Any]) -> dict[str, Any]:
    reading = face.summary
    hrv = None
    if face.hrv is not None:
        hrv = {key: _rounded(value, 3) for key, value in asdict(face.hrv).items()}
    return {
        "id": face.id,
        "summary": {
            "bpm": _bpm(reading),
            **_interval(reading),
            "p_ok": round(reading.p_ok, 4),
            "reason": _reason(reading),
        },
        "hrv": hrv,
        "windows": windows(map(_window, face.windows)),
    }


def _window(window: WindowResult) -> dict[str, Any]:
    return {
        "start_s": round(window.start_s, 3),
        "end_s": round(window.end_s, 3),
        "bpm": _bpm(window.reading),
        "p_ok": round(window.reading.p_ok, 4),
        "snr_db": round(window.peak.snr_db, 2) if window.peak is not None else None,
        "reason": _reason(window.reading),
    }


def window_row(window: WindowResult) -> dict[str, Any]:
    """One window with its interval, for a row of a table or a line of a stream."""
    return {**_window(window), **_interval(window.reading)}


def _bpm(reading: Reading) -> float | None:
    return round(reading.bpm, 2) if isinstance(reading, Estimate) else None


def _interval(reading: Reading) -> dict[str, float | None]:
    if isinstance(reading, Estimate):
        return {"low": round(reading.low, 2), "high": round(reading.high, 2)}
    return {"low": None, "high": None}


def _reason(reading: Reading) -> str | None:
    return None if isinstance(reading, Estimate) else str(reading.reason)


def _rounded(value: float | int | None, digits: int) -> float | int | None:
    return round(value, digits) if isinstance(value, float) else value
