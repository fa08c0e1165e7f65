"""Read MATLAB files of any version, and videos in them in bounded memory.

MATLAB stores arrays in column-major order. In a video of shape (T,H,W,3) the values of one pixel over time
are adjacent, so that reading one frame needs the whole array. A v5 file is therefore unpacked block by block
into a temporary file. A v7.3 file (HDF5) is read in slices of time.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .. import guarded, limits
from ..errors import MissingPackageError, RecordingError, is_installed, require
from ..fileio import open_regular, reserve
from ..types import ByteArray, FloatArray, Frame

_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_UINT8_CLASS = 9
_PIXELS_PER_BLOCK = 4096
_FRAMES_PER_SLICE = 64
_BLOCK_BYTES = 128 << 20  # read at once
_MAX_ELEMENT_BYTES = 4096  # name or shape in the header of a variable

Read = Callable[[int], bytes]


def read(name: str, path: Path, fields: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """Read variables of a MATLAB or HDF5 file (structs as dicts); a missing one raises a RecordingError.

    A missing variable of `optional` is left out.
    """
    wanted = (*fields, *optional)
    with _as_recording_error(name, path):
        if is_v73(path):
            _require_h5py(name, path)
        else:
            _check_v5_sizes(path, wanted)
        content: dict[str, Any] = guarded.call(_read_fields, str(path), list(wanted))
    if missing := [f for f in fields if f not in content]:
        raise RecordingError(name, f"{path.name} has no field {', '.join(missing)}")
    return content


@contextlib.contextmanager
def _as_recording_error(name: str, path: Path) -> Iterator[None]:
    """Convert any exception into a RecordingError; scipy and h5py raise many types for damaged files."""
    try:
        yield
    except (RecordingError, MissingPackageError):
        raise
    except (guarded.GuardError, _Refused) as error:
        raise RecordingError(name, f"{path.name} {error}") from error
    except guarded.ParserError as error:
        problem = error.text if error.kind in (_TooLarge.__name__, _OtherFile.__name__) else ""
        raise RecordingError(
            name, f"{path.name} {problem or f'is not a readable MATLAB file ({error.kind})'}"
        ) from error
    except Exception as error:
        raise RecordingError(
            name, f"{path.name} is not a readable MATLAB file ({type(error).__name__})"
        ) from error


def numbers(name: str, path: Path, field: str, value: Any) -> FloatArray:
    """Return a variable as numbers (N,); text and structs raise a RecordingError that does not quote them."""
    if isinstance(value, dict) or np.asarray(value).dtype.kind not in "biuf":
        raise RecordingError(name, f"{path.name}: {field} is not an array of numbers")
    return np.asarray(value, np.float64).ravel()


class _Refused(Exception):
    """The message says why a file is refused, in words that fit "the file …"."""


class _OtherFile(_Refused):
    """A variable is stored in another file, which could be any file of this computer."""

    def __init__(self, field: str) -> None:
        super().__init__(f"stores {field} in another file, which is not read")


class _TooLarge(_Refused):
    """A file declares more data than the limits accept."""

    def __init__(self, field: str, count: int, limit: str = "samples") -> None:
        super().__init__(f"declares {count:.3g} values of {field}; {limits.hint(limit)}")


def is_v73(path: Path) -> bool:
    with open_regular(path) as file:
        head = file.read(520)
    return head.startswith(b"MATLAB 7.3") or b"\x89HDF\r\n\x1a\n" in head


def _require_h5py(name: str, path: Path) -> None:
    if not is_installed("h5py"):
        raise RecordingError(
            name, f"{path.name} is a MATLAB v7.3 file; reading it needs h5py: pip install 'phase-rppg[mat73]'"
        )


def _check_v5_sizes(path: Path, fields: tuple[str, ...]) -> None:
    """Compare the declared sizes of variables with the limits; no values are read."""
    with open_regular(path) as file:
        for field, shape, *_ in _variables(file):
            if field in fields and (count := math.prod(map(int, shape))) > limits.current().samples:
                raise _TooLarge(field, count)


def _read_fields(path: str, fields: list[str]) -> dict[str, Any]:
    """Read variables; this function runs in the guarded process."""
    if is_v73(Path(path)):
        with _open_hdf5(path) as file:
            return {f: _from_hdf5(_member(file, f)) for f in fields if _has(file, f)}
    require("scipy")
    from scipy.io import loadmat

    content = loadmat(path, variable_names=fields, simplify_cells=True)
    return {f: content[f] for f in fields if f in content}


def _hdf5_shape(path: str, field: str) -> list[int]:
    """Return the shape of a variable in the order of MATLAB; this function runs in the guarded process."""
    with _open_hdf5(path) as file:
        return [int(n) for n in reversed(_member(file, field).shape)] if _has(file, field) else []


def _hdf5_frames(path: str, field: str, start: int, gain: float) -> list[Any]:
    """Return frames as bytes (n,H,W,3) and their gain; this function runs in the guarded process."""
    with _open_hdf5(path) as file:
        data = _member(file, field)  # (3,W,H,T)
        scale = _Scale("", is_bytes=data.dtype == np.uint8)
        scale.gain = gain or scale.gain
        part = scale(data[..., start : start + _FRAMES_PER_SLICE])
        return [np.ascontiguousarray(part.transpose(3, 2, 1, 0)), scale.gain]


def _open_hdf5(path: str) -> Any:
    require("h5py")
    import h5py

    return h5py.File(path, "r")


def _has(group: Any, name: str) -> bool:
    """Whether a group has a member of this name. `name in group` would open files that it links to."""
    return bool(group.id.links.exists(name.encode()))


def _member(group: Any, name: str) -> Any:
    """Return a member of a group; one whose values are in another file is refused."""
    import h5py

    if group.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
        raise _OtherFile(name)
    node = group[name]
    if isinstance(node, h5py.Dataset) and (node.external or node.is_virtual):
        raise _OtherFile(name)
    return node


def _from_hdf5(node: Any, depth: int = 0) -> Any:
    if hasattr(node, "keys"):
        if depth > limits.current().depth:  # a group can contain itself
            raise ValueError("nested too deeply")
        return {key: _from_hdf5(_member(node, key), depth + 1) for key in node}
    if node.size is not None and node.size > limits.current().samples:
        raise _TooLarge(node.name.rpartition("/")[2], node.size)
    values = np.asarray(node[()]).T  # HDF5 stores the axes of MATLAB in reverse order
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
        """Return the number of frames from the header."""
        return self._shape()[0]

    def _shape(self) -> tuple[int, ...]:
        with _as_recording_error(self.name, self.path):
            if is_v73(self.path):
                _require_h5py(self.name, self.path)
                shape = tuple(guarded.call(_hdf5_shape, str(self.path), self.field))
            else:
                with open_regular(self.path) as file:
                    shape = next((s for n, s, *_ in _variables(file) if n == self.field), ())
        return self._checked(shape)

    def _checked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not shape:
            raise RecordingError(self.name, f"{self.path.name} has no field {self.field}")
        if len(shape) != 4 or shape[3] != 3 or 0 in shape:
            raise RecordingError(
                self.name, f"{self.field} has the shape {shape}, not (frames, height, width, 3)"
            )
        if math.prod(shape) > limits.current().mat_values or shape[0] > limits.current().samples:
            raise RecordingError(
                self.name, f"{self.path.name} {_TooLarge(self.field, math.prod(shape), 'mat_values')}"
            )
        return shape

    def _from_hdf5(self) -> Iterator[ByteArray]:
        gain = 0.0
        for start in range(0, self._shape()[0], _FRAMES_PER_SLICE):
            with _as_recording_error(self.name, self.path):
                part, gain = guarded.call(_hdf5_frames, str(self.path), self.field, start, gain)
            yield from part

    def _from_v5(self) -> Iterator[ByteArray]:
        with open_regular(self.path) as file, tempfile.TemporaryFile(prefix="phase-mat-") as spill:
            try:
                is_bytes, shape, stored, read = _seek_variable(file, self.field)
                frames, height, width, channels = self._checked(shape)
                pixels = height * width * channels
                reserve(spill.fileno(), frames * pixels)
                unpacked = np.memmap(spill, np.uint8, "w+", shape=(frames, pixels))
                scale = _Scale(self.name, is_bytes)
                most = max(1, min(_PIXELS_PER_BLOCK, _BLOCK_BYTES // (frames * stored.itemsize)))
                for start in range(0, pixels, most):
                    block = min(most, pixels - start)
                    values = np.frombuffer(read(block * frames * stored.itemsize), stored)
                    unpacked[:, start : start + block] = scale(values.reshape(block, frames)).T
            except (EOFError, ValueError, zlib.error) as error:
                raise RecordingError(
                    self.name, f"{self.path.name} is damaged or cut off ({error})"
                ) from error
            for row in unpacked:  # (3·W·H,) columns first
                yield np.ascontiguousarray(row.reshape(channels, width, height).transpose(2, 1, 0))


class _Scale:
    """Convert values in 0–1 or 0–255 to bytes; the first block decides which range it is."""

    def __init__(self, name: str, is_bytes: bool) -> None:
        self.name, self.gain = name, 1.0 if is_bytes else 0.0

    def __call__(self, values: npt.NDArray[Any]) -> ByteArray:
        if values.dtype == np.uint8 and self.gain == 1:
            return values
        top = float(values.max())
        if not self.gain:
            self.gain = 255.0 if top <= 1 else 1.0
        if not float(values.min()) >= 0 or not top * self.gain < 255.5:
            raise RecordingError(self.name, "the pixel values of the video are neither in 0–1 nor in 0–255")
        scaled: FloatArray = values * self.gain
        return np.rint(scaled).astype(np.uint8)


def _seek_variable(file: BinaryIO, wanted: str) -> tuple[bool, tuple[int, ...], np.dtype[Any], Read]:
    """Find a variable: return whether it is uint8, its shape, its stored type, and a reader of its values."""
    for name, shape, flags, integer, read in _variables(file):
        if name == wanted:
            stored, _ = _tag(read, integer)
            if stored not in _STORED:
                raise ValueError(f"{wanted} is not a numeric array")
            return flags & 0xFF == _UINT8_CLASS, shape, np.dtype(integer.byteorder + _STORED[stored]), read
    raise ValueError(f"no field {wanted}")


def _variables(file: BinaryIO) -> Iterator[tuple[str, tuple[int, ...], int, np.dtype[Any], Read]]:
    """Yield name, shape, flags, byte order and a reader of the values for each variable of a v5 file."""
    head = file.read(128)
    order = "<" if head[126:128] == b"IM" else ">"
    integer = np.dtype(f"{order}u4")
    while len(tag := file.read(8)) == 8:
        kind, size = (int(v) for v in np.frombuffer(tag, integer))
        after = file.tell() + size
        if kind not in (_MATRIX, _COMPRESSED):  # also the zeros of a sparse file, which would take hours
            raise ValueError("an element is not a variable")
        if kind == _COMPRESSED:
            read = _inflating_reader(file, size)
            kind, _ = (int(v) for v in np.frombuffer(read(8), integer))
        else:
            read = _plain_reader(file)
        if kind == _MATRIX:
            flags = np.frombuffer(_element(read, integer)[1], integer)
            shape = tuple(int(v) for v in np.frombuffer(_element(read, integer)[1], f"{order}i4"))
            name = _element(read, integer)[1].decode("latin-1")
            if not len(flags) or any(n < 0 for n in shape):
                raise ValueError("a variable has an invalid header")
            yield name, shape, int(flags[0]), integer, read
        file.seek(after)


def _tag(read: Read, integer: np.dtype[Any]) -> tuple[int, int]:
    kind, size = (int(v) for v in np.frombuffer(read(8), integer))
    return kind, size


def _element(read: Read, integer: np.dtype[Any]) -> tuple[int, bytes]:
    """Read one small sub-element: its type and content. Up to four bytes are stored in the tag."""
    tag = read(8)
    kind, size = (int(v) for v in np.frombuffer(tag, integer))
    if kind >> 16:
        return kind & 0xFFFF, tag[4 : 4 + (kind >> 16)]
    if size > _MAX_ELEMENT_BYTES:
        raise ValueError("the header of a variable is too long")
    return kind, read(size + -size % 8)[:size]


def _plain_reader(file: BinaryIO) -> Read:
    def read(count: int) -> bytes:
        data = file.read(count)
        if len(data) < count:
            raise EOFError("the file ends too early")
        return data

    return read


def _inflating_reader(file: BinaryIO, size: int) -> Read:
    """Return a function that decompresses the next bytes of an element."""
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
