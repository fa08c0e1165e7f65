"""Attacks on the server of the page, by other pages in the browser and by other programs."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from phase_rppg.web import assets, server

from .parsers import Succeeded

REQUEST_S = 2.0  # instead of 20 s, so that an attack takes less time
SECRET = b"secret content"


@contextlib.contextmanager
def _running(folder: Path, request_s: float = REQUEST_S) -> Iterator[server.PageServer]:
    """Serve a page with one secret beside it."""
    page = folder / "page"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html>page")
    (folder / "secret.txt").write_bytes(SECRET)
    (page / "link.txt").symlink_to(folder / "secret.txt")
    with server.PageServer(assets.catalogue(page), 0, request_s=request_s) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


def _ask(
    running: server.PageServer,
    method: str = "GET",
    path: str = "/",
    body: bytes | None = None,
    **headers: str,
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", running.server_port, timeout=10)
    connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def dns_rebinding(folder: Path) -> str:
    """A page of another site whose name resolves to 127.0.0.1."""
    with _running(folder) as running:
        port = running.server_port
        if _ask(running)[0].status != 200:
            raise Succeeded("the page itself is not served")  # the check below would prove nothing
        hosts = (
            f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", "", "127.0.0.1",
            f"localhost:{port}@evil.example",
        )  # fmt: skip
        for host in hosts:
            response, content = _ask(running, Host=host)
            if response.status != 421 or b"page" in content:
                raise Succeeded(f"the host name {host!r} was accepted")
    return "requests with another host name are refused (421)"


def csrf(folder: Path) -> str:
    """A page of another site that sends forms and requests, or embeds the page."""
    with _running(folder) as running:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            response, _ = _ask(running, method, "/", b"a=1", Origin="http://evil.example")
            if response.status != 405:
                raise Succeeded(f"{method} was accepted")
        if _ask(running, "GET", "/", b"a=1")[0].status != 413:
            raise Succeeded("a GET with a body was accepted")
        response, _ = _ask(running, Origin="http://evil.example")
        if any(name.lower().startswith("access-control-") for name, _ in response.getheaders()):
            raise Succeeded("another site may read answers")
        if "frame-ancestors 'none'" not in (response.getheader("Content-Security-Policy") or ""):
            raise Succeeded("another site may embed the page")
        if response.getheader("Cross-Origin-Resource-Policy") != "same-origin":
            raise Succeeded("another site may include files of the page")
    return "the server accepts GET and HEAD only, and no other site may read or embed the page"


def slowloris(folder: Path) -> str:
    """Many clients that send a byte from time to time and never finish a request."""
    with _running(folder) as running, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", running.server_port)
        clients = [
            stack.enter_context(socket.create_connection(address, timeout=5))
            for _ in range(server.MAX_CONNECTIONS)
        ]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
        deadline_s = time.monotonic() + 5 * REQUEST_S
        while clients and time.monotonic() < deadline_s:
            clients = [client for client in clients if _sends(client)]
            time.sleep(0.1)
        if clients:
            raise Succeeded(f"{len(clients)} slow clients are still connected")
        while time.monotonic() < deadline_s:  # the threads of the clients end
            with contextlib.suppress(OSError, http.client.HTTPException):
                if _ask(running)[0].status == 200:
                    return "all slow clients were cut off, and the page was served"
    raise Succeeded("the page is not served after slow clients")


def _sends(client: socket.socket) -> bool:
    """Send one byte, and return whether the server still listens."""
    try:
        client.sendall(b"a")
        client.settimeout(0.001)
        return client.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def page_traversal(folder: Path) -> str:
    """Addresses of files outside the page, and of a link to one."""
    with _running(folder) as running:
        for path in ("/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "//secret.txt", "/link.txt",
                     f"//{folder}/secret.txt", "/./link.txt", "/index.html/../../secret.txt"):  # fmt: skip
            response, content = _ask(running, path=path)
            if response.status == 200 or SECRET in content:
                raise Succeeded(f"{path} was served")
    return "only the files of the catalogue are served"


ATTACKS: dict[str, Callable[[Path], str]] = {
    attack.__name__: attack for attack in (dns_rebinding, csrf, slowloris, page_traversal)
}
