"""Your own recordings: a folder of videos with CSV references, and a small manifest if you want one.

    manifest.csv            video,reference,subject,light        ← further columns are conditions
                            anna.mp4,anna.csv,anna,daylight
    anna.csv                t_s,ppg                              ← seconds on the video's clock
                            0.000,0.12

Without a manifest every `X.mp4` with an `X.csv` beside it is a recording, and each is its own subject. The
label files of UBFC-rPPG (.txt, .xmp) and PURE (.json) are accepted as references too.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from ..errors import DatasetLayoutError, RecordingError
from ..types import FrameSource
from . import pure, ubfc_rppg
from .base import VIDEO_SUFFIXES, Found, Reference, Retimed, files, open_file

NAME = "folder"
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
        beside = [video.with_suffix(s) for s in _REFERENCE_SUFFIXES if video.with_suffix(s).exists()]
        if beside:
            found.append(pair(video, beside[0]))
    return found


def pair(video: Path, reference: Path, *, name: str = "", subject: str = "") -> Found:
    """One video and its reference as a recording of its own."""
    return Found(subject or video.stem, name or video.stem, video, reference)


def _from_manifest(root: Path) -> list[Found]:
    with open(root / MANIFEST, newline="", encoding="utf-8-sig") as file:
        table = csv.DictReader(file)
        columns = [c.strip() for c in table.fieldnames or []]
        table.fieldnames = columns
        if missing := {"video", "reference"} - set(columns):
            wanted = ", ".join(sorted(missing))
            raise DatasetLayoutError(root / MANIFEST, f"a column {wanted}", columns)
        rows = [{k: (v or "").strip() for k, v in row.items() if k} for row in table]
    found = []
    for row in rows:
        video, reference = root / row.pop("video"), root / row.pop("reference")
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
            raise RecordingError(
                found.name, f"{found.reference.name} does not say when the first picture was taken"
            )
        return pure.reference_of(found.name, package, stamps_ns[0])
    if suffix in (".txt", ".xmp"):
        return ubfc_rppg.read_label(found.name, found.reference)
    return _read_csv(found)


def _read_csv(found: Found) -> Reference:
    with open(found.reference, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    time_at = next((header.index(c) for c in _TIME_COLUMNS if c in header), None)
    value_at = next((header.index(c) for c in _VALUE_COLUMNS if c in header), None)
    if time_at is None or value_at is None:
        raise RecordingError(
            found.name,
            f"{found.reference.name} needs a header with t_s and ppg; found {', '.join(header) or 'nothing'}",
        )
    try:
        table = np.array([[float(row[time_at]), float(row[value_at])] for row in rows[1:]])
    except (ValueError, IndexError) as error:
        raise RecordingError(
            found.name, f"{found.reference.name} is not a table of numbers ({error})"
        ) from error
    table = table.reshape(-1, 2)
    return Reference(table[:, 0], table[:, 1])


def open_video(found: Found) -> FrameSource:
    """The video; with a PURE reference of as many pictures, each frame gets its true time from there."""
    source = open_file(found.video)
    if found.reference.suffix.lower() == ".json":
        package = pure.read_package(found.name, found.reference)
        stamps_ns = np.array(pure.image_stamps_ns(found.name, package), np.int64)
        if len(stamps_ns) == source.info.frame_count:
            return Retimed(source, (stamps_ns - stamps_ns[0]) / 1e9, found.name)
    return source
