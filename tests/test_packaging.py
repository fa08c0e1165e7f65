"""Distributions: the page is always inside, the sdist is complete, and builds are reproducible."""

from __future__ import annotations

import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

import phase_rppg
from phase_rppg import fileio

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PAGE = Path("src/phase_rppg/web/page")
PACKED = {"index.html", "assets/index.js", "assets/run.wasm.xz"}  # of the page that `write_page` writes
LEFT_OUT = (
    "node_modules", ".git", ".venv", "__pycache__", "page", "dist", "build", "runs", "data",
    "*.egg-info", ".*_cache", ".hypothesis",
)  # fmt: skip
COMMIT_EPOCH = 1_700_000_000
COMMIT_DATE = (2023, 11, 14, 22, 13, 20)  # the same in UTC, as zip files store it
BUILD = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a shell script")


@pytest.fixture(autouse=True)
def _backend() -> None:
    if importlib.util.find_spec("hatchling") is None:
        assert not os.environ.get("PHASE_TESTS_COMPLETE"), "hatchling is missing: scripts/install --all"
        pytest.skip("hatchling is missing: scripts/install --all")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with git as the only program: the PATH of a computer without Node.js."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "git").symlink_to(str(shutil.which("git")))
    return folder


@pytest.fixture
def checkout(tmp_path: Path, tools: Path) -> Path:
    """A copy of the project in a repository of its own, without the page."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    dates = {f"GIT_{who}_DATE": f"{COMMIT_EPOCH} +0000" for who in ("AUTHOR", "COMMITTER")}
    names = ["-c", "user.name=a", "-c", "user.email=a"]
    for arguments in (["init", "-q"], ["add", "-A"], [*names, "commit", "-q", "-m", "a"]):
        subprocess.run(["git", *arguments], cwd=copy, check=True, env={**os.environ, **dates})
    return copy


def write_page(checkout: Path) -> None:
    page = checkout / PAGE
    (page / "assets").mkdir(parents=True)
    (page / "index.html").write_text("<html></html>\n")
    (page / "index.html.gz").write_bytes(b"for the server of a checkout")
    (page / "assets" / "index.js").write_text("1\n")
    (page / "assets" / "run.wasm").write_bytes(b"packed as xz")


def link_workspaces(checkout: Path) -> None:
    """Add the links to the packages of this project that `npm ci` makes."""
    modules = checkout / "web" / "node_modules"
    modules.mkdir()
    (modules / "phase-live").symlink_to("../app")
    (modules / "phase-rppg").symlink_to("../phase-rppg")


def add_node(tools: Path, version: str = "v20.1.0") -> Path:
    """Put programs named node and npm on the PATH; each `npm run build` adds a line to the file returned."""
    log = tools.parent / "built.txt"
    log.write_text("")
    npm = (
        '#!/bin/sh\ncase "$1" in run)\n'
        f"{shutil.which('mkdir')} -p ../{PAGE}\n"
        f"echo built > ../{PAGE}/index.html\necho run >> {log}\n;;esac\n"
    )
    for name, text in {"node": f"#!/bin/sh\necho {version}\n", "npm": npm}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    return log


def attempt(kind: str, project: Path, tools: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    out = project.parent / "out" / f"{time.monotonic_ns()}"
    out.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(
        [sys.executable, "-c", BUILD, f"build_{kind}", str(out)],
        cwd=project, env={**environment, "PATH": str(tools)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, out


def build(kind: str, project: Path, tools: Path) -> Path:
    done, out = attempt(kind, project, tools)
    assert done.returncode == 0, done.stderr
    [file] = out.iterdir()
    return file


def test_wheels_of_checkout_and_sdist_are_identical_and_need_no_node(checkout: Path, tools: Path) -> None:
    write_page(checkout)
    link_workspaces(checkout)
    first = build("wheel", checkout, tools)
    sdist = build("sdist", checkout, tools)
    # Neither the times nor the permissions of the files may show in an archive.
    for file in checkout.rglob("*"):
        if file.is_file() and ".git" not in file.parts:
            os.utime(file, (1_000_000_000, 1_000_000_000))
            file.chmod(0o700 if file.stat().st_mode & 0o100 else 0o600)
    assert build("wheel", checkout, tools).read_bytes() == first.read_bytes()
    assert build("sdist", checkout, tools).read_bytes() == sdist.read_bytes()
    unpacked = checkout.parent / "unpacked"
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive}
        archive.extractall(unpacked)
    [source] = unpacked.iterdir()
    os.utime(source / PAGE / "index.html", (1, 1))  # pip does not keep the times of an sdist
    done, out = attempt("wheel", source, tools)
    assert "page" not in done.stderr  # it is there: nothing to warn about
    assert next(out.iterdir()).read_bytes() == first.read_bytes()

    with zipfile.ZipFile(first) as wheel:
        assert {name.partition("web/page/")[2] for name in wheel.namelist() if "web/page/" in name} == PACKED
        assert {item.date_time for item in wheel.infolist()} == {COMMIT_DATE}
    listed = subprocess.run(["git", "ls-files"], cwd=checkout, check=True, capture_output=True, text=True)
    tracked = {name for name in listed.stdout.splitlines() if not name.startswith(".ci/")}
    assert {"tests/test_packaging.py", "web/app/src/main.ts", "scripts/demo", "docs/measure.md"} <= tracked
    assert names - tracked == {"PKG-INFO", "SOURCE_DATE_EPOCH", *(f"{PAGE}/{name}" for name in PACKED)}
    assert tracked <= names


def test_a_build_without_the_page_is_refused_and_an_editable_one_warns(
    checkout: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("wheel", "sdist"):
        done, out = attempt(kind, checkout, tools)
        assert done.returncode == 1
        assert "Node.js 20 or newer was not found" in done.stderr
        assert "must contain the page" in done.stderr
        assert list(out.iterdir()) == []
    done, out = attempt("editable", checkout, tools)
    assert done.returncode == 0
    assert "THE PAGE OF `phase live` IS MISSING" in done.stderr
    assert len(list(out.iterdir())) == 1
    monkeypatch.setenv("PHASE_WITHOUT_PAGE", "1")
    assert attempt("wheel", checkout, tools)[0].returncode == 0
    assert attempt("sdist", checkout, tools)[0].returncode == 1
    add_node(tools, "v18.2.0")  # too old is like missing
    assert "Node.js 20 or newer was not found" in attempt("wheel", checkout, tools)[0].stderr


def test_the_page_is_built_when_it_is_missing_or_older_than_its_sources(checkout: Path, tools: Path) -> None:
    log = add_node(tools)
    with zipfile.ZipFile(build("wheel", checkout, tools)) as wheel:
        assert wheel.read("phase_rppg/web/page/index.html") == b"built\n"
    build("editable", checkout, tools)
    assert log.read_text() == "run\n"  # the second build had nothing to do
    later_s = time.time() + 60
    os.utime(checkout / "web" / "app" / "src" / "main.ts", (later_s, later_s))
    build("editable", checkout, tools)
    assert log.read_text() == "run\nrun\n"
    (tools / "npm").unlink()
    done, _ = attempt("wheel", checkout, tools)
    assert done.returncode == 0
    assert "is packed as it is" in done.stderr


def test_the_metadata_say_who_and_what_and_name_no_address(checkout: Path, tools: Path) -> None:
    write_page(checkout)
    with zipfile.ZipFile(build("wheel", checkout, tools)) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        found = email.message_from_bytes(wheel.read(name))
    assert found["Version"] == phase_rppg.__version__
    assert found["Author"] == "phase-rppg contributors"
    assert "Typing :: Typed" in found.get_all("Classifier", [])
    assert found["Keywords"]
    assert found.get_all("Project-URL") is None
    assert found["Home-page"] is None


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "phase_rppg", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"phase-rppg {phase_rppg.__version__}\n")
    wrong = subprocess.run(
        [sys.executable, "-m", "phase_rppg", "no-such-command"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "phase --help" in wrong.stderr


# Files beside the package -----------------------------------------------------------------------------------


def test_every_copy_of_the_version_agrees(tmp_path: Path) -> None:
    """`scripts/version` reads and sets all of them."""
    names = (
        "src/phase_rppg/__init__.py", "CITATION.cff", "web/package-lock.json", "web/app/package.json",
        "web/phase-rppg/package.json",
    )  # fmt: skip
    for name in (*names, "scripts/version"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def version(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(tmp_path / "scripts/version"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert version().stdout == f"{phase_rppg.__version__}\n"
    assert version("1.2.3rc4").stdout == "1.2.3rc4\n"
    assert all("1.2.3rc4" in (tmp_path / name).read_text(encoding="utf-8") for name in names)
    (tmp_path / names[1]).write_text("version: 1.2.2\n", encoding="utf-8")
    assert "CITATION.cff: ['1.2.2']" in version().stderr
    assert version("new").returncode == 1


def test_the_conda_recipe_requires_what_the_wheel_requires() -> None:
    text = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    [run] = re.findall(r"^  run:\n((?:    - .*\n)+)", text, re.MULTILINE)
    recipe = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel = {need.partition(";")[0].strip() for need in project["dependencies"]}
    assert recipe == wheel | {f"python{project['requires-python']}"}
    scripts = {f"{name} = {target}" for name, target in project["scripts"].items()}
    assert scripts == set(re.findall(r"^    - (\S+ = \S+)$", text, re.MULTILINE))


def test_the_container_runs_without_privileges_and_copies_what_exists() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users
    assert users[-1].isdecimal()
    assert int(users[-1]) > 0
    for line in lines:
        if line.startswith("COPY "):
            *sources, _ = line.split()[1:]
            assert all((ROOT / source).exists() for source in sources), line
    [extras] = [line.partition("=")[2].split(",") for line in lines if line.startswith("ARG EXTRAS=")]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras) <= set(project["optional-dependencies"])


def test_the_container_has_what_the_build_of_the_page_reads() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    before_build = dockerfile[: dockerfile.index("npm run build")]
    copied = {
        source.rstrip("/")
        for line in re.findall(r"^COPY (.*) \S+$", before_build, re.M)
        for source in line.split()
    }
    sent = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line[:1] == "!"
    }
    scripts = (ROOT / "web" / "phase-rppg" / "scripts").glob("*.mjs")
    read = {
        path for file in scripts for path in re.findall(r'"\.\./\.\./\.\./([^"]+)"', file.read_text("utf-8"))
    }
    assert len(read) > 2
    for path in read:
        places = {path, *map(str, Path(path).parents)}
        assert places & copied, path
        assert places & sent, path


def test_the_public_workflow_covers_every_supported_version_and_system() -> None:
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"]))
    [listed] = re.findall(r"python: \[(.*)\]", text)
    assert [version.strip(' "') for version in listed.split(",")] == supported
    assert {"ubuntu-latest", "macos-latest", "windows-latest"} <= set(re.findall(r"\w+-latest", text))
    for path in re.findall(r"\b(?:scripts|requirements|tests)/[\w.-]+", text):
        assert (ROOT / path).exists(), path
    jobs = re.split(r"^  (?=\w+:$)", text[text.index("jobs:") :], flags=re.MULTILINE)[1:]
    assert len(jobs) == 4
    for job in jobs:  # each of them builds the package, which contains the page
        assert "actions/setup-node@" in job, job.partition(":")[0]


def test_files_of_a_checkout_have_the_same_bytes_on_every_system() -> None:
    """Checksums and golden files compare bytes; git on Windows would otherwise write CRLF."""
    assert "* text=auto eol=lf" in (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    sources = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "src").rglob("*.json"),
        *(ROOT / "conformance").rglob("*"),
    ]
    assert [file for file in sources if file.is_file() and b"\r\n" in file.read_bytes()] == []


def test_every_script_is_linted() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"][
        "extend-include"
    ]
    scripts = {
        f"scripts/{file.name}" for file in (ROOT / "scripts").iterdir() if file.is_file() and not file.suffix
    }
    assert set(listed) == scripts


def test_scripts_need_no_shell() -> None:
    """Windows has no bash; a Python script runs everywhere with `py scripts/NAME`."""
    for script in (ROOT / "scripts").iterdir():
        if script.is_file() and script.suffix == "":
            assert script.read_text(encoding="utf-8").startswith("#!/usr/bin/env python3\n"), script


def test_files_are_flushed_through_a_handle_that_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to flush a file that is open for reading only."""
    modes = []

    def fsync(handle: int) -> None:
        os.write(handle, b"")  # fails on a handle for reading
        modes.append(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    fileio.write_text(tmp_path / "a.txt", "text")
    assert modes
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py")]
    assert sum(text.count("os.fsync(") for text in sources) == 1
