"""What the page weighs on the wire, and that a second visit loads nothing again."""

from __future__ import annotations

import gzip
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from phase_rppg.web import PageServer

Serve = Callable[..., PageServer]
FIRST_LOAD_MB = 5.0


def ask(server: PageServer, address: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(server.url + address, headers=named)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def wasm(server: PageServer) -> str:
    return next(name for name in server.assets if name.endswith(".wasm"))


def test_a_compressed_file_is_sent_to_a_browser_that_accepts_it(serve: Serve) -> None:
    server = serve()
    address = wasm(server)
    _, plain_headers, plain = ask(server, address)
    assert "Content-Encoding" not in plain_headers
    _, headers, packed = ask(server, address, Accept_Encoding="gzip, deflate")
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(packed) == plain
    _, headers, small = ask(server, address, Accept_Encoding="gzip, br")
    assert headers["Content-Encoding"] == "br"
    assert len(small) < len(packed)
    _, headers, _ = ask(server, address, Accept_Encoding="br;q=0, gzip")
    assert headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize("name", ["index.html", "models/face/yunet.onnx", "models/index.json"])
def test_a_file_without_a_hash_in_its_name_is_revalidated(serve: Serve, name: str) -> None:
    server = serve()
    status, headers, content = ask(server, name, Accept_Encoding="gzip")
    assert status == 200
    assert headers["Cache-Control"] == "no-cache"
    status, again, nothing = ask(server, name, Accept_Encoding="gzip", If_None_Match=headers["ETag"])
    assert (status, nothing, again["ETag"]) == (304, b"", headers["ETag"])
    status, _, _ = ask(server, name, If_None_Match='"something else"')
    assert status == 200
    assert content


def test_a_file_with_a_hash_in_its_name_is_kept(serve: Serve) -> None:
    server = serve()
    _, headers, _ = ask(server, wasm(server))
    assert "immutable" in headers["Cache-Control"]


def test_the_first_load_is_light(serve: Serve, browse: Callable[..., Any]) -> None:
    server = serve()
    with browse() as page:
        page.goto(server.url)
        page.wait_for_selector("#network:not(:empty)", state="attached")
        addresses = {url.removeprefix(server.url) for url in page.requests}
    assert any(address.endswith(".wasm") for address in addresses)  # requests of the worker are counted
    # Firefox sends this coding on a connection without TLS; brotli is smaller.
    total = sum(len(ask(server, address, Accept_Encoding="gzip")[2]) for address in addresses)
    print(f"first load: {total / 1e6:.2f} MB")
    assert total < FIRST_LOAD_MB * 1e6


def test_a_missing_runtime_or_worker_is_named(serve: Serve, browse: Callable[..., Any]) -> None:
    for kind, told in ((".wasm", ".wasm is missing"), ("assets/worker-", "assets/worker-")):
        server = serve()
        del server.assets[next(name for name in server.assets if kind in name)]
        with browse() as page:
            page.goto(server.url)
            page.wait_for_selector("#reading[data-state=none]")
            assert told in page.inner_text("#guidance")
