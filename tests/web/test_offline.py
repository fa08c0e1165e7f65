"""The page without a connection, and its new versions: the service worker keeps the files of one version."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from phase_rppg.web import Asset, PageServer, catalogue

from .acting import scripted

Serve = Callable[..., PageServer]
Browse = Callable[..., Any]
STORED = "async () => Boolean((await navigator.serviceWorker.ready).active) && (await caches.keys())"
READY = "#network:not(:empty)"


def version(script: Asset) -> str:
    found = re.match(rb'const VERSION = "(\w+)";', script.read())
    assert found
    return found[1].decode()


def test_the_service_worker_names_every_other_file(built: Path) -> None:
    assets = catalogue(built)
    script = assets["sw.js"].read().decode()
    listed = re.search(r"const FILES = (\[.*\]);", script)
    assert listed
    assert json.loads(listed[1]) == sorted(set(assets) - {"sw.js"})


def test_a_changed_file_is_a_new_version(built: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("one")
    (tmp_path / "sw.js").write_text("// worker")
    first = version(catalogue(tmp_path)["sw.js"])
    assert version(catalogue(tmp_path)["sw.js"]) == first
    (tmp_path / "index.html").write_text("two")
    assert version(catalogue(tmp_path)["sw.js"]) != first


def test_the_page_works_without_its_server_and_offers_a_new_version(serve: Serve, browse: Browse) -> None:
    server = serve(scripted())
    with browse() as page:
        page.goto(server.url)
        page.wait_for_selector(READY, state="attached")
        (kept,) = page.evaluate(STORED)
        assert kept == f"phase-live-{version(server.assets['sw.js'])}"
        files, server.assets = server.assets, {}  # the server has nothing any more
        page.goto(f"{server.url}?method=pos")
        page.wait_for_selector(READY, state="attached")
        assert page.inner_text("#start") == "Start camera"
        assert not page.is_visible("#update")
        old = files["sw.js"]
        changed = re.sub(rb'VERSION = "\w+"', b'VERSION = "new"', old.read())
        server.assets = {**files, "sw.js": replace(old, content=changed)}
        page.goto(server.url)
        page.wait_for_selector("#update:not([hidden])")
        with page.expect_navigation():
            page.click("#reload")
        page.wait_for_selector(READY, state="attached")
        page.wait_for_function("async () => String(await caches.keys()) === 'phase-live-new'")


def test_the_page_can_be_installed(built: Path) -> None:
    assets = catalogue(built)
    manifest = json.loads(assets["manifest.webmanifest"].read())
    assert assets["manifest.webmanifest"].media_type == "application/manifest+json"
    assert manifest["display"] == "standalone"
    for icon in manifest["icons"]:
        found = assets[icon["src"].removeprefix("./")]
        assert found.media_type == icon["type"]
        if icon["type"] == "image/png":
            side = int(icon["sizes"].split("x")[0])
            assert found.read()[16:24] == side.to_bytes(4, "big") * 2  # the size in the header of a PNG
