"""`phase live`: measure the pulse in a web browser."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .terminal import escaped, open_console

if TYPE_CHECKING:
    from rich.console import Console

    from ..web import Asset, PageServer

NAME = "live"
PANEL = "Live"


def command(
    port: int = typer.Option(
        None,
        "--port",
        min=0,
        max=65535,
        help="Port of the local server; 0 selects a free port.",
        show_default="8420",
    ),
    open_browser: bool = typer.Option(
        True, "--open/--no-open", help="Open the page in the default browser.", show_default=False
    ),
    export_to: Path = typer.Option(
        None, "--export", metavar="DIR", help="Write the page to DIR for a static web host and exit."
    ),
    lan: bool = typer.Option(
        False,
        "--lan",
        help="Also let other devices of the local network open the page, with https and a token.",
    ),
) -> None:
    """Measure the pulse in the browser, from a camera or a video file.

    The network runs in the page. No image leaves the device that opens it, and the server stores nothing.

    Example: `phase live`, then press *Start camera*. Stop the server with Ctrl+C.
    """
    from ..web import build_if_missing, catalogue, export

    console = open_console()
    build_if_missing()
    if export_to is not None:
        count = export(export_to)
        console.print(
            f"{count} files in {escaped(export_to)}; browsers allow a camera on https and localhost only"
        )
        return
    assets = catalogue()
    with _open_server(assets, port, lan) as server:
        if server.lan is None:
            console.print(f"phase live: [bold]{server.url}[/bold]  (stop with Ctrl+C)")
        else:
            _explain_lan(console, server.url, server.lan.fingerprint)
        if open_browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("stopped")


def _open_server(assets: Mapping[str, Asset], port: int | None, lan: bool) -> PageServer:
    """Open the server on the wanted port; without a wish on the default port or a free one."""
    from ..errors import UsageError
    from ..web import PageServer, open_lan

    access = open_lan() if lan else None
    if port is not None:
        return PageServer(assets, port, lan=access)
    try:
        return PageServer(assets, lan=access)
    except UsageError:
        return PageServer(
            assets, 0, lan=access
        )  # the default port is in use, perhaps by another `phase live`


def _explain_lan(console: Console, url: str, fingerprint: str) -> None:
    from ..web import qr_code

    console.print(
        "WARNING: every device of this network that has the link can open the page. Use it in a network\n"
        "that you trust. The certificate is made for this run, so the browser warns about it once: compare\n"
        f"its SHA-256 fingerprint before you go on:\n  {fingerprint}"
    )
    console.print(f"phase live: [bold]{url}[/bold]  (stop with Ctrl+C)")
    code = qr_code(url)
    if code is None:
        console.print('For a QR code of the link: pip install "phase-rppg[lan]"', markup=False)
    else:
        console.print(code, markup=False)
