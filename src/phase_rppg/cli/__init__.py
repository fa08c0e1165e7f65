"""The command `phase`: one file per command, found by listing this folder.

A command file says NAME = "…" and defines `command`, a typer function whose docstring is its help. Heavy
imports live inside the function. Errors of our tree become one line on stderr and an exit code:
0 reading, 3 no reading, 2 usage, 4 bad input, 1 our bug, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from .. import registry
from ..errors import InternalError, PhaseError

NO_READING = 3
_INTERRUPTED = 130
_DEBUG_HINT = "(set PHASE_DEBUG=1 for the traceback)"
# ClickException, wherever this typer keeps it (newer ones carry their own click).
_COMMAND_LINE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def build() -> typer.Typer:
    """The typer application with every command of this folder."""
    app = typer.Typer(
        name="phase",
        help="A heart rate from a face video, or an honest 'no reading'. Not a medical device.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for name in registry.names("cli"):
        app.command(name)(registry.load("cli", name).command)
    return app


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = build()(list(argv), standalone_mode=False, prog_name="phase")
        if (
            code == _INTERRUPTED
        ):  # newer typers end an interrupted command with a code, older ones by an error
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return int(stop.exit_code)
    except _COMMAND_LINE_ERROR as error:
        message: str = error.format_message()  # type: ignore[attr-defined]
        if message:  # there is none when `phase` alone has shown its help
            _say(f"error: {message[0].lower()}{message[1:].rstrip('.')} (see {_named(argv)} --help)")
        return int(error.exit_code)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        return _INTERRUPTED
    except InternalError as error:
        if os.environ.get("PHASE_DEBUG"):
            raise
        _say(f"{error} {_DEBUG_HINT}")
        return error.exit_code
    except PhaseError as error:
        _say(f"error: {error}")
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if _holds_interrupt(error):
            _say("interrupted")
            return _INTERRUPTED
        if os.environ.get("PHASE_DEBUG"):
            raise
        _say(f"internal error: {type(error).__name__}: {error} {_DEBUG_HINT}")
        return 1


def _holds_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl+C is behind an error: within the import of a compiled module it becomes an ImportError."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _named(argv: Sequence[str]) -> str:
    """The command that was called, as far as there is one of that name."""
    return f"phase {argv[0]}" if argv and argv[0] in registry.names("cli") else "phase"


def _say(line: str) -> None:
    print(" ".join(line.split()), file=sys.stderr)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"phase-rppg {__version__}")
        raise typer.Exit()


def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and stop.", is_eager=True, callback=_print_version
    ),
) -> None:
    del version
