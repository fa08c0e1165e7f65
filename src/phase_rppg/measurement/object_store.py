"""Videos in object stores, through fsspec: `s3://bucket/folder`, `gs://…`, `file://…`, `memory://…`.

The process that measures a video copies it to a temporary file, which is removed afterwards. Each store needs
its own package and its own settings, for example s3fs and the environment variables of AWS.
"""

from __future__ import annotations

import contextlib
import fnmatch
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from ..errors import PhaseError, UsageError, VideoError, require
from ..fileio import writing
from ..video.suffixes import VIDEO_SUFFIXES
from .batch import Failure, VideoInput

IN_PROCESS = frozenset({"file", "local", "memory"})  # schemes that need no network
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")
_BLOCK_BYTES = 4 << 20
_MAGIC = re.compile(r"[*?[]")
_Value = TypeVar("_Value")


def scheme_of(name: str) -> str | None:
    """Return the scheme of an address in lower case, or None for a path."""
    found = _SCHEME.match(name)
    return found[1].lower() if found else None


def local_path(address: str) -> str | None:
    """Return the path of a `file://` address, or None for any other."""
    if scheme_of(address) not in ("file", "local"):
        return None
    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        raise UsageError(f"{address}: names another machine; write file:///folder/video.mp4")
    return unquote(parts.path)


def find_objects(address: str, pattern: str | None = None) -> tuple[list[VideoInput], list[Failure]]:
    """Return the videos at an address: one object, all below a folder, or those of a pattern with `*`."""
    system, root = open_system(address)
    prefix = f"{scheme_of(address)}://"
    if _MAGIC.search(root):
        found = ask(address, lambda: system.glob(root))
    elif ask(address, lambda: system.isfile(root)):
        return [VideoInput(address, Path(root.rpartition("/")[2]), _label(root), address)], []
    else:
        found = [path for path in ask(address, lambda: system.find(root)) if _is_wanted(path, root, pattern)]
    base = root.rpartition("/")[0] if _MAGIC.search(root) else root.rstrip("/")
    base = base[: match.start()].rpartition("/")[0] if (match := _MAGIC.search(base)) else base
    videos = [_video(prefix, path, base) for path in sorted(found)]
    if not videos:
        problem = f"{address}: contains no videos; check the address and the access to it"
        return [], [Failure(address, problem)]
    return videos, []


def fingerprint(video: VideoInput) -> str:
    """Return what the store says about the content, without reading it; empty if it says nothing."""
    if not video.address:
        return ""
    system, path = open_system(video.address)
    info: dict[str, Any] = ask(video.address, lambda: system.info(path))
    tag = info.get("ETag") or info.get("etag") or info.get("md5Hash")
    changed = info.get("mtime") or info.get("LastModified") or info.get("created")
    known = tag or (str(changed) if changed else None)
    return f"{str(known).strip(chr(34))}-{info.get('size')}" if known else ""


@contextlib.contextmanager
def fetched(video: VideoInput) -> Iterator[VideoInput]:
    """Yield the video with a path that can be read; an object is copied to a temporary file."""
    if not video.address:
        yield video
        return
    system, path = open_system(video.address)
    with tempfile.TemporaryDirectory(prefix="phase-", ignore_cleanup_errors=True) as folder:
        target = Path(folder) / ("video" + Path(path).suffix)
        ask(video.address, lambda: _copy(system, path, target))
        yield replace(video, path=target)


def _copy(system: Any, path: str, target: Path) -> None:
    with system.open(path, "rb") as source, open(target, "wb") as file:
        while block := source.read(_BLOCK_BYTES):
            with writing(target):  # an error here is one of this disk, not of the store
                file.write(block)


def open_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address and the path in it."""
    require("fsspec")
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{address}: {str(error).splitlines()[0]}") from None
    return system, str(path)


def ask(address: str, question: Callable[[], _Value]) -> _Value:
    """Call a store; its errors, which are of many types, become a VideoError of one line."""
    try:
        return question()
    except PhaseError:
        raise
    except FileNotFoundError:
        raise VideoError(address, "does not exist") from None
    except Exception as error:
        text = str(error).strip().splitlines()
        problem = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
        raise VideoError(address, f"cannot be read ({problem})", "check the access to the store") from None


def _is_wanted(path: str, root: str, pattern: str | None) -> bool:
    if pattern is None:
        return Path(path).suffix.lower() in VIDEO_SUFFIXES
    below = path.removeprefix(root.rstrip("/")).lstrip("/")
    return fnmatch.fnmatch(below if "/" in pattern else below.rpartition("/")[2], pattern)


def _video(prefix: str, path: str, base: str) -> VideoInput:
    address = prefix + path.lstrip("/")
    label = _label(path.removeprefix(base).lstrip("/"))
    return VideoInput(address, Path(path.rpartition("/")[2]), label, address)


def _label(path: str) -> str:
    """Return a name for tables and folders, without characters that a folder must not have."""
    return "/".join(re.sub(r"[^\w.-]+", "-", part).lstrip(".") or "_" for part in path.strip("/").split("/"))
