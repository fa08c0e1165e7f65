"""File names with control characters, markup or bytes that are not UTF-8 neither break nor forge output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from phase_rppg.cli import run
from phase_rppg.text import printable

pytestmark = pytest.mark.smoke
posix = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="needs file names of any bytes")
NAMES = [
    b"not-utf8-\xff\xe9.mp4", b"two\nlines.mp4", b"\x1b[31mred.mp4", b"\xc2\x9b31mc1.mp4", b"-dash.mp4",
    "bidi\u202egpj.mp4".encode(), b":x:[bold].mp4",
]  # fmt: skip
FORBIDDEN = ("\x1b", "\x9b", "\u202e")


@pytest.fixture
def folder(film: Callable[[str], Path], tmp_path: Path) -> Path:
    """A folder with one short film and one text file under each of the hostile names."""
    for name in NAMES:
        shutil.copy(film("short"), os.path.join(os.fsencode(tmp_path), name))
        shutil.copy(film("text"), os.path.join(os.fsencode(tmp_path), b"bad" + name))
    return tmp_path


@posix
def test_a_batch_shows_every_name_as_escapes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # the table does not break names
    assert run(["measure", str(folder), "--workers", "1", "--model", "pos"]) == 3
    out, err = capfd.readouterr()
    assert err == ""
    assert not any(character in out for character in FORBIDDEN)
    assert "❌" not in out
    flat = "".join(out.split())
    for name in NAMES:
        assert printable(os.fsdecode(name)) in flat
        assert printable(os.fsdecode(b"bad" + name)) in flat


@posix
def test_json_is_valid_utf8_and_has_one_document_per_file(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "phase_rppg",
        "measure",
        "--json",
        "--workers",
        "1",
        "--model",
        "pos",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 3, done.stderr
    documents = json.loads(done.stdout.decode("utf-8"))
    # JSON keeps every character that it can hold; only bytes that are not UTF-8 become escapes.
    names = {os.fsdecode(prefix + name) for prefix in (b"", b"bad") for name in NAMES}
    expected = {
        str(folder / name).encode("utf-8", "backslashreplace").replace(b"\\udc", b"\\x").decode()
        for name in names
    }
    assert {document["video"] for document in documents} == expected
    assert not any(character in done.stdout.decode() for character in FORBIDDEN)


@posix
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_an_error_shows_the_name_as_escapes_on_one_line(
    folder: Path, name: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    text = os.fsdecode(os.path.join(os.fsencode(folder), b"bad" + name))
    assert run(["measure", text]) == 4
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert printable(os.fsdecode(name)) in err
    assert not any(character in err for character in FORBIDDEN)


@posix
def test_a_single_result_shows_the_name_as_escapes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(folder / os.fsdecode(NAMES[0])), "--model", "pos"]) == 3
    assert r"not-utf8-\xff\xe9.mp4: no reading" in capfd.readouterr().out
    assert run(["measure", str(folder / ":x:[bold].mp4"), "--model", "pos"]) == 3
    assert ":x:[bold].mp4: no reading" in capfd.readouterr().out


def test_a_terminal_that_is_not_utf8_gets_escapes(film: Callable[[str], Path]) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "phase_rppg", "measure", str(film("short")), "--model", "pos"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (3, b"")
    assert rb"no reading" in done.stdout
