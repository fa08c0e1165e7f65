"""Build hook: put the page of `phase live` into every distribution, and make builds reproducible."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/phase_rppg/web/page"  # built, not committed
# Distributions hold each file of the page once: the runtime packed as *.wasm.xz, the others as they are.
NOT_PACKED = (".gz", ".br", ".wasm", ".part")
WITHOUT_PAGE = "PHASE_WITHOUT_PAGE"  # allows a wheel without the page
EPOCH_FILE = "SOURCE_DATE_EPOCH"  # only in an sdist: the date of the commit that it was made from


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Run `scripts/build-web` if the page is missing or old, and set the date of the archive."""

    _folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        self._provide_page(root, editable=version == "editable")
        if version != "editable":
            pack_runtime(root / PAGE)
            target = PAGE if self.target_name == "sdist" else PAGE.removeprefix("src/")
            build_data["force_include"].update(page_files(root / PAGE, target))
        epoch = os.environ.get(EPOCH_FILE) or source_date_epoch(root)
        if epoch is None:
            return  # hatchling has a constant for this case
        os.environ[EPOCH_FILE] = epoch  # read by hatchling when it opens the archive
        if self.target_name == "sdist":
            self._folder = tempfile.TemporaryDirectory(prefix="phase-build-")
            record = Path(self._folder.name) / EPOCH_FILE
            record.write_text(f"{epoch}\n", encoding="ascii")
            build_data["force_include"][str(record)] = EPOCH_FILE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        del version, build_data, artifact_path
        if self._folder is not None:
            self._folder.cleanup()

    def _provide_page(self, root: Path, editable: bool) -> None:
        script = root / "scripts" / "build-web"
        has_page = (root / PAGE / "index.html").is_file()
        if (root / "web").is_dir() and script.is_file():
            # Front ends read standard output; messages go to standard error.
            command = [sys.executable, str(script), "--if-needed"]
            if subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0:
                return
            if has_page:
                warn(f"The page of `phase live` was not built again: {PAGE} is packed as it is.")
        if has_page:
            return
        if self.target_name == "sdist" or not (editable or os.environ.get(WITHOUT_PAGE)):
            kind = "An sdist" if self.target_name == "sdist" else "A wheel"
            raise SystemExit(
                f"{kind} must contain the page of `phase live`, but {PAGE} is not built. Install Node.js 20 "
                f"or newer, or set {WITHOUT_PAGE}=1 for a wheel without `phase live`."
            )
        warn(
            "THE PAGE OF `phase live` IS MISSING FROM THIS BUILD.",
            "Every other command works. To get the page: install Node.js 20 or newer,",
            "run scripts/build-web in the source checkout, and install again.",
        )


def page_files(page: Path, target: str) -> dict[str, str]:
    """Return the files of the page that a distribution holds, and their names in it."""
    files = (file for file in sorted(page.rglob("*")) if file.is_file() and file.suffix not in NOT_PACKED)
    return {str(file): f"{target}/{file.relative_to(page).as_posix()}" for file in files}


def pack_runtime(page: Path) -> None:
    """Write `*.wasm.xz` beside each `*.wasm`; distributions hold the packed file only."""
    for file in page.rglob("*.wasm"):
        packed = file.with_name(file.name + ".xz")
        if not packed.is_file() or packed.stat().st_mtime < file.stat().st_mtime:
            unfinished = packed.with_suffix(".part")
            unfinished.write_bytes(lzma.compress(file.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
            unfinished.replace(packed)


def source_date_epoch(root: Path) -> str | None:
    """Return the date of the sources in seconds since 1970: recorded in an sdist, else of the last commit."""
    record = root / EPOCH_FILE
    if record.is_file():
        return record.read_text(encoding="ascii").strip()
    if not (root / ".git").exists():
        return None  # a repository further up is not ours
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip() or None


def warn(*lines: str) -> None:
    """Print a warning that is hard to overlook in the output of a build."""
    rule = "*" * 78
    print(rule, *(f"* {line}" for line in lines), rule, sep="\n", file=sys.stderr, flush=True)
