"""`phase serve`: measure videos that programs send over HTTP."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from . import options
from .terminal import open_console

NAME = "serve"
PANEL = "Live"
TOKEN_VARIABLE = "PHASE_SERVE_TOKEN"
_MIN_TOKEN = 16  # characters


def command(
    host: str = typer.Option(
        "127.0.0.1", "--host", help="Address to listen on; another than the loopback address needs a token."
    ),
    port: int = typer.Option(8421, "--port", min=1, max=65535, help="Port of the service."),
    token_file: Path = typer.Option(
        None, "--token-file", metavar="FILE", help=f"File with the token; or set {TOKEN_VARIABLE}."
    ),
    workers: int = options.workers(
        None, work="is refused: videos are not measured", show_default="one per core"
    ),
    max_mb: float = typer.Option(200.0, "--max-mb", min=0.1, help="Largest video in megabytes."),
    max_seconds: float = typer.Option(
        300.0, "--max-seconds", min=1.0, help="Longest upload, and longest measurement, in seconds."
    ),
    queue: int = typer.Option(
        None, "--queue", min=1, help="Requests at once; more are refused.", show_default="4 per worker"
    ),
) -> None:
    """Serve measurements over HTTP: POST a video to /v1/measure, get the JSON of `phase measure`.

    The service stores nothing. It also has /healthz, /metrics (Prometheus) and /openapi.json. Not a medical
    device.

    Example: `phase serve --port 8421`, then `curl --data-binary @face.mp4 -H "Content-Type: video/mp4"
    http://127.0.0.1:8421/v1/measure`
    """
    from ..errors import UsageError, require

    require("starlette", "uvicorn")
    import uvicorn

    from ..web.request_deadline import DeadlineProtocol
    from ..web.service import LOOPBACK, Service, ServiceLimits

    token = _token(token_file)
    if host not in LOOPBACK and token is None:
        raise UsageError(
            f"--host {host}: other machines could connect; set a token with {TOKEN_VARIABLE} or --token-file"
        )
    count = workers if workers is not None else os.cpu_count() or 1
    if count == 0:
        raise UsageError("--workers 0: a service needs worker processes; use 1 or more")
    limits = ServiceLimits(max_mb, max_seconds, count, queue if queue is not None else 4 * count)
    service = Service(limits, token)
    console = open_console()
    console.print(f"phase serve: http://{host}:{port}/v1/measure  (stop with Ctrl+C)", soft_wrap=True)
    try:
        uvicorn.run(
            service.app(), host=host, port=port, log_level="warning", access_log=False, server_header=False,
            limit_concurrency=8 * limits.queue + 16, timeout_keep_alive=15, http=DeadlineProtocol,
        )  # fmt: skip
    except KeyboardInterrupt:
        pass
    except SystemExit:
        raise UsageError(f"port {port} of {host} is not available; choose another with --port") from None
    console.print("stopped")


def _token(file: Path | None) -> str | None:
    """Return the token of the file or the environment; None if there is neither."""
    from ..errors import UsageError
    from ..fileio import read_text

    token = read_text(file, "toml_mb").strip() if file is not None else os.environ.get(TOKEN_VARIABLE)
    if token is None:
        return None
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"the token needs at least {_MIN_TOKEN} characters, ASCII without spaces")
    return token
