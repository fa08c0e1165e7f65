"""`phase docs`: open the documentation."""

from __future__ import annotations

from pathlib import Path

import typer

NAME = "docs"
PANEL = "Tools"
_PACKAGE = Path(__file__).resolve().parent.parent
_CHECKOUT = _PACKAGE.parent.parent


def command(
    only_path: bool = typer.Option(False, "--path", help="Print the place of the site; open no browser."),
) -> None:
    """Open the documentation site of this checkout in a browser, or say where the documentation is.

    The site is built by `scripts/docs`. A wheel does not contain it, because its pictures are larger than the
    package: the pages are in the folder docs of the source distribution.

    Example: `phase docs`
    """
    import webbrowser

    from ..errors import InputError

    page = _CHECKOUT / "site" / "index.html"
    if not page.is_file():
        raise InputError(_hint(_CHECKOUT))
    typer.echo(str(page))
    if not only_path:
        webbrowser.open(page.as_uri())


def _hint(checkout: Path) -> str:
    """Return in one line where the documentation is, and how to build it, if there is no built site."""
    from .. import __version__

    if (checkout / "mkdocs.yml").is_file():
        build = 'pip install -e ".[docs]", then scripts/docs'
        return f"the site is not built; build it ({build}), or read the pages in docs/"
    source = f"pip download --no-deps --no-binary phase-rppg phase-rppg=={__version__}"
    return f"the pages are in docs/ of the source distribution ({source}); scripts/docs builds the site there"
