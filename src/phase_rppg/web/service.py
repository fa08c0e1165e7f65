"""The HTTP service of `phase serve`: POST a video, get the JSON document of `phase measure`.

    POST /v1/measure     the video as the body; answers 200 with the document, or an error with its reason
    GET  /healthz        whether the service accepts work
    GET  /metrics        counters in the text format of Prometheus
    GET  /openapi.json   the description of this interface

Nothing is kept: a video is written to a temporary file, which is removed before the answer is sent. Size,
time and the number of requests are limited. With a token, every address but /healthz requires it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from .. import __version__
from ..errors import InputError, PhaseError, UsageError, VideoError
from ..measurement.measure import MeasureOptions, choices, run
from ..report.document import document, has_reading
from ..session.calibration import load
from ..workers.jobs import Job, Outcome, attempt
from ..workers.pool import initialize_worker
from .openapi import describe

log = logging.getLogger(__name__)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
BUCKETS_S = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_GRACE_S = 15.0  # a measurement checks its time at every frame; after this, its process is ended
_MEDIA_TYPES = ("video/", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What one request may need, and how many requests there may be."""

    mb: float = 200.0  # of a video
    seconds: float = 300.0  # for the upload, and again for the measurement
    workers: int = 2  # measurements at once
    queue: int = 8  # requests that are being received, wait or are measured


class TimeLimit(PhaseError):
    """The measurement takes longer than a request may.

    Not a VideoError: that would end the video and return what was measured so far.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the video was not measured within {seconds:g} s; send a shorter one")


def measure_file(path: str, name: str, options: MeasureOptions, full: bool, seconds: float) -> dict[str, Any]:
    """Measure a video within a time limit and return its document; this runs in a worker process."""
    end_s = time.monotonic() + seconds

    def check(_: float) -> None:
        if time.monotonic() > end_s:
            raise TimeLimit(seconds)

    try:
        result = run(path, options, check)
    except VideoError as error:
        raise type(error)(name, error.problem, error.hint) from None  # not the temporary path
    found = document(result, full=full) | {"video": name}
    return {"document": found, "reading": has_reading(result)}


@dataclass
class Metrics:
    """Counters in the text format of Prometheus."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by path and status
    buckets: Counter[float] = field(default_factory=Counter)
    seconds: float = 0.0
    readings: Counter[str] = field(default_factory=Counter)
    video_seconds: float = 0.0
    uploaded_bytes: int = 0

    def observe(self, path: str, status: int, seconds: float) -> None:
        self.requests[path, status] += 1
        if path == "/v1/measure":
            self.seconds += seconds
            for bound in (*BUCKETS_S, float("inf")):
                self.buckets[bound] += seconds <= bound

    def text(self, running: int) -> str:
        lines = ["# TYPE phase_requests_total counter"]
        for (path, status), count in sorted(self.requests.items()):
            lines.append(f'phase_requests_total{{path="{path}",status="{status}"}} {count}')
        lines.append("# TYPE phase_request_seconds histogram")
        for bound in (*BUCKETS_S, float("inf")):
            name = "+Inf" if bound == float("inf") else f"{bound:g}"
            lines.append(f'phase_request_seconds_bucket{{le="{name}"}} {self.buckets[bound]}')
        lines.append(f"phase_request_seconds_sum {self.seconds:.6f}")
        lines.append(f"phase_request_seconds_count {self.buckets[float('inf')]}")
        lines.append("# TYPE phase_videos_total counter")
        for reading in ("yes", "no"):
            lines.append(f'phase_videos_total{{reading="{reading}"}} {self.readings[reading]}')
        simple = {
            "phase_video_seconds_total": ("counter", f"{self.video_seconds:.3f}"),
            "phase_uploaded_bytes_total": ("counter", str(self.uploaded_bytes)),
            "phase_requests_running": ("gauge", str(running)),
        }
        for name, (kind, value) in simple.items():
            lines += [f"# TYPE {name} {kind}", f"{name} {value}"]
        return "\n".join(lines) + "\n"


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, problem: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.problem, self.headers = status, problem, dict(headers or {})
        super().__init__(problem)


class Service:
    """The state of the service: its limits, its worker processes and its counters."""

    def __init__(self, limits: ServiceLimits | None = None, token: str | None = None) -> None:
        self.limits, self.metrics, self._token = limits or ServiceLimits(), Metrics(), token
        self._present = 0
        self._free: asyncio.Semaphore | None = None
        self._pool: ProcessPoolExecutor | None = None

    def app(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route("/v1/measure", self._answered(self._measure), methods=["POST"]),
            Route("/healthz", self._answered(self._health, is_open=True), methods=["GET"]),
            Route("/metrics", self._answered(self._show_metrics), methods=["GET"]),
            Route("/openapi.json", self._answered(self._describe), methods=["GET"]),
        ]
        refused: dict[Any, Any] = {HTTPException: _refuse_address}
        return Starlette(routes=routes, lifespan=self._lifespan, exception_handlers=refused)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._free = asyncio.Semaphore(self.limits.workers)
        try:
            yield
        finally:
            self._end_pool(wait=True)

    def _answered(self, answer: Callable[[Request], Any], *, is_open: bool = False) -> Callable[..., Any]:
        """Return an endpoint that checks host and token, counts the request and formats errors."""

        async def endpoint(request: Request) -> Response:
            start_s = time.monotonic()
            try:
                self._check_host(request)
                if not is_open:
                    self._check_token(request)
                response: Response = await answer(request)
            except Refused as error:
                response = JSONResponse({"error": error.problem}, error.status, error.headers)
            self.metrics.observe(request.url.path, response.status_code, time.monotonic() - start_s)
            response.headers.update(HEADERS)
            return response

        return endpoint

    def _check_host(self, request: Request) -> None:
        """Refuse other host names without a token: a web page could use its own name for this address."""
        name = request.headers.get("host", "").lower()
        if self._token is None and name.rpartition(":")[0] not in LOOPBACK and name not in LOOPBACK:
            raise Refused(421, "this service answers to 127.0.0.1 and localhost only")

    def _check_token(self, request: Request) -> None:
        if self._token is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
            raise Refused(401, "a valid bearer token is required", {"WWW-Authenticate": "Bearer"})

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "version": __version__})

    async def _show_metrics(self, _: Request) -> Response:
        return PlainTextResponse(self.metrics.text(self._present))

    async def _describe(self, _: Request) -> Response:
        return JSONResponse(describe(needs_token=self._token is not None, limits=self.limits))

    async def _measure(self, request: Request) -> Response:
        options, full = read_options(request.query_params)
        if not request.headers.get("content-type", "").lower().startswith(_MEDIA_TYPES):
            raise Refused(415, "send the video as the body, with Content-Type video/mp4 or similar")
        if self._present >= self.limits.queue:
            raise Refused(503, "too many requests at once; try again later", {"Retry-After": "2"})
        self._present += 1
        try:
            with tempfile.TemporaryDirectory(prefix="phase-serve-", ignore_cleanup_errors=True) as folder:
                path = Path(folder) / "video"
                await self._receive(request, path)
                return await self._run(path, options, full)
        finally:
            self._present -= 1

    async def _receive(self, request: Request, path: Path) -> None:
        """Write the body to a file within the limits of size and time."""
        most = int(self.limits.mb * 1_000_000)
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise Refused(413, f"the video is larger than {self.limits.mb:g} MB", {"Connection": "close"})

        async def receive() -> int:
            size = 0
            with open(path, "wb") as file:
                async for block in request.stream():
                    size += len(block)
                    if size > most:
                        raise Refused(413, f"the video is larger than {self.limits.mb:g} MB")
                    file.write(block)
            return size

        try:
            size = await asyncio.wait_for(receive(), self.limits.seconds)
        except asyncio.TimeoutError:
            raise Refused(408, f"the video did not arrive within {self.limits.seconds:g} s") from None
        except ClientDisconnect:
            raise Refused(400, "the connection ended before the video") from None
        if not size:
            raise Refused(400, "the body is empty; send the video as the body")
        self.metrics.uploaded_bytes += size

    async def _run(self, path: Path, options: MeasureOptions, full: bool) -> Response:
        assert self._free is not None
        async with self._free:
            outcome = await self._outcome(
                Job("upload", (str(path), "upload", options, full, self.limits.seconds))
            )
        error = outcome.error
        if isinstance(error, TimeLimit):
            raise Refused(504, str(error))
        if isinstance(error, InputError):
            raise Refused(422, str(error))
        if error is not None:
            log.error("%s\n%s", error, getattr(error, "details", ""))
            raise Refused(500, "internal error; the log of the service has the details")
        found = outcome.result["document"]
        self.metrics.readings["yes" if outcome.result["reading"] else "no"] += 1
        self.metrics.video_seconds += found["duration_s"]
        return JSONResponse(found)

    async def _outcome(self, job: Job) -> Outcome:
        """Run a job in a worker process; a process that dies or does not end is replaced."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.limits.workers, context, initialize_worker)
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, attempt, measure_file, job)
            return await asyncio.wait_for(future, self.limits.seconds + _GRACE_S)
        except asyncio.TimeoutError:
            self._end_pool()
            return Outcome(job, error=TimeLimit(self.limits.seconds))
        except BrokenProcessPool:
            self._end_pool()
            return Outcome(job, error=PhaseError("a worker process died"))

    def _end_pool(self, *, wait: bool = False) -> None:
        if self._pool is not None:
            for process in list((getattr(self._pool, "_processes", None) or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=wait, cancel_futures=True)
            self._pool = None


async def _refuse_address(_: Request, error: HTTPException) -> Response:
    """Answer an unknown address or method, with the headers of every other answer."""
    return JSONResponse({"error": error.detail}, error.status_code, {**HEADERS, **(error.headers or {})})


def read_options(query: Mapping[str, str]) -> tuple[MeasureOptions, bool]:
    """Return the options of a request from its query; wrong names and values are refused."""
    known = {"model", "window", "step", "ungated", "full"}
    if unknown := sorted(set(query) - known):
        raise Refused(400, f"unknown parameter {unknown[0]!r}; accepted: {', '.join(sorted(known))}")
    names = {name: query[name] for name in ("window", "step") if name in query}
    try:
        numbers = {f"{name}_s": float(text) for name, text in names.items()}
    except ValueError:
        raise Refused(400, "window and step are numbers of seconds") from None
    flags = {name: query.get(name, "false") for name in ("ungated", "full")}
    if any(value not in ("true", "false") for value in flags.values()):
        raise Refused(400, "ungated and full are true or false")
    model = {"method": query["model"]} if "model" in query else {}
    if model and query["model"] not in choices():  # paths are not accepted from outside
        raise Refused(400, f"unknown model; accepted: {', '.join(choices())}")
    options = MeasureOptions(**model, **numbers, gated=flags["ungated"] == "false")  # type: ignore[arg-type]
    try:
        options.config()
    except UsageError as error:
        raise Refused(400, str(error)) from None
    if options.gated and options.window_s < (least_s := load(options.method).limits.min_seconds):
        raise Refused(400, f"window: at least {least_s:g} seconds; shorter windows with ungated=true")
    return options, flags["full"] == "true"
