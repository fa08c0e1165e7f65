"""The wheel holds everything that `phase` needs at run time, the built page included, and no leftovers."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest

from phase_rppg.web import catalogue

from .conftest import ROOT, missing

PACKAGE = ROOT / "src" / "phase_rppg"
MAX_WHEEL_BYTES = 6_000_000


@pytest.fixture(scope="module")
def wheel(built: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy of the checkout: nothing is left behind in the original."""
    if importlib.util.find_spec("hatchling") is None:
        missing("hatchling", "run scripts/install --all")
    copy = tmp_path_factory.mktemp("checkout")
    shutil.copytree(PACKAGE, copy / "src" / "phase_rppg", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
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
    plain = names(wheel, "web/page")
    files = {file.relative_to(built).as_posix() for file in built.rglob("*") if file.is_file()}
    originals = {name for name in files if not name.endswith((".br", ".gz", ".xz"))}
    assert {name.removesuffix(".xz") for name in plain} == originals  # each file once
    assert {name for name in plain if name.endswith(".xz")} == {
        f"{name}.xz" for name in originals if name.endswith(".wasm")
    }
    kinds = {PurePosixPath(name.removesuffix(".xz")).suffix for name in plain}
    assert {".html", ".js", ".css", ".wasm"} <= kinds
    linked = wheel.read("phase_rppg/web/page/index.html").decode()
    assert all(f"./{name}" in linked for name in plain if name.startswith("assets/index-"))
    size = {name: wheel.getinfo(f"phase_rppg/web/page/{name}").file_size for name in plain}
    decoder = {name for name in plain if name.startswith("assets/fileDecoder-")}  # loaded with a file only
    own = sum(size[name] for name in plain - decoder if ".wasm" not in name)
    assert own < 400_000  # the wasm of the runtime aside, the page is small, texts of four languages included
    assert sum(size[name] for name in decoder) < 300_000
    assert b"Copyright" in wheel.read("phase_rppg/web/page/NOTICES.txt")  # of what was bundled


def test_the_wheel_is_small_and_its_page_is_that_of_the_checkout(
    wheel: zipfile.ZipFile, built: Path, tmp_path: Path
) -> None:
    assert wheel.filename is not None
    assert Path(wheel.filename).stat().st_size < MAX_WHEEL_BYTES
    wheel.extractall(tmp_path)
    packed, plain = catalogue(tmp_path / "phase_rppg/web/page"), catalogue(built)
    assert set(packed) == set(plain)
    for name, asset in plain.items():
        assert packed[name].read() == asset.read()
        assert (packed[name].tag, packed[name].media_type) == (asset.tag, asset.media_type)
        assert packed[name].immutable == asset.immutable


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
    [
        ("session/calibrations", ".json"),
        ("recipes", ".toml"),
        ("recipes/worlds", ".toml"),
        ("infer/weights", ".safetensors"),
    ],
)
def test_every_data_file_is_inside(wheel: zipfile.ZipFile, folder: str, suffix: str) -> None:
    wanted = {file.name for file in (PACKAGE / folder).glob(f"*{suffix}")}
    assert wanted
    assert wanted <= names(wheel, folder, suffix)


def test_nothing_else_is_inside(wheel: zipfile.ZipFile) -> None:
    unwanted = (".map", ".ts", ".tsx", "package.json", "package-lock.json", ".pyc")
    assert [name for name in wheel.namelist() if name.endswith(unwanted)] == []
    assert [name for name in wheel.namelist() if "node_modules" in name or "/tests/" in name] == []
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"phase_rppg"}
    assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
