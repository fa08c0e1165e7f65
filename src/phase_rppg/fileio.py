"""Files are written whole or not at all, and JSON never holds a NaN."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import InputError, OutputError


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; when the block ends well it takes the place of `path`.

    The temporary name keeps the suffix, so writers that look at it choose the right format.
    """
    target = Path(path)
    check_target(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{target.stem[:40]}-"
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=target.suffix, dir=target.parent)
        os.close(handle)
    except OSError as error:
        raise OutputError(target, error.strerror or str(error)) from error
    temporary = Path(name)
    try:
        yield temporary
        check_target(target)
        os.chmod(temporary, 0o666 & ~_umask())
        with open(temporary, "rb") as done:
            os.fsync(done.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise OutputError(target, error.strerror or str(error)) from error
    finally:
        temporary.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Refuse a place that a file cannot or must not take: a folder, a device such as /dev/null, a pipe."""
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
    """JSON text; NaN and infinity are refused, because they are not JSON."""
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)


def json_pieces(value: Any) -> Iterator[str]:
    """The text of `dump_json` piece by piece; an iterator in it becomes a list whose items are made only now.

    A long document is therefore never held whole, neither as values nor as text.
    """
    pieces: list[str] = []
    for piece in _tokens(value, "\n"):
        pieces.append(piece)
        if len(pieces) >= 1024:
            yield "".join(pieces)
            pieces.clear()
    yield "".join(pieces)


def _tokens(value: Any, newline: str) -> Iterator[str]:
    """JSON of a value whose lines begin with `newline`: a line feed and the indent so far."""
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


def read_json(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error})") from error


def sha256(path: str | Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
