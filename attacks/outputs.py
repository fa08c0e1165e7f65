"""Attacks by file names on what the command line prints and writes. Each returns why it failed."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .parsers import Succeeded

FORMULAS = ("=cmd|' -C calc'!A1", "+1+1", "@SUM(1)", "-2+3", "\t=1+1", "\r=1+1")
MARKUP = ("<img src=x onerror=alert(1)>", "<svg onload=alert(1)>", "'\"><script>alert(1)<%2fscript>")
CONTROLS = (b"\x1b]0;owned\x07", b"\x1b[2J", b"\xc2\x9b31m", b"a\r\nerror: b", "\u202egpj".encode(), b"\xff")


def _measure(folder: Path, names: list[bytes], *options: str) -> bytes:
    """Measure files that are no videos, with relative names, and return all printed bytes."""
    for name in names:
        (folder / os.fsdecode(name)).write_text("no video")
    words = [b"measure", *map(os.fsencode, options), b"--", *names]
    paths = [path for path in (os.environ.get("PYTHONPATH", "").split(os.pathsep)) if path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in paths)}
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"phase_rppg", *words],
        capture_output=True, check=False, cwd=folder, env=environment, timeout=100,
    )  # fmt: skip
    if done.returncode != 4 or b"Traceback" in done.stderr:
        raise Succeeded(f"exit code {done.returncode}: {done.stderr[-200:]!r}")
    return done.stdout + done.stderr


def html_injection(folder: Path) -> str:
    """Names with tags in an HTML report."""
    _measure(folder, [f"{name}.mp4".encode() for name in MARKUP], "--report", "r.html")
    page = (folder / "r.html").read_text(encoding="utf-8")
    tags = {tag.lower() for tag in re.findall(r"<\s*([a-zA-Z]+)", page)}
    if tags & {"img", "script", "svg"} or "onerror=alert(1)>" in page:
        raise Succeeded("a name became a tag")
    if 'http-equiv="Content-Security-Policy"' not in page.partition("<body")[0]:
        raise Succeeded("the page has no content security policy")
    return "names are escaped, and the page has a content security policy"


def csv_injection(folder: Path) -> str:
    """Names that a spreadsheet reads as formulas."""
    _measure(folder, [f"{name}.mp4".encode() for name in FORMULAS], "-o", "out")
    with open(folder / "out" / "summary.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if len(rows) != len(FORMULAS) + 1:
        raise Succeeded(f"{len(FORMULAS)} files gave {len(rows) - 1} rows")
    for cell in (cell for row in rows for cell in row):
        if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
            raise Succeeded(f"a cell begins with {cell[0]!r}")
    return "cells that look like formulas begin with an apostrophe"


def terminal_injection(folder: Path) -> str:
    """Names with commands for the terminal, a forged line, a reversed text and a byte that is not UTF-8."""
    names = [name + b".mp4" for name in CONTROLS]
    printed = [_measure(folder, names), _measure(folder, names, "--json"), _measure(folder, names[:1])]
    for data in printed:
        text = data.decode("utf-8")
        if any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e" for c in text):
            raise Succeeded("a control character was printed")
        if "\nerror: b" in text:
            raise Succeeded("a name forged a line")
    return "control characters are shown as escapes"


ATTACKS: dict[str, Callable[[Path], str]] = {
    attack.__name__: attack for attack in (html_injection, csv_injection, terminal_injection)
}
