"""`scripts/test-matrix` tests the versions that pyproject.toml states, and does not pass by accident."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "test-matrix"


@pytest.fixture(scope="module")
def matrix() -> ModuleType:
    loader = SourceFileLoader("test_matrix_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look their module up
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel that holds its metadata alone."""
    path = tmp_path / "a-1-py3-none-any.whl"
    lines = [
        "Metadata-Version: 2.4",
        "Name: a",
        "Requires-Python: >=3.10",
        "Requires-Dist: numpy>=1.26",
        'Requires-Dist: tomli<3,>=2; python_version < "3.11"',
        'Requires-Dist: pytest>=8; extra == "dev"',
        'Requires-Dist: torch>=2.6; extra == "train"',
    ]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a-1.dist-info/METADATA", "\n".join(lines) + "\n\n")
    return path


def test_the_oldest_set_is_the_lower_bounds_of_the_wheel(matrix: ModuleType, wheel: Path) -> None:
    assert [matrix.lower_bound(need) for need in matrix.requirements(wheel)] == [
        "numpy==1.26",
        'tomli==2; python_version < "3.11"',
    ]
    assert matrix.requirements(wheel, extra="dev") == ["pytest>=8"]
    with pytest.raises(SystemExit, match="no lower bound"):
        matrix.lower_bound("numpy<3")


def test_interpreters_are_found_by_version_and_by_path(matrix: ModuleType) -> None:
    running = ".".join(map(str, sys.version_info[:2]))
    for name in (running, sys.executable):
        assert matrix.find_interpreter(name)[1] == sys.version_info[:3]
    assert matrix.find_interpreter("3.99") == ("3.99", None)


def attempt(
    matrix: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    wheel: Path,
    failing: str,
    output: str,
    **options: bool,
) -> object:
    """The row of an environment in which one step fails."""

    def fail(*_: object, **__: object) -> None:
        raise matrix.StepFailed(output)

    steps = ("make_environment", "install", "run_demo", "install_extras", "run_smoke_tests")
    for step in steps:
        monkeypatch.setattr(matrix, step, fail if step == failing else lambda *_, **__: None)
    return matrix.test_environment("python", (3, 10, 1), wheel, wheel.parent, **options)


@pytest.mark.parametrize(
    ("changed", "accepted"), [("", True), ("73.2 bpm->79.9 bpm", False), ("73.2 bpm->no reading", False)]
)
def test_the_demo_must_read_its_own_rate(
    matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: str, accepted: bool
) -> None:
    shown = (SCRIPT.parent.parent / "README.md").read_text(encoding="utf-8")
    output = shown.partition("$ phase demo\n")[2].partition("\n\n")[0]  # the demo's test compares it
    old, _, new = changed.partition("->")
    assert old in output
    monkeypatch.setattr(matrix, "run", lambda *_: output.replace(old, new) if old else output)
    if accepted:
        matrix.run_demo(tmp_path / "python", tmp_path)
    else:
        with pytest.raises(matrix.StepFailed, match="no reading within 3 bpm"):
            matrix.run_demo(tmp_path / "python", tmp_path)


@pytest.mark.parametrize(
    "failing", ["make_environment", "install", "run_demo", "install_extras", "run_smoke_tests"]
)
def test_every_step_can_fail(
    matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, wheel: Path, failing: str
) -> None:
    row = attempt(matrix, monkeypatch, wheel, failing, "exit code 1", with_oldest=False)
    assert row.is_failure  # type: ignore[attr-defined]
    assert not row.passed  # type: ignore[attr-defined]


def test_a_dependency_without_wheels_is_no_failure_unless_it_is_a_lower_bound(
    matrix: ModuleType, monkeypatch: pytest.MonkeyPatch, wheel: Path
) -> None:
    output = "ERROR: No matching distribution found for scipy>=1.11"
    newest = attempt(matrix, monkeypatch, wheel, "install", output, with_oldest=False)
    oldest = attempt(matrix, monkeypatch, wheel, "install", output, with_oldest=True)
    assert newest.install == "no wheels: scipy>=1.11"  # type: ignore[attr-defined]
    assert (newest.is_failure, oldest.is_failure) == (False, True)  # type: ignore[attr-defined]
    assert not newest.passed  # type: ignore[attr-defined]
