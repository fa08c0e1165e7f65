"""`phase live --lan`: TLS, a token for every request, and nothing without both."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from phase_rppg.cli import run
from phase_rppg.errors import MissingPackageError, UsageError
from phase_rppg.web import LanAccess, PageServer, assets, lan, open_lan, qr_code
from phase_rppg.web.server import HEADERS, REQUEST_S

ADDRESS = "127.0.0.1"  # stands for an address in a local network


@pytest.fixture(scope="module")
def access() -> LanAccess:
    return open_lan(ADDRESS)


@pytest.fixture
def server(access: LanAccess, tmp_path: Path) -> Iterator[PageServer]:
    with serving(access, tmp_path) as running:
        yield running


@contextmanager
def serving(access: LanAccess, folder: Path, request_s: float = REQUEST_S) -> Iterator[PageServer]:
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    with PageServer(assets.catalogue(folder), port=0, lan=access, request_s=request_s) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(
    server: PageServer, path: str = "/", *, cookie: str | None = None, host: str | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(ADDRESS, server.server_port, timeout=60, context=unverified)
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("Host", host or f"{ADDRESS}:{server.server_port}")
    if cookie is not None:
        connection.putheader("Cookie", cookie)
    connection.endheaders()
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def test_the_link_exchanges_its_token_for_a_cookie(server: PageServer, access: LanAccess) -> None:
    assert server.url == f"https://{ADDRESS}:{server.server_port}/?token={access.token}"
    response, content = ask(server, f"/?token={access.token}")
    assert (response.status, response.getheader("Location")) == (303, "/")
    cookie = response.getheader("Set-Cookie", "")
    assert {"Secure", "HttpOnly", "SameSite=Lax"} <= set(re.split(r"; ?", cookie))
    assert b"<title>" not in content
    response, content = ask(server, cookie=cookie.split(";")[0])
    assert response.status == 200
    assert b"<title>page</title>" in content
    for name, value in HEADERS.items():
        assert response.getheader(name) == value


WRONG = [None, "phase-token=", "phase-token=wrong", "phase-token=é", "other=1", ";;=;"]


@pytest.mark.parametrize("cookie", WRONG)
@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/models/index.json", "/nothing"])
def test_without_the_token_nothing_is_told(server: PageServer, path: str, cookie: str | None) -> None:
    response, content = ask(server, path, cookie=cookie)
    assert response.status == 403  # also for addresses that do not exist
    assert content == b"403 Forbidden\n"


def test_a_foreign_host_is_refused_even_with_the_token(server: PageServer, access: LanAccess) -> None:
    response, _ = ask(server, f"/?token={access.token}", host=f"evil.example:{server.server_port}")
    assert response.status == 421


def test_a_connection_without_tls_is_closed_and_the_server_goes_on(
    server: PageServer, access: LanAccess
) -> None:
    with socket.create_connection((ADDRESS, server.server_port), timeout=60) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        try:
            while block := plain.recv(4096):
                answer += block
        except ConnectionError:
            pass
    assert b"HTTP" not in answer
    assert ask(server, f"/?token={access.token}")[0].status == 303


def test_a_client_that_says_nothing_is_cut_off(access: LanAccess, tmp_path: Path) -> None:
    with (
        serving(access, tmp_path, request_s=1) as server,
        socket.create_connection((ADDRESS, server.server_port), timeout=60) as silent,
    ):
        assert silent.recv(1) == b""


@pytest.mark.parametrize("tool", ["cryptography", "openssl"])
def test_the_certificate_names_the_address_and_ends_soon(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tool == "cryptography":
        pytest.importorskip("cryptography")
    elif shutil.which("openssl") is None:
        pytest.skip("openssl is missing")
    monkeypatch.setattr(lan, "is_installed", lambda package: package == tool)
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    lan._make_certificate("192.168.1.20", key, certificate)
    assert key.stat().st_mode & 0o077 == 0  # nobody else may read it
    found = ssl._ssl._test_decode_cert(str(certificate))  # type: ignore[attr-defined]
    assert found["subjectAltName"] == (("IP Address", "192.168.1.20"),)
    lasts_s = ssl.cert_time_to_seconds(found["notAfter"]) - ssl.cert_time_to_seconds(found["notBefore"])
    assert 0 < lasts_s <= (lan.VALID_DAYS + 1) * 86400
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)


def test_without_any_tool_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lan, "is_installed", lambda _: False)
    monkeypatch.setattr(lan.shutil, "which", lambda _: None)
    with pytest.raises(MissingPackageError, match=r"phase-rppg\[lan\]"):
        lan._make_certificate(ADDRESS, tmp_path / "key.pem", tmp_path / "certificate.pem")
    assert qr_code("https://192.168.1.20/") is None


def test_tokens_and_certificates_are_new_each_time(access: LanAccess) -> None:
    other = open_lan(ADDRESS)
    assert other.token != access.token
    assert other.fingerprint != access.fingerprint
    assert len(other.token) >= 24
    assert access.admits(access.token)
    assert not access.admits(other.token)
    assert not access.admits(None)


def test_a_computer_without_a_network_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lan, "_ELSEWHERE", (ADDRESS, 9))
    with pytest.raises(UsageError, match="no network"):
        lan.local_address()


def test_live_warns_prints_the_link_and_a_qr_code(
    access: LanAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(server: PageServer) -> None:
        assert server.socket.getsockname()[0] == ADDRESS
        raise KeyboardInterrupt

    (tmp_path / "index.html").write_text("")
    monkeypatch.setattr("phase_rppg.web.catalogue", lambda: assets.catalogue(tmp_path))
    monkeypatch.setattr("phase_rppg.web.open_lan", lambda: access)
    monkeypatch.setattr(PageServer, "serve_forever", interrupted)
    assert run(["live", "--lan", "--no-open", "--port", "0"]) == 0
    out = capsys.readouterr().out
    assert "WARNING" in out
    assert access.fingerprint in out
    assert f"?token={access.token}" in out
    if qr_code("x") is not None:
        assert out.count("█") + out.count("▀") + out.count("▄") > 100


def test_a_checkout_without_the_page_builds_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page, script = tmp_path / "page", tmp_path / "scripts" / "build-web"
    script.parent.mkdir()
    script.write_text(
        f"import pathlib; p = pathlib.Path({str(page)!r}); p.mkdir(); (p / 'index.html').touch()"
    )
    assets.build_if_missing(page, tmp_path)
    assert not page.exists()  # no sources: not a checkout
    (tmp_path / "web").mkdir()
    assets.build_if_missing(page, tmp_path)
    assert (page / "index.html").is_file()
    script.write_text("raise SystemExit('built again')")
    assets.build_if_missing(page, tmp_path)
    assert "built again" not in capfd.readouterr().err
