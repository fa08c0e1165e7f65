"""Atomic file writes, JSON without NaN, checksums, and reading of untrusted files within limits.

A temporary name holds the machine and the process that writes it. A later process can therefore tell whether
the writer was killed, and removes what it left.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from . import limits
from .errors import InputError, OutputError
from .text import json_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_TOML_KEY = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_TOML_DOTTED = re.compile(rf"{_TOML_KEY}(?:[ \t]*\.[ \t]*{_TOML_KEY})*")
_TEMPORARY = re.compile(r"\.phase-([0-9a-f]{8})-(\d+)-")
_FOREIGN_S = 600.0  # age at which an unfinished file counts as abandoned if its writer cannot be looked up
_SEES_WRITERS = os.name == "posix"  # on Windows, `os.kill` would end the writer instead of looking it up
_MAX_NAME_BYTES = 40  # of the target's name inside the temporary name
_checked_folders: set[Path] = set()  # where this process has already looked for abandoned files


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder, and move it to `path` when the block succeeds.

    The temporary name keeps the suffix, because some writers choose the format by it.
    """
    target = Path(path)
    check_target(target)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.parent not in _checked_folders:
            _checked_folders.add(target.parent)
            remove_abandoned(target.parent)
        prefix = temporary_prefix(target.stem)
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=target.suffix, dir=target.parent)
        os.close(handle)
    temporary = Path(name)
    try:
        with writing(target):
            yield temporary
            check_target(target)
            os.chmod(temporary, 0o666 & ~umask())
            with open(temporary, "rb+") as done:  # Windows flushes only a file that is open for writing
                os.fsync(done.fileno())
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn the OSErrors of a block that writes `path` into OutputErrors."""
    try:
        yield
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from error


def temporary_prefix(name: str) -> str:
    """Return the start of a hidden temporary name; it holds this machine and this process."""
    short = os.fsdecode(os.fsencode(name)[:_MAX_NAME_BYTES])
    return f".{short}.phase-{_machine()}-{os.getpid()}-"


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files and folders whose writer was killed."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(".") and (found := _TEMPORARY.search(entry.name)):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(Path(entry.path), found[1], int(found[2]))


def _remove_if_abandoned(path: Path, machine: str, process: int) -> None:
    if machine == _machine() and _SEES_WRITERS:
        if _is_alive(process):
            return
    elif time.time() - _newest_s(path) < _FOREIGN_S:
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def _newest_s(path: Path) -> float:
    inside = path.iterdir() if path.is_dir() and not path.is_symlink() else ()
    return max(one.lstat().st_mtime for one in (path, *inside))


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True


def reserve(file: int, size: int) -> None:
    """Allocate the bytes of an empty file before it is mapped.

    Without this, the first access to a map on a full disk would end the process with SIGBUS.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    block = bytes(1 << 20)
    for start in range(0, size, len(block)):
        os.write(file, block[: size - start])


def check_target(path: Path) -> None:
    """Raise an OutputError if the path is a folder, a device such as /dev/null, or a pipe."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from error
    if stat.S_ISDIR(mode):
        raise OutputError(path, "is a directory")
    if not stat.S_ISREG(mode):
        raise OutputError(path, "is a device or a pipe; name a file")


def write_bytes(path: str | Path, data: bytes) -> None:
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: str | Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def dump_json(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON text that is valid UTF-8, with hidden characters escaped (see `text.json_text`).

    NaN and infinity raise a ValueError, because JSON does not allow them.
    """
    return json_text(json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False))


def json_pieces(value: Any) -> Iterator[str]:
    """Yield the text of `dump_json` in pieces. Iterators in the value become lists and are read on demand.

    A long document is therefore never complete in memory.
    """
    pieces: list[str] = []
    for piece in _tokens(value, "\n"):
        pieces.append(piece)
        if len(pieces) >= 1024:
            yield "".join(pieces)
            pieces.clear()
    yield "".join(pieces)


def _tokens(value: Any, newline: str) -> Iterator[str]:
    """Yield the JSON tokens of a value; `newline` is a line feed and the current indent."""
    if isinstance(value, dict):
        opening, closing = "{}"
        items: Iterator[tuple[str, Any]] = ((f"{dump_json(key)}: ", item) for key, item in value.items())
    elif isinstance(value, (list, tuple, Iterator)):
        opening, closing = "[]"
        items = (("", item) for item in value)
    else:
        yield dump_json(value)
        return
    yield opening
    between = inner = newline + "  "
    for name, item in items:
        yield between + name
        yield from _tokens(item, inner)
        between = "," + inner
    yield closing if between == inner else newline + closing


def write_json(path: str | Path, value: Any) -> None:
    write_text(path, dump_json(value) + "\n")


def check_regular(path: str | Path) -> os.stat_result:
    """Return the status of a regular file, which is not opened; raise an InputError for anything else.

    Opening a FIFO can block for ever, and a device such as /dev/zero has no end.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise InputError(f"{path}: does not exist") from None
    except (OSError, ValueError) as error:  # ValueError: the path holds a zero byte
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'not a valid path'}") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: is a directory; name a file")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is a device, a pipe or a socket; name a regular file")
    return status


@contextlib.contextmanager
def open_regular(path: str | Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading; anything else raises an InputError, also if it was just replaced."""
    check_regular(path)

    def open_without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # a FIFO must not block here

    try:
        file = open(path, "rb", opener=open_without_waiting)  # noqa: SIM115 — closed below
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path}: is not a regular file")
        yield file


def read_bytes(path: str | Path, limit: str) -> bytes:
    """Read a file whose size is within the limit of that name, for example "json_mb"."""
    most = int(getattr(limits.current(), limit) * 2**20)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(most + 1) if size <= most else b""
    if size > most or len(data) > most:
        raise InputError(f"{path}: has {max(size, len(data)) / 2**20:.0f} MB; {limits.hint(limit)}")
    return data


def read_text(path: str | Path, limit: str) -> str:
    """Read a UTF-8 file, with or without a byte order mark, within a limit of its size."""
    data = read_bytes(path, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text (byte {error.start + 1})") from None


def read_csv_rows(path: str | Path, size_limit: str, most: int, limit: str) -> Iterator[list[str]]:
    """Yield the rows of a CSV file that are not empty.

    The size of the file is within the limit `size_limit`. At most `most` rows follow the header; the message
    about more rows names `limit`.
    """
    text = read_text(path, size_limit)
    csv.field_size_limit(int(limits.current().csv_field))
    count = 0
    try:
        for row in csv.reader(io.StringIO(text, newline="")):
            if not any(cell.strip() for cell in row):
                continue
            count += 1
            if count > most + 1:  # the header is not counted
                raise InputError(f"{path}: has more than {most} rows; {limits.hint(limit)}")
            yield row
    except csv.Error as error:
        if "field limit" in str(error):
            raise InputError(f"{path}: a field is too long; {limits.hint('csv_field')}") from None
        raise InputError(f"{path}: is not a CSV file ({error})") from None


def column_names(columns: list[str]) -> list[str]:
    """Return column names for a message; a file that has no such names is not quoted."""
    names = [c for c in columns if c and len(c) <= 30 and c.replace("_", "").replace(" ", "").isalnum()]
    return names if len(names) == len(columns) else [f"{len(columns)} columns"]


def read_json(path: str | Path, limit: str = "json_mb") -> Any:
    """Read a JSON file within the limits of size and depth; messages contain none of its content."""
    return parse_json(read_text(path, limit), path)


def parse_json(text: str, path: str | Path) -> Any:
    """Parse JSON text within the limit of depth; `path` is used in messages."""
    most = limits.current().depth
    # Brackets inside strings count in the fast check only.
    if _bracket_depth(text) > most and _bracket_depth(_JSON_STRING.sub("", text)) > most:
        raise InputError(f"{path}: JSON is nested too deeply; {limits.hint('depth')}")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not valid JSON (line {error.lineno}, column {error.colno})") from None
    except (ValueError, RecursionError):  # ValueError: an integer with thousands of digits
        raise InputError(f"{path}: not valid JSON") from None


class TomlError(InputError):
    """A text is not valid TOML."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file within the limits of size and depth."""
    return parse_toml(read_text(path, "toml_mb"), path)


def parse_toml(text: str, path: str | Path) -> dict[str, Any]:
    """Parse TOML text within the limit of depth; `path` is used in messages."""
    most = limits.current().depth
    # The parser needs quadratic time for the parts of a dotted key.
    if any(_key_parts(match.group()) > most for match in _TOML_DOTTED.finditer(text)):
        raise InputError(f"{path}: a TOML key has too many parts; {limits.hint('depth')}")
    if _bracket_depth(text) > most:
        raise InputError(f"{path}: TOML is nested too deeply; {limits.hint('depth')}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at (line \d+, column \d+|end of document)", str(error))
        raise TomlError(f"{path}: not valid TOML ({place[1] if place else 'a key or value'})") from None
    except (ValueError, RecursionError):  # ValueError: an integer with thousands of digits
        raise TomlError(f"{path}: not valid TOML") from None


def read_array(path: str | Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Read a NumPy file (.npy) that must have this type and shape; pickled objects are refused.

    The header is compared with the expected shape and with the size of the file before memory is allocated.
    """
    with open_regular(path) as file:
        found_shape, fortran, found = _array_header(path, file)
        if found != np.dtype(dtype) or found_shape != shape or (fortran and len(shape) > 1):
            raise InputError(
                f"{path}: holds {found} of shape {found_shape}, expected {np.dtype(dtype)} of shape {shape}"
            )
        _check_array_size(path, file, found, shape)
        return np.frombuffer(bytearray(file.read()), found).reshape(shape)


@contextlib.contextmanager
def open_arrays(path: str | Path) -> Iterator[Any]:
    """Open a file of several arrays (.npz) of a cache; a damaged one raises an InputError."""
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as arrays:
            yield arrays
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"{path}: is damaged; delete it and repeat the command") from None


def map_array(path: str | Path, ndim: int, limit: str) -> npt.NDArray[Any]:
    """Map a NumPy file (.npy) of numbers with any shape of `ndim` axes into memory.

    `limit` names the entry of `limits` for the number of values. Pickled objects are refused.
    """
    with open_regular(path) as file:
        shape, fortran, found = _array_header(path, file)
        if found.kind not in "fiu" or len(shape) != ndim or (fortran and ndim > 1):
            raise InputError(f"{path}: holds {found} of shape {shape}, expected numbers with {ndim} axes")
        start, count = _check_array_size(path, file, found, shape)
        if count > getattr(limits.current(), limit):
            raise InputError(f"{path}: holds {count} values; {limits.hint(limit)}")
        return np.memmap(file, found, "r", start, shape) if count else np.zeros(shape, found)


def _array_header(path: str | Path, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a NumPy file: shape, whether columns come first, and type."""
    try:
        version = np.lib.format.read_magic(file)
        reader = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}[version]
        shape, fortran, found = getattr(np.lib.format, reader)(file)
        if any(isinstance(side, bool) or side < 0 for side in shape):
            raise ValueError
    except Exception:  # the header is Python source text, which fails in many ways
        raise InputError(f"{path}: is not a NumPy file, or damaged") from None
    if found.hasobject:
        raise InputError(f"{path}: contains pickled objects, which are never loaded")
    return shape, fortran, found


def _check_array_size(
    path: str | Path, file: BinaryIO, found: np.dtype[Any], shape: tuple[int, ...]
) -> tuple[int, int]:
    """Return where the values of a NumPy file begin and how many there are; its size must agree."""
    size, start = os.fstat(file.fileno()).st_size, file.tell()
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if size - start != count * found.itemsize:
        raise InputError(f"{path}: has {size} bytes, its header says {start + count * found.itemsize}")
    return start, count


def _bracket_depth(text: str) -> int:
    """Return an upper bound of the nesting in a text: the largest excess of opening brackets."""
    codes = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    # The codes of [ and { differ in one bit, and so do those of ] and }.
    change = ((codes | 0x20) == ord("{")).astype(np.int8) - ((codes | 0x20) == ord("}")).astype(np.int8)
    level = np.cumsum(change, dtype=np.int32)
    return int((level - np.minimum.accumulate(level)).max(initial=0)) + 1


def _key_parts(dotted: str) -> int:
    # Most matches have no dot, and counting dots is fast.
    return len(re.findall(_TOML_KEY, dotted)) if "." in dotted else 1


def sha256(path: str | Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def umask() -> int:
    """Return the mask of permissions that new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
