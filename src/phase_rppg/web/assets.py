"""The files of the page: what Vite built, and the very networks and calibrations that Python uses.

Every file has one fixed address, decided here; an address that is not in the catalogue does not exist.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, OutputError
from ..fileio import dump_json, sha256, write_bytes

PACKAGE = Path(__file__).parent.parent
PAGE = Path(__file__).parent / "page"  # written by scripts/build-web
DETECTOR = PACKAGE / "face" / "weights" / "yunet.onnx"
NETWORKS = PACKAGE / "infer" / "weights"
CALIBRATIONS = PACKAGE / "session" / "calibrations"
INDEX = "models/index.json"  # what the page asks for first

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the page: on disk, or made here."""

    media_type: str
    path: Path | None = None
    content: bytes = b""

    def read(self) -> bytes:
        return self.path.read_bytes() if self.path is not None else self.content


def catalogue(page: Path = PAGE, networks: Path = NETWORKS) -> dict[str, Asset]:
    """Every file of the page by its address, relative to the page's own; `networks` holds the exports."""
    if not (page / "index.html").is_file():
        raise InputError(
            f"{page}: the page is not built; run scripts/build-web in the source checkout "
            "(needs Node.js 20 or newer), or install a released wheel"
        )
    found = {
        file.relative_to(page).as_posix(): _asset(file) for file in sorted(page.rglob("*")) if file.is_file()
    }
    models = {f"models/face/{DETECTOR.name}": _asset(DETECTOR)}
    models |= _folder("models/infer", networks) | _folder("models/calibration", CALIBRATIONS)
    index = dump_json({address: sha256(asset.path) for address, asset in models.items() if asset.path})
    return found | models | {INDEX: Asset(_TYPES[".json"], content=index.encode())}


def export(target: Path, page: Path = PAGE) -> int:
    """Write the page for any static host and return how many files it has."""
    assets = catalogue(page)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError(target, "is not an empty folder; name a new one")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=_made(target.parent)) as unfinished:
        whole = Path(unfinished) / "page"
        for address, asset in assets.items():
            write_bytes(whole / address, asset.read())
        if target.exists():
            target.rmdir()
        whole.rename(target)  # the folder appears whole or not at all
    return len(assets)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(folder, error.strerror or str(error)) from error
    return folder


def _folder(prefix: str, folder: Path) -> dict[str, Asset]:
    """The networks or calibrations of a folder, without readmes and notices."""
    files = sorted(file for kind in ("*.onnx", "*.json") for file in folder.glob(kind))
    return {f"{prefix}/{file.name}": _asset(file) for file in files}


def _asset(file: Path) -> Asset:
    return Asset(_TYPES.get(file.suffix, "application/octet-stream"), path=file)
