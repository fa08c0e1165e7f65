"""The architecture as a test: import directions, and which packages import torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "phase_rppg"

# Lowest first: a package imports only from packages before it in this list.
ORDER = (
    "errors", "types", "fileio", "registry", "workers",
    "physics", "signal", "video", "face", "methods", "infer",
    "session", "measurement", "report",
    "datasets", "synth", "evaluate", "nn", "train", "reproduce",
    "web", "cli",
)  # fmt: skip
LEVEL = {name: level for level, name in enumerate(ORDER)}
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


def package_of(dotted: str) -> str | None:
    parts = dotted.split(".")
    return parts[1] if parts[0] == "phase_rppg" and len(parts) > 1 and parts[1] in LEVEL else None


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_go_one_way(file: Path) -> None:
    here = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if here == "__init__":
        return  # the root package re-exports lazily
    assert here in LEVEL, f"{here} is a new package: add it to ORDER and to docs/decisions.md"
    for dotted, _ in imports_of(file):
        target = package_of(dotted)
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
