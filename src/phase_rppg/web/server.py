"""A server for one page on one computer.

It listens on the loopback address, gives out the files of a fixed catalogue to requests that name it by a
loopback name (a foreign name means that some other site's address was pointed here), takes no request
bodies, and tells the browser that the page may talk to nobody but this server.
"""

from __future__ import annotations

import http
import socketserver
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..errors import UsageError
from .assets import Asset

ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8420  # one fixed port: browsers remember the camera permission by address and port
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' blob:; media-src 'self' blob: mediastream:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=(), display-capture=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


class PageServer(ThreadingHTTPServer):
    """Serves the files of a catalogue on the loopback address; port 0 takes any free one."""

    daemon_threads = True

    def __init__(self, assets: Mapping[str, Asset], port: int = DEFAULT_PORT) -> None:
        self.assets = assets
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} of {ADDRESS} is not free ({error.strerror}); choose another with --port"
            ) from error

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # without the look-up of this computer's name
        self.server_name, self.server_port = ADDRESS, int(self.server_address[1])

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up in the middle of a file is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "phase", ""
    timeout = 20  # seconds of silence before a connection is closed

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _refuse_method(self) -> None:
        self._refuse(http.HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": "GET, HEAD"})

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse_method

    def _answer(self, with_body: bool) -> None:
        if not self._is_our_name(self.headers.get_all("Host", [])):
            return self._refuse(http.HTTPStatus.MISDIRECTED_REQUEST)
        if self.headers.get("Content-Length", "0").strip() != "0" or "Transfer-Encoding" in self.headers:
            return self._refuse(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        address = self.path.split("?", 1)[0]
        asset = self.server.assets.get("index.html" if address == "/" else address.removeprefix("/"))
        if asset is None or not address.startswith("/"):
            return self._refuse(http.HTTPStatus.NOT_FOUND)
        try:
            content = asset.read()
        except OSError:
            return self._refuse(http.HTTPStatus.NOT_FOUND)
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", asset.media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def _is_our_name(self, hosts: list[str]) -> bool:
        port = self.server.server_port
        return len(hosts) == 1 and hosts[0].lower() in (f"{ADDRESS}:{port}", f"localhost:{port}")

    def _refuse(self, status: http.HTTPStatus, extra: Mapping[str, str] | None = None) -> None:
        """Say no and hang up: what the other side still sends is not read."""
        self.close_connection = True
        text = f"{status.value} {status.phrase}\n".encode()
        self.send_response(status)
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is stored, not even who asked for what."""
        del format, args
