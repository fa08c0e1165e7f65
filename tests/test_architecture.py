"""The architecture as a test: import directions, heavy imports, and the size of functions and classes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "phase_rppg"

# Lowest first: a package imports only from packages before it in this list.
ORDER = (
    "text", "errors", "types", "picture", "limits", "fileio", "registry", "workers", "guarded",
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
    if here in ("__init__", "__main__"):
        return  # the root package re-exports lazily, and runs the command
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


def test_a_session_needs_numpy_alone() -> None:
    """A session with a detector and a network that are handed in imports no other third-party package."""
    script = """
import sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        allowed = name.split(".")[0] in {*sys.stdlib_module_names, "numpy", "phase_rppg", "plain_face"}
        if not allowed:
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, Refuse())
import pkgutil
import phase_rppg.session
for module in pkgutil.iter_modules(phase_rppg.session.__path__, "phase_rppg.session."):
    __import__(module.name)
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.session import Session
from plain_face import FixedDetector, ScriptedModel, frames, run, seconds, tone, windows
t_s = seconds(11)
for config in (SessionConfig(method="pos"), SessionConfig(model=ScriptedModel(lambda t: tone(t, 75)))):
    assert windows(run(Session(config, FixedDetector()), frames(t_s, 0.01 * tone(t_s, 75))))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,  # plain_face.py is found there
    )
    assert done.returncode == 0, done.stderr


STREAMING = sorted([*(PACKAGE / "session").glob("*.py"), *(PACKAGE / "measurement").glob("*.py")])
ROOT = PACKAGE.parents[1]
MAX_LINES = 60  # of a function
MAX_FIELDS = 10  # of a class whose instances change


def sources() -> list[Path]:
    """The package, the benchmarks and the scripts, of which some have no suffix."""
    scripts = [p for p in (ROOT / "scripts").iterdir() if p.is_file()]
    python = [p for p in scripts if p.suffix == ".py" or p.read_bytes().startswith(b"#!/usr/bin/env python")]
    return [*FILES, *sorted((ROOT / "benchmarks").glob("*.py")), *sorted(python)]


def line_count(node: ast.FunctionDef | ast.AsyncFunctionDef, *, is_command: bool) -> int:
    """The lines of a function; the signature of a command is a table of options, which does not count."""
    return (node.end_lineno or 0) - (node.body[0].lineno if is_command else node.lineno) + 1


@pytest.mark.parametrize("file", sources(), ids=lambda f: str(f.relative_to(ROOT)))
def test_functions_fit_a_screen(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = line_count(node, is_command=file.parent.name == "cli" and node.name == "command")
            assert lines <= MAX_LINES, f"{node.name} has {lines} lines"


def mutable_fields(node: ast.ClassDef) -> set[str]:
    """All attributes that methods assign to `self`, and the fields of a dataclass that is not frozen."""
    frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
    dataclass_fields = set()
    if not frozen and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        dataclass_fields = {ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)}
    return dataclass_fields | {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and isinstance(one.value, ast.Name)
        and one.value.id == "self"
    }


@pytest.mark.parametrize("file", STREAMING, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_streaming_code_has_small_states(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            fields = mutable_fields(node)
            assert len(fields) <= MAX_FIELDS, f"{node.name} has {len(fields)} fields: {sorted(fields)}"


def test_mutable_fields_are_counted_in_all_methods() -> None:
    source = """
@dataclass
class Example:
    a: int
    def __init__(self):
        self.b, (self.c, self.d[0]) = 1, (2, 3)
    def change(self):
        self.e += 1
        self.f: int = 2
        with open() as self.g:
            pass
        other.h = 3
"""
    (example,) = ast.parse(source).body
    assert isinstance(example, ast.ClassDef)
    assert mutable_fields(example) == set("abcefg")
