"""The cache of prepared clips. The key of an entry is a digest of its sources; its files have checksums.

    CACHE/ubfc_rppg/subject3-1f0c9a…/     the key is a digest of files, settings and format
        pixels.u8       (T,S,S,3) bytes
        wave.npy        (T,) f32, the reference on the same clock
        valid.npy       (T,) bool: a face was detected and the reference is valid
        boxes.npy       (T,4) f32, crop position: x, y, width, height
        entry.json      the description, the checksums of all files and of itself

An entry is written atomically.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import fileio
from ..errors import InputError
from ..fileio import (
    check_regular,
    dump_json,
    read_array,
    read_json,
    sha256,
    temporary_prefix,
    umask,
    write_text,
    writing,
)
from ..types import BoolArray, ByteArray, Clip, FloatArray

FORMAT = 3
_HEADER = "entry.json"
_WHOLE_BYTES = 64 << 20  # the digest covers all bytes of files up to this size
_SAMPLES = 64  # for larger files it covers this many evenly spaced blocks, and the size
_BLOCK_BYTES = 1 << 20
_MAX_NAME_BYTES = 150  # of a recording, in the name of its entry


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One prepared recording."""

    path: Path
    dataset: str
    subject: str
    name: str
    conditions: Mapping[str, str]
    key: str
    fps: float
    size: int
    frames: int
    start_s: float
    coverage: float  # 0–1: share of the frames that are valid

    @property
    def pixels(self) -> ByteArray:
        """The pixels (T,S,S,3) u8 as a memory map."""
        shape = (self.frames, self.size, self.size, 3)
        file = self.path / "pixels.u8"
        if check_regular(file).st_size != math.prod(shape):
            raise InputError(f"{file}: is damaged; prepare the recording again")
        return np.memmap(file, np.uint8, "r", shape=shape)

    @property
    def wave(self) -> FloatArray:
        return read_array(self.path / "wave.npy", np.float32, (self.frames,))

    @property
    def valid(self) -> BoolArray:
        return read_array(self.path / "valid.npy", bool, (self.frames,))

    @property
    def boxes(self) -> FloatArray:
        return read_array(self.path / "boxes.npy", np.float32, (self.frames, 4))

    @property
    def t_s(self) -> FloatArray:
        return self.start_s + np.arange(self.frames) / self.fps

    def clip(self, start: int = 0, stop: int | None = None) -> Clip:
        """Read a range of frames into memory as a clip."""
        part = slice(start, stop)
        return Clip(np.array(self.pixels[part]), self.t_s[part], self.fps, self.valid[part])


class EntryWriter:
    """Write one entry frame by frame, in bounded memory; errors name `target`, where the entry will be."""

    def __init__(self, folder: Path, size: int, target: Path) -> None:
        self.folder, self.size, self.target = folder, size, target
        self.frames = 0
        self._digest = hashlib.sha256()
        self._pixels = open(folder / "pixels.u8", "wb")  # noqa: SIM115 — closed by `close`
        self._finished = False

    def add(self, pixels: ByteArray) -> None:
        """Append one picture (S,S,3) or several (T,S,S,3)."""
        data = np.ascontiguousarray(pixels, np.uint8)
        if data.shape[-3:] != (self.size, self.size, 3):
            raise ValueError(f"pixels have the shape {data.shape}, the entry is of size {self.size}")
        with writing(self.target):
            self._pixels.write(data.data)
        self._digest.update(data.data)
        self.frames += data.size // (self.size * self.size * 3)

    def finish(
        self, header: Mapping[str, Any], wave: FloatArray, valid: BoolArray, boxes: FloatArray
    ) -> None:
        """Write the arrays and the header; `header` describes the recording."""
        with writing(self.target):
            self._pixels.close()
        arrays = {
            "wave": wave.astype(np.float32),
            "valid": valid.astype(bool),
            "boxes": boxes.astype(np.float32),
        }
        digests = {"pixels.u8": self._digest.hexdigest()}
        for name, values in arrays.items():
            if len(values) != self.frames:
                raise ValueError(f"{name} has {len(values)} rows for {self.frames} frames")
            with writing(self.target):
                np.save(self.folder / f"{name}.npy", values, allow_pickle=False)
            digests[f"{name}.npy"] = sha256(self.folder / f"{name}.npy")
        content = dict(header) | {
            "format": FORMAT,
            "size": self.size,
            "frames": self.frames,
            "coverage": float(np.mean(valid)) if len(valid) else 0.0,
            "files": digests,
        }
        content["checksum"] = _own_checksum(content)
        write_text(self.folder / _HEADER, dump_json(content) + "\n")
        self._finished = True

    def close(self) -> None:
        with contextlib.suppress(OSError):  # closing writes the rest of the buffer, which may fail again
            self._pixels.close()

    @property
    def finished(self) -> bool:
        return self._finished


@contextlib.contextmanager
def write_entry(target: Path, size: int) -> Iterator[EntryWriter]:
    """Write an entry to a temporary folder and move it to `target` when it is finished, else remove it."""
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=temporary_prefix(target.name), dir=target.parent))
    try:
        with writing(target):
            os.chmod(building, 0o777 & ~umask())
            writer = EntryWriter(building, size, target)
        try:
            yield writer
        finally:
            writer.close()
        if writer.finished:
            shutil.rmtree(target, ignore_errors=True)
            with writing(target):
                os.replace(building, target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def open_entry(path: Path, *, verify: bool = True) -> Entry:
    """Open one entry; a damaged entry raises an InputError."""
    content = read_json(path / _HEADER)
    try:
        if content["checksum"] != _own_checksum(content):
            raise InputError(f"{path}: {_HEADER} was changed; prepare the recording again")
        if content["format"] != FORMAT:
            raise InputError(f"{path}: written by another version; prepare the recording again")
        entry = Entry(
            path,
            **{name: content[name] for name in Entry.__dataclass_fields__ if name != "path"},
        )
        digests: dict[str, str] = dict(content["files"])
        if not _has_valid_types(entry):
            raise ValueError("a field has the wrong type")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: {_HEADER} is not an entry of this cache ({error})") from error
    for name, digest in digests.items():
        if Path(name).name != name:
            raise InputError(f"{path}: {_HEADER} names a file in another folder")
        file = path / name
        if not file.is_file() or (verify and sha256(file) != digest):
            raise InputError(f"{path}: {name} is damaged or missing; prepare the recording again")
    return entry


def open_cache(root: str | Path, dataset: str | None = None, *, verify: bool = False) -> list[Entry]:
    """Return the entries of a cache, or of one data set, in natural order of data set, subject and name."""
    from .base import natural_key

    root = Path(root)
    pattern = f"{dataset or '*'}/*/{_HEADER}"
    folders = [p.parent for p in root.glob(pattern) if not p.parent.name.startswith(".")]
    if not folders:
        raise InputError(
            f"{root}: no prepared recordings{f' of {dataset}' if dataset else ''}; run `phase prepare`"
        )
    entries = [open_entry(folder, verify=verify) for folder in folders]
    return sorted(entries, key=lambda e: (e.dataset, natural_key(e.subject), natural_key(e.name)))


def entry_path(root: str | Path, dataset: str, name: str, key: str) -> Path:
    """Return the folder of the entry with this key."""
    readable = re.sub(r"[^\w.-]+", "_", name).encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    return Path(root) / dataset / f"{readable}-{key[:16]}"


def cache_key(facts: Mapping[str, Any]) -> str:
    """Return the digest of everything that determines an entry."""
    return hashlib.sha256(dump_json({"format": FORMAT, **facts}, indent=None).encode()).hexdigest()


def fingerprint(path: Path) -> str:
    """Return a digest of a file or of the files in a folder.

    It covers all bytes of small files, and the sizes and evenly spaced blocks of large ones.
    """
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    sizes = [p.stat().st_size for p in files]
    digest = hashlib.sha256()
    for file, size in zip(files, sizes, strict=True):
        digest.update(f"{file.name if path.is_dir() else ''}:{size};".encode())
    if sum(sizes) <= _WHOLE_BYTES:
        chosen = [(file, 0, size) for file, size in zip(files, sizes, strict=True)]
    elif len(files) > 1:
        every = max(1, len(files) // _SAMPLES)
        chosen = [
            (file, 0, min(size, _BLOCK_BYTES)) for file, size in list(zip(files, sizes, strict=True))[::every]
        ]
    else:
        starts = np.linspace(0, sizes[0] - _BLOCK_BYTES, _SAMPLES).astype(int)
        chosen = [(files[0], int(start), _BLOCK_BYTES) for start in starts]
    for file, start, length in chosen:
        with open(file, "rb") as handle:
            handle.seek(start)
            digest.update(handle.read(length))
    return digest.hexdigest()


def remove_abandoned(root: str | Path) -> None:
    """Remove the unfinished entries of killed processes."""
    for folder in Path(root).glob("*/"):
        fileio.remove_abandoned(folder)


def _has_valid_types(entry: Entry) -> bool:
    texts = (entry.dataset, entry.subject, entry.name, entry.key)
    numbers = (entry.fps, entry.start_s, entry.coverage)
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(n, (int, float)) and abs(n) < 1e300 for n in numbers)
        and all(isinstance(n, int) and n >= 0 for n in (entry.frames, entry.size))
        and entry.fps > 0
        and isinstance(entry.conditions, dict)
    )


def _own_checksum(content: Mapping[str, Any]) -> str:
    bare = {k: v for k, v in content.items() if k != "checksum"}
    return hashlib.sha256(dump_json(bare, indent=None).encode()).hexdigest()


def longest_run(valid: BoolArray) -> int:
    """Return the length of the longest run of valid frames."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], valid.astype(np.int8), [0]])))
    return int(np.diff(edges)[::2].max(initial=0))
