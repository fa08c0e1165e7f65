"""The waveform and the beats of a result as CSV, EDF+ or WFDB.

EDF+ is written with pyedflib, WFDB with wfdb; both are in the extra `interchange`. There is one signal per
face, and all signals are on one clock that begins at 0 s.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, InputError, OutputError, require
from ..fileio import atomic_path, write_text
from ..session.results import FaceResult, Result
from ..types import BoolArray, FloatArray

WAVE_COLUMNS = ("face", "time_s", "value", "valid")
BEAT_COLUMNS = ("face", "time_s", "ibi_s")
WAVE_SUFFIXES = (".csv", ".edf", ".hea")
_PACKAGES = {".edf": "pyedflib", ".hea": "wfdb"}
_RECORD_NAME = re.compile(r"[A-Za-z0-9_-]+")  # that WFDB accepts
_DIGITAL_MIN, _DIGITAL_MAX = -32768, 32767
_MAX_FACES = 32  # signals in one EDF or WFDB file
_MAX_ANNOTATION_SIGNALS = 64  # of edflib
_NO_DATE = datetime.datetime(1985, 1, 1)  # the first date that EDF can hold: a result has none


def check_wave_name(path: Path) -> None:
    """Refuse a name whose format is unknown, or whose package is not installed, before measuring."""
    suffix = path.suffix.lower()
    if suffix not in WAVE_SUFFIXES:
        raise ArgumentError("--wave", path, f"a name ending in {', '.join(WAVE_SUFFIXES)}")
    if suffix == ".hea" and not _RECORD_NAME.fullmatch(path.stem):
        raise ArgumentError("--wave", path.name, "letters, digits, - and _ before .hea")
    if suffix in _PACKAGES:
        require(_PACKAGES[suffix])


def wave_files(path: Path) -> list[Path]:
    """Return the files that `save_wave` may write: WFDB needs a header, the samples and the beats."""
    if path.suffix.lower() != ".hea":
        return [path]
    return [path, path.with_suffix(".dat"), path.with_suffix(".atr")]


def save_wave(path: str | Path, result: Result) -> None:
    """Write the waveform of each face as CSV, EDF+ or WFDB, by the suffix; beats are annotations."""
    target = Path(path)
    check_wave_name(target)
    if target.suffix.lower() == ".csv":
        write_text(target, wave_csv(result))
        return
    if not any(len(face.wave.values) for face in result.faces):
        raise InputError(f"{target}: not written, because there is no face")
    if target.suffix.lower() == ".edf":
        _save_edf(target, result)
    else:
        _save_wfdb(target, result)


def save_beats(path: str | Path, result: Result) -> None:
    """Write the times of the beats as CSV."""
    write_text(path, beats_csv(result))


def wave_csv(result: Result) -> str:
    """Return CSV text with one row per sample of the waveform; `valid` is 0 where no face was seen."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(WAVE_COLUMNS)
    for face in result.faces:
        wave = face.wave
        for t_s, value, valid in zip(wave.t_s, wave.values, wave.valid, strict=True):
            writer.writerow((face.id, f"{t_s:.4f}", f"{value:.6g}", int(valid)))
    return text.getvalue()


def beats_csv(result: Result) -> str:
    """Return CSV text with one row per beat; `ibi_s` is the time since the previous beat, if it is known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(BEAT_COLUMNS)
    for face in result.faces:
        for t_s, ibi_s in beat_rows(face):
            writer.writerow((face.id, f"{t_s:.4f}", "" if ibi_s is None else f"{ibi_s:.4f}"))
    return text.getvalue()


def beat_rows(face: FaceResult) -> Iterator[tuple[float, float | None]]:
    """Yield the time of each beat and the interval to the beat before it; None if that beat is unknown."""
    for t_s, ibi_s in zip(face.beats_s, face.ibi_s, strict=True):
        yield float(t_s), float(ibi_s) if np.isfinite(ibi_s) else None


def _common_clock(result: Result) -> tuple[FloatArray, BoolArray, float]:
    """Return the waves of all faces (T,F) on one clock from 0 s, where they are valid, and the frame rate."""
    faces = result.faces[:_MAX_FACES]
    fps = faces[0].wave.fps
    starts = [round(face.wave.start_s * fps) for face in faces]
    length = max(start + len(face.wave.values) for start, face in zip(starts, faces, strict=True))
    values, valid = np.zeros((length, len(faces))), np.zeros((length, len(faces)), bool)
    for column, (start, face) in enumerate(zip(starts, faces, strict=True)):
        end = start + len(face.wave.values)
        values[start:end, column] = face.wave.values
        valid[start:end, column] = face.wave.valid
    return values, valid, fps


def _save_edf(target: Path, result: Result) -> None:
    import pyedflib

    values, valid, fps = _common_clock(result)
    annotations = _edf_annotations(result, valid, fps)
    # A record of about a second holds one annotation in each annotation signal.
    per_record = len(annotations) // max(int(len(values) / fps), 1) + 1
    with atomic_path(target) as temporary:
        try:
            with pyedflib.EdfWriter(
                str(temporary), values.shape[1], file_type=pyedflib.FILETYPE_EDFPLUS
            ) as file:
                file.setStartdatetime(_NO_DATE)
                file.setEquipment("phase-rppg")
                file.set_number_of_annotation_signals(min(per_record, _MAX_ANNOTATION_SIGNALS))
                for column, face in enumerate(result.faces[:_MAX_FACES]):
                    file.setSignalHeader(column, _edf_header(face, values[valid[:, column], column], fps))
                file.writeSamples([np.ascontiguousarray(column) for column in values.T])
                for start_s, length_s, text in annotations:
                    file.writeAnnotation(start_s, length_s, text)
        except (OSError, ValueError) as error:
            raise OutputError(target, f"pyedflib: {error}") from error


def _edf_header(face: FaceResult, values: FloatArray, fps: float) -> dict[str, object]:
    reach = float(np.abs(values).max(initial=0.0)) or 1.0
    reach = float(f"{reach * 1.01:.5g}")  # the header has eight characters for it
    return {
        "label": f"PPG face {face.id}",
        "dimension": "a.u.",
        "sample_frequency": fps,
        "physical_min": -reach,
        "physical_max": reach,
        "digital_min": _DIGITAL_MIN,
        "digital_max": _DIGITAL_MAX,
        "transducer": "camera",
        "prefilter": "",
    }


def _edf_annotations(result: Result, valid: BoolArray, fps: float) -> list[tuple[float, float, str]]:
    """Return (start, duration, text) of the beats and of the times without a face, in order."""
    found = []
    for column, face in enumerate(result.faces[:_MAX_FACES]):
        found += [(float(t_s), -1.0, f"beat face {face.id}") for t_s in face.beats_s]
        found += [
            (first / fps, (last - first) / fps, f"invalid face {face.id}")
            for first, last in _runs(~valid[:, column])
        ]
    return sorted(found)


def _runs(where: BoolArray) -> list[tuple[int, int]]:
    """Return (first, end) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], where, [False]]).astype(np.int8)))
    return [(int(first), int(end)) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def _save_wfdb(target: Path, result: Result) -> None:
    values, valid, fps = _common_clock(result)
    faces = result.faces[:_MAX_FACES]
    names = [f"PPG face {face.id}" for face in faces]
    beats = sorted(
        (round(t_s * fps), column) for column, face in enumerate(faces) for t_s in map(float, face.beats_s)
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".wave-", dir=target.parent) as folder, _quiet_import():
            import wfdb

            wfdb.wrsamp(
                target.stem, fs=fps, units=["NU"] * len(names), sig_name=names, fmt=["16"] * len(names),
                p_signal=np.where(valid, values, np.nan), write_dir=folder,
            )  # fmt: skip
            if beats:
                samples, channels = np.array(beats).T
                wfdb.wrann(
                    target.stem, "atr", samples, symbol=["N"] * len(samples), chan=channels, fs=fps,
                    write_dir=folder,
                )  # fmt: skip
            target.with_suffix(".atr").unlink(missing_ok=True)  # of an earlier result with beats
            for name in sorted(os.listdir(folder)):
                os.replace(os.path.join(folder, name), target.parent / name)
    except (OSError, ValueError) as error:
        raise OutputError(target, f"wfdb: {error}") from error


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """Hide warnings of wfdb about its own use of pandas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
