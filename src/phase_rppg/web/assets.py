"""The files of the page: the build output of Vite, and the networks and calibrations of this package.

The catalogue maps fixed addresses to files. The server knows no other address. A wheel holds the runtime of
the page (`*.wasm`) as `*.wasm.xz`, a sixth of its size; it is unpacked when it is first read.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ..errors import InputError, OutputError
from ..fileio import dump_json, sha256, write_bytes

PACKAGE = Path(__file__).parent.parent
PAGE = Path(__file__).parent / "page"  # written by scripts/build-web
DETECTOR = PACKAGE / "face" / "weights" / "yunet.onnx"
NETWORKS = PACKAGE / "infer" / "weights"
CALIBRATIONS = PACKAGE / "session" / "calibrations"
CHECKOUT = PACKAGE.parent.parent  # of an editable installation
INDEX = "models/index.json"  # checksums of the models; the page reads it first
OFFLINE = "sw.js"  # the service worker; it stores all other files for use without a connection

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}


# Compressed files of the build by content coding, the smallest first.
_CODINGS = {"br": ".br", "gzip": ".gz"}
_PACKED = ".xz"  # of a file that a wheel holds in this form only


@dataclass(frozen=True)
class Asset:
    """One file of the page, on disk or in memory, with its compressed files by content coding."""

    media_type: str
    path: Path | None = None
    content: bytes = b""
    encoded: Mapping[str, Asset] = field(default_factory=dict)
    immutable: bool = False  # whether the address contains a hash of the content
    _memory: list[bytes] = field(default_factory=list, repr=False, compare=False)  # a file that was unpacked

    def read(self) -> bytes:
        """Return the content of the file; a file that has become a symbolic link raises an OSError."""
        if self.path is None:
            return self.content
        with open(self.path, "rb", opener=_open_without_links) as file:
            return file.read() if self.path.suffix != _PACKED else self._unpacked(file.read())

    def _unpacked(self, packed: bytes) -> bytes:
        if not self._memory:
            self._memory.append(lzma.decompress(packed))
        return self._memory[0]

    @cached_property
    def tag(self) -> str:
        """The entity tag of the content."""
        return f'"{hashlib.sha256(self.read()).hexdigest()[:32]}"'

    def accepted(self, codings: Iterable[str]) -> tuple[str | None, Asset]:
        """Return the smallest file that a browser with these content codings accepts, and its coding."""
        accepted = set(codings)
        return next(((name, one) for name, one in self.encoded.items() if name in accepted), (None, self))


def _open_without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def build_if_missing(page: Path = PAGE, checkout: Path = CHECKOUT) -> None:
    """Build the page in a source checkout that has none; `catalogue` explains what is missing otherwise.

    The script says on standard error what it does, and what to do if Node.js is missing.
    """
    script = checkout / "scripts" / "build-web"
    if not (page / "index.html").is_file() and script.is_file() and (checkout / "web").is_dir():
        subprocess.run([sys.executable, str(script)], stdout=sys.stderr, check=False)


def catalogue(page: Path = PAGE, networks: Path = NETWORKS) -> dict[str, Asset]:
    """Return every file by its address relative to the page; `networks` is the folder of ONNX files."""
    if not (page / "index.html").is_file():
        raise InputError(
            f"{page}: the page is not built; install Node.js 20 or newer, run scripts/build-web in the "
            "source checkout and install again, or install a released wheel"
        )
    root = page.resolve()
    files = [
        file
        for file in sorted(page.rglob("*"))
        if file.is_file() and file.resolve() == root / file.relative_to(page)  # no symbolic links
    ]
    found = {
        file.relative_to(page).as_posix().removesuffix(_PACKED): _built(file, page)
        for file in files
        if file.suffix not in _CODINGS.values() and file.with_suffix("") not in files
    }
    models = {f"models/face/{DETECTOR.name}": _compressed(DETECTOR)}
    models |= _folder("models/infer", networks) | _folder("models/calibration", CALIBRATIONS)
    index = dump_json({address: sha256(asset.path) for address, asset in models.items() if asset.path})
    return _with_offline(found | models | {INDEX: Asset(_TYPES[".json"], content=index.encode())})


def _with_offline(assets: dict[str, Asset]) -> dict[str, Asset]:
    """Return the files with a service worker that names them all.

    A change of any file changes the service worker, so that browsers fetch the new version as a whole.
    """
    script = assets.get(OFFLINE)
    if script is None:
        return assets
    names = sorted(name for name in assets if name != OFFLINE)
    tags = "".join(f"{name}={assets[name].tag}" for name in names)
    version = hashlib.sha256(tags.encode() + script.read()).hexdigest()[:16]
    head = f'const VERSION = "{version}";\nconst FILES = {dump_json(names, indent=None)};\n'
    return assets | {OFFLINE: Asset(script.media_type, content=head.encode() + script.read())}


def export(target: Path, page: Path = PAGE) -> int:
    """Write the page for a static web host and return the number of files."""
    assets = catalogue(page)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError(target, "is not an empty folder; choose a new one")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=_make_folder(target.parent)) as temporary:
        complete = Path(temporary) / "page"
        for address, asset in assets.items():
            write_bytes(complete / address, asset.read())
        if target.exists():
            target.rmdir()
        complete.rename(target)  # atomic: no incomplete folder is ever visible
    return len(assets)


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(folder, error.strerror or str(error)) from error
    return folder


def _folder(prefix: str, folder: Path) -> dict[str, Asset]:
    """Return the ONNX and JSON files of a folder by address."""
    files = sorted(file for kind in ("*.onnx", "*.json") for file in folder.glob(kind))
    return {f"{prefix}/{file.name}": _compressed(file) for file in files}


def _built(file: Path, page: Path) -> Asset:
    """Return a file of the build with its compressed files; names in assets/ contain a hash."""
    encoded = {
        coding: Asset(_type(file), path=other)
        for coding, suffix in _CODINGS.items()
        if (other := file.with_name(file.name + suffix)).is_file() and not other.is_symlink()
    }
    kind = _type(file.with_suffix("") if file.suffix == _PACKED else file)
    return Asset(kind, path=file, encoded=encoded, immutable=file.parent == page / "assets")


def _compressed(file: Path) -> Asset:
    """Return a file of this package, which has no compressed file, with its gzip in memory."""
    packed = gzip.compress(file.read_bytes(), mtime=0)
    return Asset(_type(file), path=file, encoded={"gzip": Asset(_type(file), content=packed)})


def _type(file: Path) -> str:
    return _TYPES.get(file.suffix, "application/octet-stream")
