"""`phase serve`: answers, limits, tokens and counters; nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phase_rppg.cli import run

pytest.importorskip("starlette", reason="starlette is missing: the extra serve")
httpx = pytest.importorskip("httpx", reason="httpx is missing")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # newer versions prefer a successor of httpx
    from starlette.testclient import TestClient

from phase_rppg.web import service as service_module  # noqa: E402
from phase_rppg.web.service import Service, ServiceLimits  # noqa: E402

Films = Callable[[str], Path]
POS = {"model": "pos"}
TOKEN = "a-token-of-sufficient-length"
SMALL = ServiceLimits(mb=5, seconds=120, workers=1, queue=2)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*httpx.*")


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(Service(SMALL).app(), base_url="http://127.0.0.1:8421") as made:
        yield made


def post(client: TestClient, content: bytes, media: str = "video/mp4", **query: str) -> Any:
    return client.post("/v1/measure", params=query, content=content, headers={"Content-Type": media})


def test_a_video_gives_the_document_of_the_command(
    client: TestClient, film: Films, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer = post(client, film("face").read_bytes(), **POS, full="true")
    assert answer.status_code == 200
    assert run(["measure", str(film("face")), "-m", "pos", "--json", "--full"]) == 0
    expected = json.loads(capfd.readouterr().out)
    assert answer.json() == expected | {"video": "upload"}
    assert list(tmp_path.iterdir()) == []  # nothing is kept
    assert answer.headers["cache-control"] == "no-store"
    text = client.get("/metrics").text
    assert 'phase_requests_total{path="/v1/measure",status="200"} 1' in text
    assert 'phase_videos_total{reading="yes"} 1' in text
    assert "phase_video_seconds_total 11.0" in text
    assert f"phase_uploaded_bytes_total {film('face').stat().st_size}" in text
    assert "phase_requests_running 0" in text


@pytest.mark.parametrize(
    ("content", "media", "query", "status", "told"),
    [
        (b"no video", "video/mp4", {}, 422, "upload: is not a video"),
        (b"", "video/mp4", {}, 400, "the body is empty"),
        (b"x", "text/plain", {}, 415, "Content-Type"),
        (b"x", "video/mp4", {"window": "1"}, 400, "window"),
        (b"x", "video/mp4", {"window": "nan"}, 400, "window"),
        (b"x", "video/mp4", {"window": "3"}, 400, "at least 6 seconds"),
        (b"x", "video/mp4", {"step": "x"}, 400, "numbers of seconds"),
        (b"x", "video/mp4", {"full": "yes"}, 400, "true or false"),
        (b"x", "video/mp4", {"model": "/etc/passwd"}, 400, "unknown model"),
        (b"x", "video/mp4", {"face": "1"}, 400, "unknown parameter"),
        (bytes(5_000_001), "video/mp4", {}, 413, "larger than 5 MB"),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused_with_a_reason(
    client: TestClient, content: bytes, media: str, query: dict[str, str], status: int, told: str
) -> None:
    answer = post(client, content, media, **query)
    assert answer.status_code == status
    assert told in answer.json()["error"]
    assert "/tmp" not in answer.text


def test_a_body_without_a_length_is_limited_too(client: TestClient) -> None:
    blocks = (bytes(1_000_000) for _ in range(8))
    answer = client.post("/v1/measure", content=blocks, headers={"Content-Type": "video/mp4"})
    assert answer.status_code == 413


def test_other_hosts_and_methods_are_refused(client: TestClient) -> None:
    assert client.get("/healthz", headers={"Host": "attacker.example"}).status_code == 421
    assert client.get("/v1/measure").status_code == 405
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/nothing").status_code == 404


def test_a_full_queue_refuses_at_once(film: Films) -> None:
    made = Service(ServiceLimits(workers=1, queue=0))
    with TestClient(made.app(), base_url="http://127.0.0.1") as client:
        answer = post(client, b"x")
    assert answer.status_code == 503
    assert answer.headers["retry-after"]


def test_a_measurement_that_takes_too_long_is_ended(film: Films, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(service_module.TimeLimit, match="was not measured within 0 s"):
        service_module.measure_file(
            str(film("short")), "upload", service_module.MeasureOptions("pos"), False, 0.0
        )


def test_a_token_is_required_everywhere_but_for_health() -> None:
    with TestClient(Service(SMALL, TOKEN).app(), base_url="http://measure.example") as client:
        assert client.get("/healthz").status_code == 200
        for words in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}"):
            answer = client.get("/metrics", headers={"Authorization": words})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert post(client, b"x").status_code == 401
        assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize(
    ("words", "token", "told"),
    [
        (["--host", "0.0.0.0"], None, "set a token with PHASE_SERVE_TOKEN or --token-file"),
        (["--host", "0.0.0.0"], "short", "at least 16 characters"),
        (["--workers", "0"], None, "needs worker processes"),
    ],
)
def test_the_command_refuses_unsafe_settings(
    words: list[str], token: str | None, told: str, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.delenv("PHASE_SERVE_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("PHASE_SERVE_TOKEN", token)
    assert run(["serve", *words]) == 2
    assert told in capfd.readouterr().err


class Server:
    """The service on a free port, with a short deadline for the headers of a request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is missing: the extra serve")
        from phase_rppg.web.request_deadline import DeadlineProtocol

        monkeypatch.setattr(DeadlineProtocol, "request_s", 1.0)
        config = uvicorn.Config(
            Service(SMALL).app(),
            port=0,
            log_config=None,
            http=DeadlineProtocol,
            limit_concurrency=16,
            timeout_keep_alive=15,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> int:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)
        port: int = self._server.servers[0].sockets[0].getsockname()[1]
        return port

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.mark.parametrize(
    "start",
    [b"", b"GET /healthz HTTP/1.1\r\nX: ", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /h"],
    ids=["silent", "first request", "second request"],
)
def test_clients_that_send_slowly_are_cut_off(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(monkeypatch) as port, contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5)) for _ in range(10)
        ]
        for client in clients:
            client.sendall(start)
        end_s = time.monotonic() + 10
        while clients and time.monotonic() < end_s:
            time.sleep(0.2)
            clients = [client for client in clients if is_connected(client)]
        assert clients == []
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200


def is_connected(client: socket.socket) -> bool:
    """Send one byte, and return whether the server has not closed the connection."""
    try:
        client.sendall(b"a")
        client.settimeout(0.001)
        while client.recv(65536):
            pass
        return False
    except TimeoutError:
        return True
    except OSError:
        return False


def test_a_body_that_breaks_off_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"POST /v1/measure HTTP/1.1\r\nHost: localhost\r\nContent-Type: video/mp4\r\n"
    with Server(monkeypatch) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\nabc")
            assert b" 400 " in client.recv(65536)
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(head + b"Content-Length: 100\r\n\r\nabc")
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), ("/v1/measure", 405)])
def test_a_refused_address_has_the_headers_of_other_answers(
    path: str, status: int, client: TestClient
) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    for name, value in service_module.HEADERS.items():
        assert answer.headers[name] == value


@pytest.mark.skipif(not os.environ.get("PHASE_SLOW_TESTS"), reason="slow: set PHASE_SLOW_TESTS=1")
def test_the_service_behaves_as_it_describes_itself(tmp_path: Path) -> None:
    """schemathesis sends generated requests to a server on the loopback interface."""
    pytest.importorskip("schemathesis", reason="schemathesis is missing: requirements/scale.txt")
    words = [sys.executable, "-m", "phase_rppg", "serve", "--port", "8429", "--workers", "1"]
    server = subprocess.Popen(words)
    try:
        for _ in range(100):
            try:
                httpx.get("http://127.0.0.1:8429/healthz")
                break
            except httpx.ConnectError:
                time.sleep(0.2)
        script = Path(__file__).parents[2] / "benchmarks" / "serve_schema.py"
        done = subprocess.run([sys.executable, str(script), "--url", "http://127.0.0.1:8429"], check=False)
        assert done.returncode == 0
    finally:
        server.terminate()
        server.wait()
