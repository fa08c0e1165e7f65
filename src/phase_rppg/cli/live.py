"""`phase live`: the pulse in a browser."""

from __future__ import annotations

from pathlib import Path

import typer

NAME = "live"


def command(
    port: int = typer.Option(
        None, "--port", min=0, max=65535, help="Port of the page; 0 takes any free one.", show_default="8420"
    ),
    open_browser: bool = typer.Option(
        True, "--open/--no-open", help="Open the page in the default browser.", show_default=False
    ),
    export_to: Path = typer.Option(
        None, "--export", metavar="DIR", help="Write the page to DIR for any static web host, and stop."
    ),
) -> None:
    """Show your pulse in the browser, from the camera or a video file.

    The network runs inside the page: no picture leaves this computer, and nothing is stored.

    Example: `phase live`, then press *Start camera*; Ctrl+C ends it.
    """
    from rich.console import Console

    from ..errors import UsageError
    from ..web import PageServer, catalogue, export

    console = Console(highlight=False)
    if export_to is not None:
        count = export(export_to)
        console.print(f"{count} files in {export_to}; a camera needs https (or localhost) at its host")
        return
    assets = catalogue()
    try:
        server = PageServer(assets) if port is None else PageServer(assets, port)
    except UsageError:
        if port is not None:
            raise
        server = PageServer(assets, 0)  # the usual port is taken, perhaps by another `phase live`
    with server:
        console.print(f"phase live: [bold]{server.url}[/bold]  (Ctrl+C ends it)")
        if open_browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("stopped")
