"""The inputs of `phase measure`: files, folders, lists, standard input, object stores and web addresses."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..measurement.batch import Failure, VideoInput

STDIN = "-"
MAX_SPOOLED_BYTES = 4 << 30  # of standard input or of a download
_TIMEOUT_S = 30.0
_BLOCK_BYTES = 1 << 20
_STREAMS = frozenset(
    {"rtsp", "rtmp", "rtp", "udp", "tcp", "srt", "mms", "ftp", "ftps", "data", "concat", "pipe"}
)
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")


@contextlib.contextmanager
def open_inputs(
    names: Sequence[str], pattern: str | None, exclude: Path | None, *, allow_network: bool
) -> Iterator[tuple[list[VideoInput], list[Failure]]]:
    """Yield the videos to measure and the folders without videos.

    Standard input and downloads are copied to temporary files, which are removed at the end. Objects of a
    store are fetched later, by the process that measures them.
    """
    from ..errors import UsageError
    from ..measurement.batch import VideoInput, find_videos

    if "" in names:  # Path("") is the current folder
        raise UsageError("the name of an input is empty; name a video or a folder")
    names = [_local(name) for given in names for name in _expand_list(given)]
    for name in names:
        _refuse_network(name, allow_network)
    objects, empty = _find_objects([name for name in names if _is_object(name)], pattern)
    names = [name for name in names if not _is_object(name)]
    with tempfile.TemporaryDirectory(prefix="phase-", ignore_cleanup_errors=True) as folder:
        copies = {
            name: _spool(name, Path(folder) / f"input-{number}")
            for number, name in enumerate(dict.fromkeys(names))
            if name == STDIN or _SCHEME.match(name)
        }
        found, failures = find_videos([Path(name) for name in names if name not in copies], pattern, exclude)
        given = [VideoInput(_shown_name(name), path, _label(name)) for name, path in copies.items()]
        yield [*found, *given, *objects], [*failures, *empty]


def _expand_list(name: str) -> list[str]:
    """Return the lines of a list that is given as `@FILE`, without empty lines and comments, or the name."""
    if not name.startswith("@") or os.path.exists(name):
        return [name]
    from .. import limits
    from ..errors import InputError
    from ..fileio import read_text

    text = read_text(name[1:], "json_mb")
    if text.count("\n") > limits.current().manifest_rows:
        raise InputError(f"{name[1:]}: has too many lines; {limits.hint('manifest_rows')}")
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise InputError(f"{name[1:]}: names no videos")
    return found


def _local(name: str) -> str:
    """Return the path of a `file://` address; other names are unchanged."""
    from ..measurement.object_store import local_path

    return local_path(name) or name


def _is_object(name: str) -> bool:
    scheme = _SCHEME.match(name)
    return scheme is not None and scheme[1].lower() not in ("http", "https")


def _find_objects(addresses: Sequence[str], pattern: str | None) -> tuple[list[VideoInput], list[Failure]]:
    from ..errors import VideoError
    from ..measurement.batch import Failure
    from ..measurement.object_store import find_objects

    found: list[VideoInput] = []
    failures: list[Failure] = []
    for address in dict.fromkeys(addresses):
        try:
            videos, empty = find_objects(address, pattern)
        except VideoError as error:
            videos, empty = [], [Failure(address, str(error))]
        found += videos
        failures += empty
    return found, failures


def _refuse_network(name: str, allowed: bool) -> None:
    from ..errors import UsageError

    scheme = _SCHEME.match(name)
    if scheme is None:
        return
    from ..measurement.object_store import IN_PROCESS

    if scheme[1].lower() in _STREAMS:
        raise UsageError(f"{name}: {scheme[1]} addresses are not supported; save the video to a file first")
    if scheme[1].lower() not in IN_PROCESS and not allowed:
        kind = "in an object store" if _is_object(name) else "a web address"
        raise UsageError(f"{name}: is {kind}; download the file first, or add --allow-network")


def _shown_name(name: str) -> str:
    return "stdin" if name == STDIN else name


def _label(name: str) -> str:
    """Return a name for tables and folders: the last part of an address."""
    last = _SCHEME.sub("", name).split("?")[0].rstrip("/").rpartition("/")[2]
    return "stdin" if name == STDIN else re.sub(r"[^\w.-]+", "-", last).lstrip(".") or "download"


def _spool(name: str, target: Path) -> Path:
    """Copy standard input or a download to a file of at most MAX_SPOOLED_BYTES."""
    if name != STDIN:
        return _download(name, target)
    from ..errors import UsageError, VideoError

    source = sys.stdin.buffer if sys.stdin is not None else None
    if source is None or source.isatty() or _is_device(source):
        raise UsageError("standard input is not a video; write `phase measure - < face.mp4`, or name a file")
    if _copy(source, target, "stdin") == 0:
        raise VideoError("stdin", "is empty")
    return target


def _is_device(source: IO[bytes]) -> bool:
    try:
        mode = os.fstat(source.fileno()).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _download(address: str, target: Path) -> Path:
    import urllib.error
    import urllib.request

    from ..errors import VideoError

    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:
            _copy(answer, target, address)
    except (urllib.error.URLError, OSError, ValueError) as error:
        problem = getattr(error, "reason", None) or error
        raise VideoError(address, f"cannot be downloaded ({problem})") from None
    return target


def _copy(source: Any, target: Path, name: str) -> int:
    """Copy a stream block by block and return its length."""
    from ..errors import OutputError, VideoError

    length = 0
    with open(target, "wb") as file:
        while block := source.read(_BLOCK_BYTES):
            length += len(block)
            if length > MAX_SPOOLED_BYTES:
                limit = f"{MAX_SPOOLED_BYTES / (1 << 30):g} GiB"
                raise VideoError(name, f"is longer than {limit}", "save it to a file and name the file")
            try:
                file.write(block)
            except OSError as error:
                raise OutputError(target, error.strerror or str(error)) from error
    return length
