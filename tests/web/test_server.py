"""The server serves its own files on the loopback address and refuses all other requests."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from phase_rppg.cli import run
from phase_rppg.errors import InputError, OutputError, UsageError
from phase_rppg.fileio import sha256
from phase_rppg.web import PageServer, assets
from phase_rppg.web.server import HEADERS, MAX_CONNECTIONS, REQUEST_S


@pytest.fixture
def page(tmp_path: Path) -> Path:
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "assets" / "app.js").write_text("export {}")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def server(page: Path) -> Iterator[PageServer]:
    with PageServer(assets.catalogue(page), port=0) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(
    server: PageServer, path: str, method: str = "GET", host: str | None = None, body: bytes | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def raw(server: PageServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=60) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while block := connection.recv(65536):
            answer += block
    return answer


def test_it_serves_the_page_and_the_networks_of_python(server: PageServer) -> None:
    response, content = ask(server, "/")
    assert response.status == 200
    assert b"<title>page</title>" in content
    assert response.getheader("Content-Type", "").startswith("text/html")
    assert ask(server, "/assets/app.js?v=1")[0].getheader("Content-Type", "").startswith("text/javascript")
    response, content = ask(server, "/models/face/yunet.onnx")
    assert content == assets.DETECTOR.read_bytes()
    index = json.loads(ask(server, "/models/index.json")[1])
    assert index["models/face/yunet.onnx"] == sha256(assets.DETECTOR)
    assert any(name.startswith("models/calibration/") for name in index)


def test_it_listens_on_the_loopback_address_only(server: PageServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/", "/nothing", "/models/index.json"])
def test_every_response_forbids_other_connections(server: PageServer, path: str) -> None:
    response, _ = ask(server, path)
    policy = response.getheader("Content-Security-Policy", "")
    assert "default-src 'none'" in policy
    assert "http" not in policy  # no other server is allowed
    assert "unsafe-inline" not in policy
    assert response.getheader("Cross-Origin-Opener-Policy") == "same-origin"
    assert response.getheader("Cross-Origin-Embedder-Policy") == "require-corp"
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert not [name for name, _ in response.getheaders() if name.lower().startswith("access-control-")]


OUTSIDE = [
    "/../secret.txt",
    "/assets/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "//etc/passwd",
    "/etc/passwd",
    "/assets/..\\..\\secret.txt",
    "/assets",
    "/assets/",
    "/index.html/",
    "/\x7f",
    "/assets/app.js%00",
    "http://127.0.0.1/",
    "index.html",
    "*",
    "/models/../index.html",
    "/server.py",
]
FOREIGN = ("evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.nip.io:{port}", "")


@pytest.mark.parametrize("path", OUTSIDE)
def test_unknown_addresses_are_not_found(server: PageServer, path: str) -> None:
    host = f"127.0.0.1:{server.server_port}"
    answer = raw(
        server, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("latin-1")
    )
    assert answer.split(b" ", 2)[1] in (b"400", b"404")
    assert b"secret" not in answer.split(b"\r\n\r\n", 1)[1]


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_host_is_refused(server: PageServer, host: str) -> None:
    name = host.format(port=server.server_port)
    answer = raw(server, f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 421")
    assert b"<title>" not in answer


def test_no_host_or_two_hosts_are_refused(server: PageServer) -> None:
    ours = f"Host: 127.0.0.1:{server.server_port}\r\n"
    assert raw(server, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 421")
    assert raw(server, f"GET / HTTP/1.1\r\n{ours}{ours}\r\n".encode()).startswith(b"HTTP/1.1 421")
    assert b"<title>" not in raw(server, b"GET /\r\n")


def test_localhost_is_accepted(server: PageServer) -> None:
    assert ask(server, "/", host=f"localhost:{server.server_port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_methods_other_than_get_and_head_are_refused(server: PageServer, method: str) -> None:
    response, _ = ask(server, "/", method)
    assert response.status == 405
    assert response.getheader("Allow") == "GET, HEAD"


def test_unknown_methods_are_refused(server: PageServer) -> None:
    assert ask(server, "/", "BREW")[0].status == 501


def test_requests_with_a_body_are_refused(server: PageServer) -> None:
    assert ask(server, "/", body=b"x")[0].status == 413
    assert ask(server, "/", "POST", body=b"x" * 10)[0].status == 405
    host = f"Host: 127.0.0.1:{server.server_port}\r\n"
    huge = raw(server, f"GET / HTTP/1.1\r\n{host}Content-Length: 99999999999\r\n\r\n".encode())
    assert huge.startswith(b"HTTP/1.1 413")
    chunked = raw(server, f"GET / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n".encode())
    assert chunked.startswith(b"HTTP/1.1 413")
    assert ask(server, "/")[0].status == 200  # the server continues


def test_long_addresses_and_many_headers_are_refused(server: PageServer) -> None:
    assert raw(server, b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 414")
    many = b"".join(b"X-%d: 1\r\n" % i for i in range(300))
    assert raw(server, b"GET / HTTP/1.1\r\n" + many + b"\r\n").startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "request_line",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / x y z\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ],
)
def test_answers_to_malformed_requests_have_the_security_headers(
    server: PageServer, request_line: bytes
) -> None:
    answer = raw(server, request_line)
    head = answer.split(b"\r\n\r\n")[0].decode()
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
    for name, value in HEADERS.items():
        assert f"{name}: {value}" in head
    assert b"GARBAGE" not in answer  # nothing of the request is repeated


def test_a_client_that_sends_slowly_is_cut_off(page: Path) -> None:
    """A byte at a time never times out by itself; the whole request has a deadline."""
    with PageServer(assets.catalogue(page), port=0, request_s=1.0) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        started_s = time.monotonic()
        request, sent = b"GET / HTTP/1.1\r\nX-Slow: " + b"a" * 1000, 0
        with socket.create_connection(("127.0.0.1", running.server_port), timeout=60) as connection:
            connection.settimeout(0.2)
            for byte in request:
                try:
                    connection.sendall(bytes([byte]))
                    sent += 1
                    if connection.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
        assert time.monotonic() - started_s > 0.8
        assert sent < len(request) / 10  # all of it would take 200 s
        assert ask(running, "/")[0].status == 200
        running.shutdown()
        thread.join()


def test_the_number_of_connections_is_bounded(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = [
        socket.create_connection(("127.0.0.1", server.server_port), timeout=60)
        for _ in range(MAX_CONNECTIONS)
    ]
    try:
        # Connections are accepted in their order. The time is less than that of an idle connection.
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=0.8 * REQUEST_S) as one_more:
            assert one_more.recv(1) == b""  # closed without an answer
    finally:
        for connection in idle:
            connection.close()
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:  # the threads of the closed connections end
        try:
            assert ask(server, "/")[0].status == 200
            return
        except (ConnectionError, http.client.BadStatusLine):
            time.sleep(0.05)
    pytest.fail("the server did not recover")


def test_one_connection_serves_many_requests(server: PageServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    for _ in range(3):
        connection.request("GET", "/assets/app.js")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"export {}")
    connection.close()


def test_a_symbolic_link_in_the_page_is_not_served(page: Path) -> None:
    (page / "link.txt").symlink_to(page.parent / "secret.txt")
    (page / "folder").symlink_to(page.parent)
    (page / "inside.js").symlink_to(page / "assets" / "app.js")
    found = assets.catalogue(page)
    assert "link.txt" not in found
    assert "folder/secret.txt" not in found
    assert "inside.js" not in found
    assert "assets/app.js" in found


def test_a_file_that_becomes_a_symbolic_link_is_not_served(server: PageServer, page: Path) -> None:
    assert ask(server, "/assets/app.js")[0].status == 200
    (page / "assets" / "app.js").unlink()
    (page / "assets" / "app.js").symlink_to(page.parent / "secret.txt")
    response, content = ask(server, "/assets/app.js")
    assert response.status == 404
    assert b"secret" not in content


def test_head_sends_no_body(server: PageServer) -> None:
    response, content = ask(server, "/", "HEAD")
    assert response.status == 200
    assert content == b""


def test_a_port_in_use_is_a_usage_error(server: PageServer) -> None:
    with pytest.raises(UsageError, match="--port"):
        PageServer({}, server.server_port)


def test_a_missing_page_names_the_build_script(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scripts/build-web"):
        assets.catalogue(tmp_path)


def test_the_export_contains_every_file(page: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "site"
    count = assets.export(target, page)
    written = {file.relative_to(target).as_posix() for file in target.rglob("*") if file.is_file()}
    assert written == set(assets.catalogue(page))
    assert count == len(written)
    with pytest.raises(OutputError, match="empty"):
        assets.export(target, page)
    assert [file.name for file in target.parent.iterdir()] == ["site"]


def test_an_unwritable_export_gives_one_line(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(assets, "PAGE", page)
    monkeypatch.setattr("phase_rppg.web.export", lambda target: assets.export(target, page))
    (tmp_path / "file").write_text("")
    assert run(["live", "--export", str(tmp_path / "file")]) == 4
    assert run(["live", "--export", str(tmp_path / "file" / "below")]) == 4
    assert all("cannot write" in line for line in capsys.readouterr().err.splitlines())


def test_live_without_a_page_names_the_build_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("phase_rppg.web.catalogue", lambda: assets.catalogue(tmp_path))
    assert run(["live", "--no-open"]) == 4
    assert "scripts/build-web" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--no-open"]])
def test_live_prints_its_address_and_opens_the_browser(
    flags: list[str], page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(server: PageServer) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    monkeypatch.setattr("phase_rppg.web.catalogue", lambda: assets.catalogue(page))
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(PageServer, "serve_forever", interrupted)
    assert run(["live", "--port", "0", *flags]) == 0
    address = next(word for word in capsys.readouterr().out.split() if word.startswith("http://127.0.0.1:"))
    assert opened == ([] if flags else [address])
