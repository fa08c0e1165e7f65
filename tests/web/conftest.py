"""The built page, a server for it, and headless Chromium."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from phase_rppg.web import PAGE, Asset, PageServer, catalogue, export

ROOT = Path(__file__).parent.parent.parent
# Everything that would talk to the outside is switched off; as root there is no sandbox.
CHROMIUM_FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE_MS = 120_000  # for anything that a page is asked for; other programs may take most of the processor


def missing(what: str, how: str) -> None:
    """Skip with a reason; in CI nothing may be missing."""
    if os.environ.get("PHASE_TESTS_COMPLETE"):
        pytest.fail(f"{what} is missing, although scripts/install --all ran: {how}")
    pytest.skip(f"{what} is missing: {how}")


@pytest.fixture(scope="session")
def npm() -> str:
    found = shutil.which("npm")
    if found is None or not (ROOT / "web" / "node_modules").is_dir():
        missing("the page's tool chain", "install Node.js 20 and run scripts/build-web")
    return str(found)


@pytest.fixture(scope="session")
def built() -> Path:
    if not (PAGE / "index.html").is_file():
        missing("the built page", "run scripts/build-web")
    return PAGE


@pytest.fixture(scope="session")
def chromium() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        missing("Chromium", "apt-get install chromium")
    pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install playwright")
    return str(found)


def find_firefox() -> str:
    """Return the path of Firefox, or skip the test."""
    found = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
    if found is None:
        missing("Firefox", "apt-get install firefox-esr")
    return str(found)


@pytest.fixture
def serve(built: Path) -> Iterator[Callable[..., PageServer]]:
    """Start the page's server, with extra files if a test needs some."""
    running: list[tuple[PageServer, threading.Thread]] = []

    def start(extra: dict[str, Asset] | None = None, **where: Path) -> PageServer:
        server = PageServer(catalogue(built, **where) | (extra or {}), port=0)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        running.append((server, thread))
        return server

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def static(built: Path, tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """Export the page and serve it as any static host would: in a folder, with no headers of ours."""
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    def start(*extra: Path) -> str:
        site = tmp_path / "host" / "some" / "folder"
        export(site, built)
        for file in extra:
            shutil.copy(file, site)
        host = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "host"))
        thread = threading.Thread(target=host.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        running.append((host, thread))
        return f"http://127.0.0.1:{host.server_port}/some/folder/"

    yield start
    for host, thread in running:
        host.shutdown()
        thread.join()
        host.server_close()


@pytest.fixture(scope="session")
def playwright(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def blind_browser(playwright: Any, chromium: str) -> Iterator[Any]:
    """A browser whose camera nobody allows, for tests that need none."""
    flags = ["--use-fake-device-for-media-stream", "--deny-permission-prompts"]
    browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM_FLAGS, *flags])
    yield browser
    browser.close()


@pytest.fixture
def browse(request: pytest.FixtureRequest, playwright: Any, chromium: str) -> Callable[..., Any]:
    """A fresh page: `browse(y4m)` has a camera that plays it, `browse(cameras=2)` two with test pictures

    Without either nobody allows a camera. page.requests is what it asked for, page.problems what it
    complained about.
    """

    @contextmanager
    def opened(y4m: Path | None = None, cameras: int = 0, **context: Any) -> Iterator[Any]:
        if y4m is None and cameras == 0:
            browser = request.getfixturevalue("blind_browser")
        else:
            flags = ["--use-fake-ui-for-media-stream"]
            flags += [f"--use-fake-device-for-media-stream=device-count={max(cameras, 1)}"]
            flags += [f"--use-file-for-fake-video-capture={y4m}"] if y4m else []
            browser = playwright.chromium.launch(executable_path=chromium, args=[*CHROMIUM_FLAGS, *flags])
        # Drawing a heart that beats sixty times a second would cost a busy machine frames of the film.
        page = browser.new_context(reduced_motion="reduce", **context).new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.requests, page.problems = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda line: page.problems.append(line.text) if line.type == "error" else None)
        yield page
        page.context.close()
        if y4m is not None or cameras:
            browser.close()

    return opened
