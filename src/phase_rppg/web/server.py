"""A local HTTP server for one page.

The server listens on the loopback address and serves the files of a fixed catalogue. It refuses requests
with another host name, which protects against DNS rebinding, and requests with a body. Its content security
policy forbids the page to connect to any other server. A request must arrive within `REQUEST_S`, and the
number of connections is bounded. With a `LanAccess` it listens on the address of this computer in the local
network instead, with TLS, and answers only requests that carry its token.
"""

from __future__ import annotations

import http
import http.cookies
import io
import os
import socket
import socketserver
import threading
import time
import urllib.parse
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..errors import UsageError
from .assets import Asset
from .lan import LanAccess

ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8420  # fixed, because browsers store the camera permission by address and port
REQUEST_S = 20.0  # time for a request line with its headers, and for each part of an answer
MAX_CONNECTIONS = 64  # a browser opens about six; more are closed at once
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' blob:; media-src 'self' blob: mediastream:; manifest-src 'self'; "
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
}
TOKEN = "token"  # of the link, in local networks
COOKIE = "phase-token"
REVALIDATE = "no-cache"  # the browser asks whether the file is still the same
IMMUTABLE = "public, max-age=31536000, immutable"


class PageServer(ThreadingHTTPServer):
    """An HTTP server for the files of a catalogue; port 0 selects a free port.

    It listens on the loopback address, or with `lan` in the local network.
    """

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # Windows would let another program take the same port
    request_queue_size = MAX_CONNECTIONS

    def __init__(
        self,
        assets: Mapping[str, Asset],
        port: int = DEFAULT_PORT,
        *,
        request_s: float = REQUEST_S,
        lan: LanAccess | None = None,
    ) -> None:
        self.assets, self.request_s, self.lan = assets, request_s, lan
        self.address = lan.address if lan else ADDRESS
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        try:
            super().__init__((self.address, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} of {self.address} is not available ({error.strerror}); "
                "choose another with --port"
            ) from error

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer would look up the host name
        self.server_name, self.server_port = self.address, int(self.server_address[1])

    @property
    def url(self) -> str:
        """The address of the page; in a local network with the token."""
        if self.lan is None:
            return f"http://{ADDRESS}:{self.server_port}/"
        return f"https://{self.address}:{self.server_port}/?{TOKEN}={self.lan.token}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names that a request may have."""
        names = (ADDRESS, "localhost") if self.lan is None else (self.address,)
        return tuple(f"{name}:{self.server_port}" for name in names)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread of its own, or close it if too many are open."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the requests of one connection, after the TLS handshake in a local network."""
        try:
            if self.lan is not None:
                request = self._secured(request, self.lan)
            super().process_request_thread(request, client_address)
        except OSError:
            self.shutdown_request(request)  # no handshake: a plain request, or a refused certificate
        finally:
            self._free.release()

    def _secured(self, request: socket.socket, lan: LanAccess) -> socket.socket:
        request.settimeout(self.request_s)
        return lan.context.wrap_socket(request, server_side=True)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that the browser closes during a transfer."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "phase", ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.request_s)  # also bounds a client that reads no answer
        self._request = _TimedReader(self.connection, self.server.request_s)
        self.rfile = io.BufferedReader(self._request)

    def handle_one_request(self) -> None:
        self._request.restart()
        super().handle_one_request()

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
        address, _, query = self.path.partition("?")
        if self.server.lan is not None and not self.server.lan.admits(self._cookie()):
            return self._check_token(self.server.lan, query)
        asset = self.server.assets.get("index.html" if address == "/" else address.removeprefix("/"))
        if asset is None or not address.startswith("/"):
            return self._refuse(http.HTTPStatus.NOT_FOUND)
        coding, chosen = asset.accepted(_codings(self.headers.get("Accept-Encoding", "")))
        try:
            tag, content = chosen.tag, chosen.read()
        except OSError:
            return self._refuse(http.HTTPStatus.NOT_FOUND)
        known = tag in (part.strip() for part in self.headers.get("If-None-Match", "").split(","))
        self.send_response(http.HTTPStatus.NOT_MODIFIED if known else http.HTTPStatus.OK)
        self.send_header("Cache-Control", IMMUTABLE if asset.immutable else REVALIDATE)
        self.send_header("ETag", tag)
        self.send_header("Vary", "Accept-Encoding")
        if not known:
            self.send_header("Content-Type", asset.media_type)
            self.send_header("Content-Length", str(len(content)))
            if coding is not None:
                self.send_header("Content-Encoding", coding)
        self.end_headers()
        if with_body and not known:
            self.wfile.write(content)

    def _is_our_name(self, hosts: list[str]) -> bool:
        return len(hosts) == 1 and hosts[0].lower() in self.server.hosts

    def _cookie(self) -> str | None:
        """Return the token of the cookie."""
        try:
            found = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except http.cookies.CookieError:
            return None
        return found.value if found else None

    def _check_token(self, lan: LanAccess, query: str) -> None:
        """Exchange the token of a link for a cookie, which removes it from the address; refuse others."""
        (token, *_) = urllib.parse.parse_qs(query).get(TOKEN, [""])
        if not lan.admits(token):
            return self._refuse(http.HTTPStatus.FORBIDDEN)
        cookie = f"{COOKIE}={lan.token}; Path=/; Secure; HttpOnly; SameSite=Lax"
        self._refuse(http.HTTPStatus.SEE_OTHER, {"Location": "/", "Set-Cookie": cookie})

    def _refuse(self, status: http.HTTPStatus, extra: Mapping[str, str] | None = None) -> None:
        """Send an error and close the connection without reading a request body."""
        self.close_connection = True
        self.request_version = self.protocol_version  # the first version had no headers in its answers
        text = f"{status.value} {status.phrase}\n".encode()
        self.send_response(status)
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.send_header("Cache-Control", REVALIDATE)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed request, with the headers of every other answer."""
        del message, explain  # they may repeat text of the request
        self._refuse(http.HTTPStatus(code))

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""
        del format, args


def _codings(header: str) -> list[str]:
    """Return the content codings that an Accept-Encoding header allows."""
    parts = (part.partition(";") for part in header.split(","))
    refused = ("q=0", "q=0.0")
    return [name.strip().lower() for name, _, weight in parts if weight.replace(" ", "") not in refused]


class _TimedReader(io.RawIOBase):
    """Read a socket until a deadline for the whole request, so that a slow sender cannot keep a thread."""

    def __init__(self, connection: socket.socket, limit_s: float) -> None:
        self._connection, self._limit_s = connection, limit_s
        self.restart()

    def restart(self) -> None:
        """Begin the time of the next request."""
        self._deadline_s = time.monotonic() + self._limit_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._connection.settimeout(left_s)
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(self._limit_s)
