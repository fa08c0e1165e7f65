"""The npm package as a customer gets it: the packed tarball, its types, and three example pages."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT
from .filming import film, write_y4m
from .projection import WATCH, Shown, read, wait

WEB = ROOT / "web"
EXAMPLES = WEB / "examples"
Browse = Callable[..., Any]


@pytest.fixture(scope="module")
def package(npm: str, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pack the package, which `scripts/build-web` has built, and unpack it into a node_modules folder."""
    assert (WEB / "phase-rppg" / "dist" / "index.js").is_file(), f"{built} is built, but not the package"
    folder = tmp_path_factory.mktemp("customer")
    command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder)]
    subprocess.run(command, cwd=WEB / "phase-rppg", check=True, capture_output=True)
    target = folder / "node_modules"
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        assert all(member.name.startswith("package/") and ".." not in member.name for member in members)
        for member in members:
            content = archive.extractfile(member)
            assert content is not None
            file = target / "phase-rppg" / member.name.removeprefix("package/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.read())
    return target / "phase-rppg"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """Serve a folder as any static host does, and yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    (tmp_path / "site").mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "site"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_tarball_is_complete_and_holds_nothing_else(package: Path) -> None:
    files = {file.relative_to(package).as_posix() for file in package.rglob("*") if file.is_file()}
    assert {"README.md", "LICENSE", "package.json", "assets/worker.js", "assets/NOTICES.txt"} <= files
    tops = {name.split("/")[0] for name in files}
    assert tops == {"README.md", "LICENSE", "package.json", "assets", "dist"}
    manifest = json.loads((package / "package.json").read_text(encoding="utf-8"))
    for entry in manifest["exports"].values():
        for file in entry.values() if isinstance(entry, dict) else [entry]:
            assert "*" in file or file.removeprefix("./") in files
    hashes = json.loads((package / "assets/models/index.json").read_text(encoding="utf-8"))
    assert {"models/face/yunet.onnx", "models/infer/phasenet-stream.onnx"} <= set(hashes)
    for name, digest in hashes.items():
        assert hashlib.sha256((package / "assets" / name).read_bytes()).hexdigest() == digest


def test_the_modules_need_no_bundler(package: Path) -> None:
    """A module imports files by their names; only the file decoder imports another package."""
    foreign = {}
    for file in (package / "dist").rglob("*.js"):
        for name in re.findall(r"(?:from|import)\s*\(?\"([^\"]+)\"", file.read_text(encoding="utf-8")):
            if name.startswith("."):
                assert (file.parent / name).is_file(), f"{file.name} imports {name}"
            else:
                foreign[file.relative_to(package / "dist").as_posix()] = name
    assert foreign == {"capture/fileDecoder.js": "mediabunny"}


CUSTOMER = """
import { type Estimate, isEstimate, Session } from "phase-rppg";
import { PhasePulseElement } from "phase-rppg/element";
import { Session as CoreSession } from "phase-rppg/core";

const session = new Session({ assets: "/files/", faces: "all" });
session.on("reading", ({ detail }) => {
  if (isEstimate(detail.reading)) { const known: Estimate = detail.reading; known.bpm.toFixed(1); }
});
session.push(new ImageData(2, 2), 0.5);
// @ts-expect-error: a time is a number
session.push(new ImageData(2, 2), "now");
const element: PhasePulseElement = document.createElement("phase-pulse");
void element.start();
export { CoreSession };
"""


def test_the_types_are_those_of_the_modules(package: Path) -> None:
    folder = package.parent.parent
    (folder / "customer.ts").write_text(CUSTOMER)
    (folder / "package.json").write_text('{ "type": "module" }')
    options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom"]
    command = ["node", str(WEB / "node_modules/typescript/bin/tsc"), *options, "customer.ts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def build(name: str, package: Path, site: Path, folder: Path) -> None:
    """Build an example with Vite from the unpacked package, as a customer does."""
    shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "phase-rppg").symlink_to(package)
    for other in ("react", "react-dom", "scheduler"):
        (modules / other).symlink_to(WEB / "node_modules" / other)
    copied = {"bundler": ("assets/models", "models"), "react": ("assets", "phase-rppg")}
    source, target = copied[name]
    shutil.copytree(package / source, folder / "public" / target)
    vite = ["node", str(WEB / "node_modules/vite/bin/vite.js"), "build", "--base", "./", "--emptyOutDir"]
    command = [*vite, "--logLevel", "warn", "--outDir", str(site)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def reading_bpm(page: Any) -> float | None:
    """The last reading that an example shows."""
    number, _, unit = page.inner_text("#reading").partition(" ")
    return float(number) if unit == "bpm" else None


@pytest.mark.parametrize("name", ["plain", "bundler", "react"])
def test_an_example_measures(name: str, package: Path, host: str, browse: Browse, tmp_path: Path) -> None:
    site = tmp_path / "site"
    if name == "plain":
        shutil.copytree(EXAMPLES / name, site, dirs_exist_ok=True)
        shutil.copytree(package, site / "node_modules" / "phase-rppg")
    else:
        build(name, package, site, tmp_path / "project")
    (site / "favicon.ico").touch()  # browsers ask for it
    frames, _, truth_bpm = film(72, 10)
    with browse(write_y4m(tmp_path / "72.y4m", frames)) as page:
        page.goto(host)
        if name == "plain":
            page.evaluate(WATCH)
            shown = Shown(bpm=reading_bpm, fps=lambda _: math.inf, within_bpm=5)  # it tells no frame rate
            read(page, truth_bpm, len(frames), shown=shown)
        else:  # the same worker
            wait(page, lambda: page.inner_text("#state") == "measuring", "measuring")
        assert page.problems == []
        assert all(url.startswith((host, "blob:", "data:")) for url in page.requests)
