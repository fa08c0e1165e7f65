"""The house plan as a test: which room may import which, and who may touch torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "phase_rppg"

# A room may import from rooms of a lower number, and from itself.
LEVEL = {
    "errors": 0, "types": 0.1, "fileio": 0.1, "registry": 0.1,
    "physics": 1, "signal": 1, "video": 1,
    "face": 2,
    "methods": 3, "infer": 3,
    "pipeline": 4,
    "datasets": 5, "synth": 5,
    "evaluate": 6,
    "nn": 7,
    "train": 8,
    "web": 8,
    "reproduce": 8.5,
    "cli": 9,
}  # fmt: skip
MAY_IMPORT_TORCH = {"nn", "train", "cli"}  # cli only inside a command: see test_light_commands


def imports_of(file: Path) -> list[tuple[str, bool]]:
    """(dotted module, at top level?) for every import in the file; ours come back as phase_rppg.…"""
    package = ("phase_rppg", *file.relative_to(PACKAGE).parts[:-1])
    tree = ast.parse(file.read_text(encoding="utf-8"))
    top = set(map(id, tree.body))
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module or ""]))
            found += [(f"{module}.{alias.name}", id(node) in top) for alias in node.names]
    return found


def room(dotted: str) -> str | None:
    parts = dotted.split(".")
    return parts[1] if parts[0] == "phase_rppg" and len(parts) > 1 and parts[1] in LEVEL else None


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_go_one_way(file: Path) -> None:
    here = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if here == "__init__":
        return  # the public face of the package re-exports lazily
    assert here in LEVEL, f"{here} is a new room: give it a level here and a line in the house plan"
    for dotted, _ in imports_of(file):
        target = room(dotted)
        if target is not None and target != here:
            assert LEVEL[target] < LEVEL[here], f"{here} may not import {dotted}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_only_nn_and_train_import_torch(file: Path) -> None:
    here = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for dotted, at_top in imports_of(file):
        if dotted.split(".")[0] == "torch":
            assert here in MAY_IMPORT_TORCH
            assert here != "cli" or not at_top


def test_the_package_and_its_help_are_light() -> None:
    script = (
        "import sys; from phase_rppg.cli import run; code = run(['--help']);"
        "heavy = {'torch', 'scipy', 'matplotlib', 'av', 'onnxruntime'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
