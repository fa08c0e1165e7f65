"""The wheel holds everything that `phase` needs at run time, the built page included, and no leftovers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest

from .conftest import ROOT

PACKAGE = ROOT / "src" / "phase_rppg"


@pytest.fixture(scope="module")
def wheel(built: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy of the checkout: nothing is left behind in the original."""
    pytest.importorskip("setuptools", reason="setuptools is missing: scripts/install --all")
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(PACKAGE, copy / "src" / "phase_rppg", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    assert (copy / built.relative_to(ROOT)).is_dir()
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(copy), str(copy)], check=True, capture_output=True)
    return zipfile.ZipFile(next(copy.glob("*.whl")))


def names(wheel: zipfile.ZipFile, folder: str, suffix: str = "") -> set[str]:
    """Names of the files below a folder of the package."""
    prefix = f"phase_rppg/{folder}/"
    return {
        name.removeprefix(prefix)
        for name in wheel.namelist()
        if name.startswith(prefix) and name.endswith(suffix)
    }


def test_the_page_is_inside(wheel: zipfile.ZipFile, built: Path) -> None:
    page = names(wheel, "web/page")
    assert page == {file.relative_to(built).as_posix() for file in built.rglob("*") if file.is_file()}
    kinds = {PurePosixPath(name).suffix for name in page}
    assert {".html", ".js", ".css", ".wasm"} <= kinds
    linked = wheel.read("phase_rppg/web/page/index.html").decode()
    assert all(f"./{name}" in linked for name in page if name.startswith("assets/index-"))
    own = sum(wheel.getinfo(f"phase_rppg/web/page/{name}").file_size for name in page if ".wasm" not in name)
    assert own < 300_000  # the runtime's wasm aside, the page is small
    assert b"Copyright" in wheel.read("phase_rppg/web/page/NOTICES.txt")  # of what was bundled


def test_the_networks_are_inside_with_their_manifests_and_notice(wheel: zipfile.ZipFile) -> None:
    graphs = names(wheel, "infer/weights", ".onnx")
    assert graphs
    for graph in graphs:
        folder = "phase_rppg/infer/weights"
        manifest = json.loads(wheel.read(f"{folder}/{PurePosixPath(graph).with_suffix('.json')}"))
        assert manifest["file"] == graph
        assert manifest["sha256"] == sha256(wheel.read(f"{folder}/{graph}")).hexdigest()
    assert {"yunet.onnx", "NOTICE.txt"} <= names(wheel, "face/weights")
    assert b"MIT" in wheel.read("phase_rppg/face/weights/NOTICE.txt")


@pytest.mark.parametrize(
    ("folder", "suffix"),
    [("session/calibrations", ".json"), ("recipes", ".toml"), ("recipes/worlds", ".toml")],
)
def test_every_data_file_is_inside(wheel: zipfile.ZipFile, folder: str, suffix: str) -> None:
    wanted = {file.name for file in (PACKAGE / folder).glob(f"*{suffix}")}
    assert wanted
    assert wanted <= names(wheel, folder, suffix)


def test_nothing_else_is_inside(wheel: zipfile.ZipFile) -> None:
    unwanted = (".map", ".ts", ".tsx", "package.json", "package-lock.json", ".pyc", ".safetensors")
    assert [name for name in wheel.namelist() if name.endswith(unwanted)] == []
    assert [name for name in wheel.namelist() if "node_modules" in name or "/tests/" in name] == []
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"phase_rppg"}
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
