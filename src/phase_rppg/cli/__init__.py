"""The command-line program `phase`: each file of this package defines one command.

A command file defines `NAME`, optionally `PANEL`, and `command`, a typer function whose docstring is the help
text. Heavy imports are inside the function. Options that several commands share are in `options.py`.
Errors from `phase_rppg.errors` are printed as one line on stderr.

Exit codes: 0 success, 1 internal error, 2 wrong usage, 3 no reading, 4 bad input, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import ModuleType

import typer

from .. import registry
from ..errors import InternalError, MissingPackageError, OutputError, PhaseError, caused_by_interrupt
from ..text import printable

NO_READING = 3
PANELS = ("Measure", "Live", "Research", "Tools")  # of the help, in this order
OTHER_PANEL = "Plug-ins"  # commands without a panel
_INTERRUPTED = 130
_PATIENCE_S = 1.0  # a command ends this fast after Ctrl-C, or a second Ctrl-C ends it
_DEBUG_HINT = "(set PHASE_DEBUG=1 for the traceback)"
# The class ClickException. Some versions of typer bundle click, so it has no fixed import path.
_COMMAND_LINE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def build(argv: Sequence[str] = ()) -> typer.Typer:
    """Return the typer application with every registered command, or the one that begins `argv`.

    To list all commands, for the help or a misspelt name, their modules are imported.
    """
    app = typer.Typer(
        name="phase",
        help="Measure the heart rate in face videos, or report 'no reading'. Not a medical device.",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for panel, name, module in sorted(_commands(argv[:1]), key=lambda each: (_panel_order(each[0]), each[1])):
        app.command(name, rich_help_panel=panel)(module.command)
    return app


def _commands(wanted: Sequence[str]) -> Iterator[tuple[str, str, ModuleType]]:
    """Yield the panel, the name and the module of the wanted command; of all if it is not registered."""
    known = registry.names("cli")
    for name in [name for name in known if name in wanted] or known:
        module = registry.load("cli", name)
        yield getattr(module, "PANEL", OTHER_PANEL), name, module


def _panel_order(panel: str) -> int:
    return PANELS.index(panel) if panel in PANELS else len(PANELS)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 shows escapes
    _handle_interrupts()
    try:
        code = run(sys.argv[1:] if argv is None else argv)
        _ignore_interrupts()
    except KeyboardInterrupt:  # it arrived after the command had ended
        code = _INTERRUPTED
    sys.exit(code)


def _handle_interrupts() -> None:
    """Raise KeyboardInterrupt at the first Ctrl-C only, so that a second one does not break the cleanup.

    Ctrl-C more than `_PATIENCE_S` after the first ends the process at once, with the same exit code.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # for example ignored by `nohup`
    first_s: list[float] = []

    def interrupt(number: int, frame: object) -> None:
        del number, frame
        if not first_s:
            first_s.append(time.monotonic())
            raise KeyboardInterrupt
        if time.monotonic() - first_s[0] > _PATIENCE_S:
            os._exit(_INTERRUPTED)

    signal.signal(signal.SIGINT, interrupt)


def _ignore_interrupts() -> None:
    """Ignore Ctrl-C while the interpreter ends: it would print a traceback and change nothing."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    code = _run(argv)
    try:
        sys.stdout.flush()  # not left to the end of the interpreter, which would not report a full disk
    except BrokenPipeError:
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        _print_error(f"error: {OutputError('the output', error.strerror or str(error))}")
        return OutputError.exit_code
    return code


def _run(argv: Sequence[str]) -> int:
    try:
        code = build(argv)(list(argv), standalone_mode=False, prog_name="phase")
        # Newer versions of typer return this code for an interrupted command; older ones raise an error.
        if code == _INTERRUPTED:
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return int(stop.exit_code)
    except _COMMAND_LINE_ERROR as error:
        message: str = error.format_message()  # type: ignore[attr-defined]
        if message:  # empty after `phase` without arguments, which prints the help
            _print_error(
                f"error: {message[0].lower()}{message[1:].rstrip('.')} (see {_command_name(argv)} --help)"
            )
        return int(error.exit_code)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        _print_error("interrupted")
        return _INTERRUPTED
    except InternalError as error:
        if os.environ.get("PHASE_DEBUG"):
            raise
        _print_error(f"{error} {_DEBUG_HINT}")
        return error.exit_code
    except PhaseError as error:
        _print_error(f"error: {error}")
        return error.exit_code
    except BrokenPipeError:
        _discard_stdout()
        return 0
    except Exception as error:
        unwritten = OutputError.from_os_error(error) if isinstance(error, OSError) else None
        if unwritten is not None:
            _discard_stdout()
            _print_error(f"error: {unwritten}")
            return unwritten.exit_code
        missing = MissingPackageError.from_import(error) if isinstance(error, ModuleNotFoundError) else None
        if missing is not None:
            _print_error(f"error: {missing}")
            return missing.exit_code
        if caused_by_interrupt(error):
            _print_error("interrupted")
            return _INTERRUPTED
        if os.environ.get("PHASE_DEBUG"):
            raise
        _print_error(f"internal error: {type(error).__name__}: {error} {_DEBUG_HINT}")
        return 1


def _discard_stdout() -> None:
    """Send what is still in the buffer of stdout to the null device: it cannot be written."""
    with contextlib.suppress(OSError, ValueError):  # a replaced stdout has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command_name(argv: Sequence[str]) -> str:
    """Return the name of the command in a command line, or `phase` when it names none."""
    return f"phase {argv[0]}" if argv and argv[0] in registry.names("cli") else "phase"


def _print_error(text: str) -> None:
    """Print a text as one line on stderr, with control characters escaped."""
    with contextlib.suppress(OSError):  # stderr may be on the same full disk
        print(printable(" ".join(text.split())), file=sys.stderr)


def _print_version(requested: bool) -> None:
    if requested:
        from .. import __version__

        typer.echo(f"phase-rppg {__version__}")
        raise typer.Exit()


def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
    ),
    limit: list[str] = typer.Option(
        [],
        "--max",
        metavar="LIMIT=VALUE",
        help="Raise a limit for input files, e.g. label_mb=500; may be repeated. See docs/limits.md.",
    ),
) -> None:
    from ..limits import raise_limits

    del version
    raise_limits(limit)
