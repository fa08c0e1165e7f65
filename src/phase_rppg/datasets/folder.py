"""Read a folder of videos with CSV references, with or without a manifest.

    manifest.csv            video,reference,subject,light        ← further columns are conditions
                            anna.mp4,anna.csv,anna,daylight
    anna.csv                t_s,ppg                              ← seconds on the video's clock
                            0.000,0.12

Without a manifest, each `X.mp4` with an `X.csv` in the same folder is a recording of its own subject. The
label files of UBFC-rPPG (.txt, .xmp) and PURE (.json) are also accepted as references.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .. import limits
from ..errors import DatasetLayoutError, RecordingError
from ..fileio import column_names, read_csv_rows
from ..types import FrameSource
from ..video.suffixes import VIDEO_SUFFIXES
from . import pure, ubfc_rppg
from .base import Found, Reference, RetimedVideo, files, open_file

NAME = "folder"
WRITER = "video"
LAYOUT = (
    "folder: manifest.csv with the columns video,reference,subject (others are conditions), "
    "or X.mp4 + X.csv pairs"
)
MANIFEST = "manifest.csv"
_TIME_COLUMNS = ("t_s", "time_s", "time", "seconds", "t")
_VALUE_COLUMNS = ("ppg", "bvp", "value", "waveform", "pulse", "wave")
_REFERENCE_SUFFIXES = (".csv", ".json", ".txt", ".xmp")


def find(root: Path) -> list[Found]:
    if (root / MANIFEST).exists():
        return _from_manifest(root)
    found = []
    for video in files(root, VIDEO_SUFFIXES):
        references = [video.with_suffix(s) for s in _REFERENCE_SUFFIXES if video.with_suffix(s).exists()]
        if references:
            found.append(pair(video, references[0]))
    return found


def pair(video: Path, reference: Path, *, name: str = "", subject: str = "") -> Found:
    """Return one video and its reference as a recording."""
    return Found(subject or video.stem, name or video.stem, video, reference)


def _from_manifest(root: Path) -> list[Found]:
    table = read_csv_rows(root / MANIFEST, "json_mb", int(limits.current().manifest_rows), "manifest_rows")
    columns = [cell.strip() for cell in next(table, [])]
    if missing := {"video", "reference"} - set(columns):
        wanted = ", ".join(sorted(missing))
        raise DatasetLayoutError(root / MANIFEST, f"a column {wanted}", column_names(columns))
    rows = [{k: v.strip() for k, v in zip(columns, row, strict=False) if k} for row in table]
    found = []
    for row in rows:
        video, reference = root / row.pop("video", ""), root / row.pop("reference", "")
        name, subject = row.pop("name", ""), row.pop("subject", "")
        one = pair(video, reference, name=name, subject=subject)
        found.append(Found(one.subject, one.name, video, reference, {k: v for k, v in row.items() if v}))
    return found


def read_reference(found: Found) -> Reference:
    suffix = found.reference.suffix.lower()
    if suffix == ".json":
        package = pure.read_package(found.name, found.reference)
        stamps_ns = pure.image_stamps_ns(found.name, package)
        if not stamps_ns:
            raise RecordingError(found.name, f"{found.reference.name} has no timestamp of the first picture")
        return pure.reference_of(found.name, package, stamps_ns[0])
    if suffix in (".txt", ".xmp"):
        return ubfc_rppg.read_label(found.name, found.reference)
    return _read_csv(found)


def _read_csv(found: Found) -> Reference:
    rows = read_csv_rows(found.reference, "label_mb", int(limits.current().samples), "samples")
    header = [cell.strip().lower() for cell in next(rows, [])]
    time_at = next((header.index(c) for c in _TIME_COLUMNS if c in header), None)
    value_at = next((header.index(c) for c in _VALUE_COLUMNS if c in header), None)
    if time_at is None or value_at is None:
        raise RecordingError(
            found.name,
            f"{found.reference.name} needs a header with t_s and ppg; "
            f"found {', '.join(column_names(header)) or 'nothing'}",
        )
    columns = (time_at, value_at)
    try:
        numbers = np.fromiter((float(row[at]) for row in rows for at in columns), np.float64)
    except (ValueError, IndexError):
        raise RecordingError(found.name, f"{found.reference.name} is not a table of numbers") from None
    table = numbers.reshape(-1, 2)
    return Reference(table[:, 0], table[:, 1])


def open_video(found: Found) -> FrameSource:
    """Open the video; a PURE reference with one timestamp per frame replaces the times of the container."""
    source = open_file(found.video)
    if found.reference.suffix.lower() == ".json":
        package = pure.read_package(found.name, found.reference)
        stamps_ns = pure.image_stamps_ns(found.name, package)
        if stamps_ns and len(stamps_ns) == source.info.frame_count:
            return RetimedVideo(source, pure.times_s(found.name, stamps_ns), found.name)
    return source
