"""Measure how much disk space an installation takes, by package.

    python benchmarks/install_size.py --out benchmarks/results/install_size.json [--max-mb 350]

Installs this checkout twice into new virtual environments: without extras, and with the extra `research`
(SciPy and Matplotlib), which every installation had before they became optional. Sizes are MiB on disk and
contain compiled bytecode, pip and the environment itself. With --max-mb it exits with 1 if the installation
without extras is larger.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MIB = 2**20


def install(folder: Path, extra: str | None) -> None:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{ROOT}[{extra}]" if extra else ROOT], check=True)


def size(path: Path) -> int:
    """Bytes on disk; a file with two names counts for each."""
    facts = path.lstat()
    return facts.st_blocks * 512 if hasattr(facts, "st_blocks") else facts.st_size


def measure(folder: Path) -> dict[str, Any]:
    """The size of every distribution in an environment, of bytecode among it, and of the whole."""
    [site] = folder.glob("lib/python3*/site-packages")
    packages = {}
    for distribution in metadata.distributions(path=[str(site)]):
        files = {Path(os.path.normpath(site / file)) for file in distribution.files or ()}
        packages[f"{distribution.name} {distribution.version}"] = sum(size(f) for f in files if f.exists())
    found = [path for path in folder.rglob("*") if not path.is_symlink()]
    total = sum(map(size, found)) + size(folder)
    bytecode = sum(size(path) for path in found if path.suffix == ".pyc")
    ordered = sorted(packages.items(), key=lambda item: -item[1])
    return {
        "total_mb": round(total / MIB, 1),
        "bytecode_mb": round(bytecode / MIB, 1),
        "packages_mb": {name: round(count / MIB, 1) for name, count in ordered},
        "other_mb": round((total - sum(packages.values())) / MIB, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--max-mb", type=float)
    options = parser.parse_args()
    table: dict[str, Any] = {
        "command": "python benchmarks/install_size.py --out benchmarks/results/install_size.json",
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    for name, extra in {"before: extra research": "research", "after: no extra": None}.items():
        with tempfile.TemporaryDirectory(prefix="phase-size-") as folder:
            install(Path(folder), extra)
            table[name] = measure(Path(folder))
            print(f"{name}: {table[name]['total_mb']} MB")
    options.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    if options.max_mb is not None and table["after: no extra"]["total_mb"] > options.max_mb:
        raise SystemExit(f"an installation without extras takes more than {options.max_mb:g} MB")


if __name__ == "__main__":
    main()
