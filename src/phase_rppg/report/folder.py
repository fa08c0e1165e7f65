"""Write everything about one video into a folder, and find the folders that are complete.

`result.json` is written last. A folder that holds it is complete.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import InputError, is_installed
from ..fileio import json_pieces, read_json, sha256, write_text
from ..measurement.batch import FaceChoice
from ..measurement.measure import MeasureOptions
from ..session.results import Result
from . import html, plots, signals
from .document import SCHEMA_VERSION, csv_text, document

RESULT = "result.json"
PLOT = "plot.png"
OVERLAY = "overlay.mp4"
FILES = ("windows.csv", "wave.csv", "beats.csv", "report.html", PLOT, RESULT)


def save(folder: Path, result: Result, provenance: dict[str, Any]) -> None:
    """Write the files of one result, each atomically; the plot only if Matplotlib is installed."""
    write_text(folder / "windows.csv", csv_text([result]))
    signals.save_wave(folder / "wave.csv", result)
    signals.save_beats(folder / "beats.csv", result)
    html.save_html(folder / "report.html", [result])
    if is_installed("matplotlib"):
        plots.save(folder / PLOT, result)
    found = document(result, windows=iter, full=True) | {"provenance": provenance}
    write_text(folder / RESULT, "".join(json_pieces(found)) + "\n")


def provenance(video: Path, options: MeasureOptions, face: FaceChoice) -> dict[str, Any]:
    """Return what determines a result: the content of the video, the options and the version."""
    return {"sha256": content_hash(video), **settings(options, face)}


def settings(options: MeasureOptions, face: FaceChoice) -> dict[str, Any]:
    """Return what determines a result besides the video: the options and the version."""
    chosen = {key: value for key, value in asdict(options).items() if key not in ("loader", "alone")}
    chosen["face"] = face.number
    if os.path.isfile(options.method):
        chosen["model_sha256"] = sha256(options.method)
    return {"options": chosen, "software": f"phase-rppg {__version__}"}


def content_hash(video: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of the files in a folder of frames."""
    try:
        if not os.path.isdir(video):
            return sha256(video)
        digest = hashlib.sha256()
        for file in sorted(video.iterdir()):
            if file.is_file():
                digest.update(f"{file.name}\0{sha256(file)}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()
    except OSError as error:
        raise InputError(f"{video}: cannot be read ({error.strerror})") from None


def stored(folder: Path, expected: dict[str, Any]) -> dict[str, Any] | None:
    """Return the document in a complete folder if it has this provenance, otherwise None."""
    try:
        found = read_json(folder / RESULT)
    except InputError:
        return None
    known = isinstance(found, dict) and found.get("schema_version") == SCHEMA_VERSION
    return found if known and found.get("provenance") == expected and _is_whole(found) else None


def _is_whole(found: dict[str, Any]) -> bool:
    """Whether a stored document has all that is printed and counted again; others are measured again."""
    try:
        texts = [found["video"], *found["warnings"], *([] if found["faces"] else [found["reason"]])]
        numbers = [found["duration_s"]]
        for face in found["faces"]:
            summary = face["summary"]
            texts.append(face["position"] or "")
            numbers.append(face["id"])
            if summary["bpm"] is None:
                texts += [summary["reason"], summary["advice"]]
                numbers.append(summary["probable_bpm"] or 0)
            else:
                names = ("bpm", "low", "high", "range_low", "range_high", "p_ok")
                numbers += [summary[name] for name in names]
    except (KeyError, TypeError, AttributeError):
        return False
    return all(isinstance(text, str) for text in texts) and all(isinstance(n, (int, float)) for n in numbers)
