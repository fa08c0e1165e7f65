"""Prepared clips on the disk: found by what they were made from, checked by checksum, read as a memory map.

    CACHE/ubfc_rppg/subject3-1f0c9a…/     the key is a digest of the files, the settings and the format
        pixels.u8       (T,S,S,3) bytes
        wave.npy        (T,) f32, the reference on the same clock
        valid.npy       (T,) bool: a face was seen and the reference is there
        boxes.npy       (T,4) f32, where the crop was: x, y, width, height
        entry.json      what it is, and the checksum of every file and of itself

An entry appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, OutputError
from ..fileio import dump_json, read_json, sha256, write_text
from ..types import BoolArray, ByteArray, Clip, FloatArray

FORMAT = 2
_HEADER = "entry.json"
_BUILDING = ".building-"
_WHOLE_BYTES = 64 << 20  # files up to this size are digested whole
_SAMPLES = 64  # larger ones by this many blocks, evenly spread, and their size
_BLOCK_BYTES = 1 << 20
_ABANDONED_S = 600.0


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
        """(T,S,S,3) u8, read from the disk only where it is looked at."""
        shape = (self.frames, self.size, self.size, 3)
        return np.memmap(self.path / "pixels.u8", np.uint8, "r", shape=shape)

    @property
    def wave(self) -> FloatArray:
        values: FloatArray = np.load(self.path / "wave.npy", allow_pickle=False)
        return values

    @property
    def valid(self) -> BoolArray:
        values: BoolArray = np.load(self.path / "valid.npy", allow_pickle=False)
        return values

    @property
    def boxes(self) -> FloatArray:
        values: FloatArray = np.load(self.path / "boxes.npy", allow_pickle=False)
        return values

    @property
    def t_s(self) -> FloatArray:
        return self.start_s + np.arange(self.frames) / self.fps

    def clip(self, start: int = 0, stop: int | None = None) -> Clip:
        """A stretch of it as a clip in memory."""
        part = slice(start, stop)
        return Clip(np.array(self.pixels[part]), self.t_s[part], self.fps, self.valid[part])


class Writer:
    """Collects one entry, frame by frame, in bounded memory."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self.frames = 0
        self._digest = hashlib.sha256()
        self._pixels = open(folder / "pixels.u8", "wb")  # noqa: SIM115 — closed by `close`
        self._finished = False

    def add(self, pixels: ByteArray) -> None:
        """One picture (S,S,3) or several (T,S,S,3)."""
        data = np.ascontiguousarray(pixels, np.uint8)
        if data.shape[-3:] != (self.size, self.size, 3):
            raise ValueError(f"pixels have the shape {data.shape}, the entry is of size {self.size}")
        self._pixels.write(data.data)
        self._digest.update(data.data)
        self.frames += data.size // (self.size * self.size * 3)

    def finish(
        self, header: Mapping[str, Any], wave: FloatArray, valid: BoolArray, boxes: FloatArray
    ) -> None:
        """Write the rest; `header` says which recording it is."""
        self.close()
        arrays = {
            "wave": wave.astype(np.float32),
            "valid": valid.astype(bool),
            "boxes": boxes.astype(np.float32),
        }
        digests = {"pixels.u8": self._digest.hexdigest()}
        for name, values in arrays.items():
            if len(values) != self.frames:
                raise ValueError(f"{name} has {len(values)} rows for {self.frames} frames")
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
        self._pixels.close()

    @property
    def finished(self) -> bool:
        return self._finished


@contextlib.contextmanager
def writing(target: Path, size: int) -> Iterator[Writer]:
    """Build an entry beside its place and move it there when it is finished; else leave no trace."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        building = target.parent / f"{_BUILDING}{os.getpid()}-{target.name}"
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
    except OSError as error:
        raise OutputError(target, error.strerror or str(error)) from error
    writer = Writer(building, size)
    try:
        yield writer
        if writer.finished:
            shutil.rmtree(target, ignore_errors=True)
            os.replace(building, target)
    except OSError as error:
        raise OutputError(target, error.strerror or str(error)) from error
    finally:
        writer.close()
        shutil.rmtree(building, ignore_errors=True)


def open_entry(path: Path, *, verify: bool = True) -> Entry:
    """Open one entry; a damaged one is refused with what is wrong about it."""
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
        digests: dict[str, str] = content["files"]
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: {_HEADER} is not an entry of this cache ({error})") from error
    for name, digest in digests.items():
        file = path / name
        if not file.is_file() or (verify and sha256(file) != digest):
            raise InputError(f"{path}: {name} is damaged or missing; prepare the recording again")
    return entry


def open_cache(root: str | Path, dataset: str | None = None, *, verify: bool = False) -> list[Entry]:
    """Every entry of a cache (or of one data set in it), in natural order of data set, subject and name."""
    from .base import natural_key

    root = Path(root)
    pattern = f"{dataset or '*'}/*/{_HEADER}"
    folders = [p.parent for p in root.glob(pattern) if not p.parent.name.startswith(_BUILDING)]
    if not folders:
        raise InputError(
            f"{root}: no prepared recordings{f' of {dataset}' if dataset else ''}; run `phase prepare`"
        )
    entries = [open_entry(folder, verify=verify) for folder in folders]
    return sorted(entries, key=lambda e: (e.dataset, natural_key(e.subject), natural_key(e.name)))


def place(root: str | Path, dataset: str, name: str, key: str) -> Path:
    """Where the entry with this key belongs."""
    readable = re.sub(r"[^\w.-]+", "_", name)
    return Path(root) / dataset / f"{readable}-{key[:16]}"


def key_of(facts: Mapping[str, Any]) -> str:
    """The digest of everything an entry is made from."""
    return hashlib.sha256(dump_json({"format": FORMAT, **facts}, indent=None).encode()).hexdigest()


def fingerprint(path: Path) -> str:
    """A digest of a file or a folder's files: whole if small, of sizes and evenly spread samples if large."""
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


def sweep(root: str | Path) -> None:
    """Remove what killed runs left behind: builds into which nothing was written for a while."""
    for leftover in Path(root).glob(f"*/{_BUILDING}*"):
        with contextlib.suppress(OSError):
            newest_s = max(p.stat().st_mtime for p in [leftover, *leftover.iterdir()])
            if time.time() - newest_s > _ABANDONED_S:
                shutil.rmtree(leftover, ignore_errors=True)


def _own_checksum(content: Mapping[str, Any]) -> str:
    bare = {k: v for k, v in content.items() if k != "checksum"}
    return hashlib.sha256(dump_json(bare, indent=None).encode()).hexdigest()
