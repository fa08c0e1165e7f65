"""MATLAB files of any version, and a video inside one read in bounded memory.

MATLAB stores columns first: in a video of shape (T,H,W,3) the values of one pixel over time lie together, so
no frame can be read without passing over the whole array. A v5 file is therefore unpacked block by block into
a temporary file of bytes; a v7.3 file (HDF5) is read in slices of time.
"""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..errors import RecordingError
from ..types import ByteArray, FloatArray, Frame

_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_UINT8_CLASS = 9
_PIXELS_PER_BLOCK = 4096
_FRAMES_PER_SLICE = 64

Read = Callable[[int], bytes]


def read(name: str, path: Path, fields: tuple[str, ...]) -> dict[str, Any]:
    """The named variables of a MATLAB file (structs as dicts); a missing one is an error with its name."""
    with _damage_named(name, path):
        content = _read_hdf5(name, path, fields) if is_v73(path) else _read_v5(path, fields)
    if missing := [f for f in fields if f not in content]:
        raise RecordingError(name, f"{path.name} has no field {', '.join(missing)}")
    return content


@contextlib.contextmanager
def _damage_named(name: str, path: Path) -> Iterator[None]:
    """scipy and h5py raise whatever they stumble over in a damaged file; all of it means the same here."""
    try:
        yield
    except RecordingError:
        raise
    except Exception as error:
        raise RecordingError(name, f"{path.name} is not a readable MATLAB file ({error})") from error


def is_v73(path: Path) -> bool:
    with open(path, "rb") as file:
        head = file.read(520)
    return head.startswith(b"MATLAB 7.3") or b"\x89HDF\r\n\x1a\n" in head


def _read_v5(path: Path, fields: tuple[str, ...]) -> dict[str, Any]:
    from scipy.io import loadmat

    return dict(loadmat(path, variable_names=fields, simplify_cells=True))


def _read_hdf5(name: str, path: Path, fields: tuple[str, ...]) -> dict[str, Any]:
    with _open_hdf5(name, path) as file:
        return {f: _from_hdf5(file[f]) for f in fields if f in file}


def _open_hdf5(name: str, path: Path) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise RecordingError(
            name, f"{path.name} is a MATLAB v7.3 file; reading it needs h5py: pip install 'phase-rppg[mat73]'"
        ) from error
    return h5py.File(path, "r")


def _from_hdf5(node: Any) -> Any:
    if hasattr(node, "keys"):
        return {key: _from_hdf5(node[key]) for key in node}
    values = np.asarray(node[()]).T  # HDF5 holds MATLAB's axes reversed
    if node.attrs.get("MATLAB_class") == b"char":
        return "".join(map(chr, values.ravel(order="F").astype(int)))
    return values.squeeze()[()]


@dataclass(frozen=True, slots=True)
class MatVideo:
    """A video stored as an array (T,H,W,3), 0–1 or 0–255, in a MATLAB file."""

    path: Path
    name: str  # of the recording, for messages
    fps: float
    field: str = "video"

    def frames(self) -> Iterator[Frame]:
        pictures = self._from_hdf5() if is_v73(self.path) else self._from_v5()
        for index, rgb in enumerate(pictures):
            yield Frame(rgb, index / self.fps)

    def count(self) -> int:
        """The number of frames, from the header alone."""
        return self._shape()[0]

    def _shape(self) -> tuple[int, ...]:
        with _damage_named(self.name, self.path):
            if is_v73(self.path):
                with _open_hdf5(self.name, self.path) as file:
                    shape = tuple(reversed(file[self.field].shape)) if self.field in file else ()
            else:
                from scipy.io import whosmat

                shape = next((tuple(s) for n, s, _ in whosmat(self.path) if n == self.field), ())
        return self._checked(shape)

    def _checked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not shape:
            raise RecordingError(self.name, f"{self.path.name} has no field {self.field}")
        if len(shape) != 4 or shape[3] != 3 or 0 in shape:
            raise RecordingError(
                self.name, f"{self.field} has the shape {shape}, not (frames, height, width, 3)"
            )
        return shape

    def _from_hdf5(self) -> Iterator[ByteArray]:
        with _open_hdf5(self.name, self.path) as file:
            count = self._shape()[0]
            data = file[self.field]  # (3,W,H,T)
            scale = _Scale(self.name, is_bytes=data.dtype == np.uint8)
            for start in range(0, count, _FRAMES_PER_SLICE):
                part = scale(data[..., start : start + _FRAMES_PER_SLICE])
                yield from np.ascontiguousarray(part.transpose(3, 2, 1, 0))

    def _from_v5(self) -> Iterator[ByteArray]:
        with open(self.path, "rb") as file, tempfile.TemporaryFile(prefix="phase-mat-") as spill:
            try:
                is_bytes, shape, stored, read = _seek_variable(file, self.field)
                frames, height, width, channels = self._checked(shape)
                pixels = height * width * channels
                unpacked = np.memmap(spill, np.uint8, "w+", shape=(frames, pixels))
                scale = _Scale(self.name, is_bytes)
                for start in range(0, pixels, _PIXELS_PER_BLOCK):
                    block = min(_PIXELS_PER_BLOCK, pixels - start)
                    values = np.frombuffer(read(block * frames * stored.itemsize), stored)
                    unpacked[:, start : start + block] = scale(values.reshape(block, frames)).T
            except (EOFError, ValueError, zlib.error) as error:
                raise RecordingError(
                    self.name, f"{self.path.name} is damaged or cut off ({error})"
                ) from error
            for row in unpacked:  # (3·W·H,) columns first
                yield np.ascontiguousarray(row.reshape(channels, width, height).transpose(2, 1, 0))


class _Scale:
    """0–1 or 0–255 into bytes; which of the two is decided by the first block and then held to."""

    def __init__(self, name: str, is_bytes: bool) -> None:
        self.name, self.gain = name, 1.0 if is_bytes else 0.0

    def __call__(self, values: npt.NDArray[Any]) -> ByteArray:
        if values.dtype == np.uint8 and self.gain == 1:
            return values
        top = float(values.max())
        if not self.gain:
            self.gain = 255.0 if top <= 1 else 1.0
        if not float(values.min()) >= 0 or not top * self.gain < 255.5:
            raise RecordingError(self.name, "the video has pixel values beyond both 0–1 and 0–255")
        scaled: FloatArray = values * self.gain
        return np.rint(scaled).astype(np.uint8)


def _seek_variable(file: BinaryIO, wanted: str) -> tuple[bool, tuple[int, ...], np.dtype[Any], Read]:
    """Is it uint8, its shape, the type it is stored in, and a reader that stands at the first value."""
    head = file.read(128)
    order = "<" if head[126:128] == b"IM" else ">"
    integer = np.dtype(f"{order}u4")
    while len(tag := file.read(8)) == 8:
        kind, size = (int(v) for v in np.frombuffer(tag, integer))
        after = file.tell() + size
        if kind == _COMPRESSED:
            read = _inflater(file, size)
            kind, _ = (int(v) for v in np.frombuffer(read(8), integer))
        else:
            read = _exactly(file)
        if kind == _MATRIX:
            flags = np.frombuffer(_element(read, integer)[1], integer)
            shape = tuple(int(v) for v in np.frombuffer(_element(read, integer)[1], f"{order}i4"))
            name = _element(read, integer)[1].decode("latin-1")
            if name == wanted:
                stored, _ = _tag(read, integer)
                if stored not in _STORED:
                    raise ValueError(f"{wanted} is not a numeric array")
                return int(flags[0]) & 0xFF == _UINT8_CLASS, shape, np.dtype(order + _STORED[stored]), read
        file.seek(after)
    raise ValueError(f"no field {wanted}")


def _tag(read: Read, integer: np.dtype[Any]) -> tuple[int, int]:
    kind, size = (int(v) for v in np.frombuffer(read(8), integer))
    return kind, size


def _element(read: Read, integer: np.dtype[Any]) -> tuple[int, bytes]:
    """One small sub-element: its type and content (up to four bytes are packed into the tag itself)."""
    tag = read(8)
    kind, size = (int(v) for v in np.frombuffer(tag, integer))
    if kind >> 16:
        return kind & 0xFFFF, tag[4 : 4 + (kind >> 16)]
    return kind, read(size + -size % 8)[:size]


def _exactly(file: BinaryIO) -> Read:
    def read(count: int) -> bytes:
        data = file.read(count)
        if len(data) < count:
            raise EOFError("the file ends too early")
        return data

    return read


def _inflater(file: BinaryIO, size: int) -> Read:
    """Read from a compressed element piece by piece."""
    engine = zlib.decompressobj()
    left = size

    def read(count: int) -> bytes:
        nonlocal left
        parts, missing = [], count
        while missing:
            source = engine.unconsumed_tail
            if not source:
                source = file.read(min(1 << 16, left))
                left -= len(source)
            part = engine.decompress(source, missing)
            if not part and not source:
                raise EOFError("the compressed data ends too early")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    return read
