"""`phase serve`: answers, limits, tokens and counters; nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
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
