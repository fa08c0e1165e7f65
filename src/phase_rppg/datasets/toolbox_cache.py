"""Read and write the preprocessed clips of the rPPG-Toolbox.

    FOLDER/subject1_input0.npy      (T,H,W,C) frames of the first clip of the recording subject1
    FOLDER/subject1_label0.npy      (T,) its label
    LIST.csv                        the column input_files: the clips of a split

Reading joins the clips of a recording and stores them as an entry of our cache, for training and evaluation.
The clips must hold plain pixels (DATA_TYPE Raw), because our networks normalise pixels themselves. Writing
cuts entries of our cache into clips, with the normalisations of the toolbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import limits
from ..errors import ArgumentError, InputError
from ..fileio import atomic_path, check_regular, map_array, read_csv_rows, write_text
from ..types import ByteArray, FloatArray
from . import cache
from .base import natural_key

NORMALISATIONS = ("Raw", "DiffNormalized", "Standardized")
_INPUT = re.compile(r"^(.+)_input(\d{1,9})\.npy$")
_TINY = 1e-7
_PIECE_VALUES = 1 << 24  # converted at once
_MAX_FPS = 1000.0


@dataclass(frozen=True)
class CachedRecording:
    """The clips of one recording in a folder of the rPPG-Toolbox."""

    name: str
    inputs: tuple[Path, ...]  # in the order of time

    @property
    def labels(self) -> tuple[Path, ...]:
        return tuple(path.with_name(path.name.replace("_input", "_label")) for path in self.inputs)


def find_recordings(folder: Path, file_list: Path | None = None) -> list[CachedRecording]:
    """Return the recordings in a folder, or those of a file list, in natural order.

    A list names files by the paths of the computer that wrote it; only the names of the files are used.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    names = [p.name for p in folder.iterdir()] if file_list is None else read_file_list(file_list)
    clips: dict[str, dict[int, Path]] = {}
    for name in names:
        if match := _INPUT.match(name):
            clips.setdefault(match.group(1), {})[int(match.group(2))] = folder / name
    if not clips:
        raise InputError(
            f"{folder}: no clips of the rPPG-Toolbox; expected NAME_input0.npy + NAME_label0.npy"
        )
    return [
        CachedRecording(name, tuple(parts[index] for index in sorted(parts)))
        for name, parts in sorted(clips.items(), key=lambda item: natural_key(item[0]))
    ]


def read_file_list(path: Path) -> list[str]:
    """Return the names of the files in the column input_files."""
    rows = read_csv_rows(path, "label_mb", int(limits.current().manifest_rows), "manifest_rows")
    columns = next(rows, [])
    if "input_files" not in columns:
        raise InputError(f"{path}: has no column input_files")
    at = columns.index("input_files")
    return [re.split(r"[\\/]", row[at])[-1] for row in rows if at < len(row)]


def clips_of(recording: CachedRecording) -> Iterator[tuple[ByteArray, FloatArray]]:
    """Yield pixels (T,S,S,3) u8 and label (T,) of each clip; a long clip in several pieces."""
    gain = 0.0
    for source, label in zip(recording.inputs, recording.labels, strict=True):
        frames, values = map_array(source, 4, "mat_values"), map_array(label, 1, "samples")
        if frames.shape[3] != 3 or frames.shape[1] != frames.shape[2] or not frames.shape[1]:
            raise InputError(f"{source}: has the shape {frames.shape}, accepted: (T,S,S,3), DATA_TYPE Raw")
        if len(values) != len(frames):
            raise InputError(f"{label}: has {len(values)} values for {len(frames)} frames")
        if not len(frames) or not np.isfinite(values).all():
            raise InputError(f"{label}: is empty, or holds NaN or infinity")
        low, high = float(frames.min()), float(frames.max())
        gain = gain or (255.0 if high <= 1 else 1.0)
        if not (low >= 0 and high * gain < 255.5):
            raise InputError(
                f"{source}: holds values from {low:.3g} to {high:.3g}, not pixels; "
                "preprocess with DATA_TYPE: ['Raw']"
            )
        most = max(1, _PIECE_VALUES // frames[0].size)
        for start in range(0, len(frames), most):
            piece = slice(start, start + most)
            yield np.rint(frames[piece] * gain).astype(np.uint8), np.asarray(values[piece], np.float64)


def subject_of(dataset: str, name: str) -> str:
    """Return the subject of a recording with the name that the rPPG-Toolbox gives it.

    PURE is numbered 101 … 1006 (subject and task); other names begin with the subject.
    """
    if dataset == "pure" and name.isdecimal() and len(name) > 2:
        return f"{int(name[:-2]):02d}"
    return name.split("_")[0]


@dataclass(frozen=True)
class ImportOptions:
    """How clips of the rPPG-Toolbox become entries."""

    dataset: str
    fps: float = 30.0
    target: str = ""  # of the labels: "wave" or "difference"; by default as the folder's name says

    def __post_init__(self) -> None:
        if not 0 < self.fps <= _MAX_FPS:
            raise ArgumentError("--fps", self.fps, f"a rate above 0, up to {_MAX_FPS:g}")


def import_recording(recording: CachedRecording, out: Path, options: ImportOptions) -> Path:
    """Write one recording as an entry of our cache and return its folder."""
    folder = recording.inputs[0].parent
    target = options.target or ("difference" if "LabelTypeDiffNormalized" in folder.name else "wave")
    if target not in ("wave", "difference"):
        raise ArgumentError("--target", target, "wave or difference")
    for path in (*recording.inputs, *recording.labels):
        check_regular(path)
    size = map_array(recording.inputs[0], 4, "mat_values").shape[1]
    names = [cache.fingerprint(path) for path in (*recording.inputs, *recording.labels)]
    key = cache.cache_key({"toolbox": names, "target": target, "fps": options.fps})
    place = cache.entry_path(out, options.dataset, recording.name, key)
    with cache.write_entry(place, size) as writer:
        labels = []
        for pixels, label in clips_of(recording):
            if pixels.shape[1] != size:
                raise InputError(f"{recording.name}: its clips have different sizes")
            writer.add(pixels)
            labels.append(label)
        wave = np.concatenate(labels)
        with np.errstate(over="ignore"):
            if target == "difference":
                wave = np.concatenate([[0.0], np.cumsum(wave[:-1])])
            if not np.isfinite(wave.astype(np.float32)).all():
                raise InputError(f"{recording.name}: its label has values that are too large")
        header = {
            "dataset": options.dataset,
            "subject": subject_of(options.dataset, recording.name),
            "name": recording.name,
            "conditions": {"cache": "rPPG-Toolbox"},
            "key": key,
            "fps": options.fps,
            "start_s": 0.0,
        }
        boxes = np.tile(np.array([0, 0, size, size], np.float32), (len(wave), 1))
        writer.finish(header, wave, np.ones(len(wave), bool), boxes)
    return place


@dataclass(frozen=True)
class ExportOptions:
    """How entries of our cache become clips of the rPPG-Toolbox."""

    frames: int = 180
    inputs: tuple[str, ...] = ("Raw",)
    label: str = "Raw"

    def __post_init__(self) -> None:
        for name in (*self.inputs, self.label):
            if name not in NORMALISATIONS:
                raise ArgumentError("normalisation", name, ", ".join(NORMALISATIONS))
        if self.frames < 2:
            raise ArgumentError("--frames", self.frames, "at least 2")


def export_entry(entry: cache.Entry, folder: Path, options: ExportOptions) -> list[Path]:
    """Write the clips of one entry; clips with frames that are not valid are left out."""
    frames = np.asarray(entry.pixels, np.float32)
    data = np.concatenate([normalise(frames, kind) for kind in options.inputs], axis=3)
    label = normalise(np.asarray(entry.wave, np.float64), options.label)
    valid, name = entry.valid, re.sub(r"[^A-Za-z0-9-]+", "-", entry.name)
    written: list[Path] = []
    for start in range(0, len(data) - options.frames + 1, options.frames):
        part = slice(start, start + options.frames)
        if valid[part].all():
            path = folder / f"{name}_input{len(written)}.npy"
            _save(path, data[part].astype(np.float32))
            _save(path.with_name(f"{name}_label{len(written)}.npy"), label[part])
            written.append(path)
    return written


def normalise(values: FloatArray, kind: str) -> FloatArray:
    """Return frames (T,H,W,C) or a label (T,) in a normalisation of the rPPG-Toolbox, over the recording."""
    if kind == "Raw":
        return values
    if kind == "Standardized":
        return (values - values.mean()) / max(float(values.std()), _TINY)
    change = np.diff(values, axis=0)
    if values.ndim > 1:
        change = change / (values[1:] + values[:-1] + _TINY)
    change = change / max(float(change.std()), _TINY)
    return np.concatenate([change, np.zeros_like(values[:1])])  # as many rows as before


def write_file_list(path: Path, inputs: Sequence[Path]) -> None:
    """Write the list of clips that the rPPG-Toolbox reads: an index and the column input_files."""
    rows = [f"{index},{file.resolve()}" for index, file in enumerate(inputs)]
    write_text(path, "\n".join([",input_files", *rows]) + "\n")


def _save(path: Path, values: FloatArray) -> None:
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.save(file, values, allow_pickle=False)
