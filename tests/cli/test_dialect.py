"""One concept has one option name and one type in every command."""

from __future__ import annotations

import functools
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

from phase_rppg import registry
from phase_rppg.cli import PANELS, build, options, run

COMMANDS = registry.names("cli")
# The long name of each shared option, its short name and its type. A list means that it may be repeated.
SHARED: dict[str, tuple[str | None, type]] = {
    "--model": ("-m", str),
    "--workers": (None, int),
    "--engine": (None, str),
    "--address": (None, str),
    "--port": (None, int),
    "--seed": (None, int),
    "--out": ("-o", Path),
    "--json": (None, bool),
    "--quiet": ("-q", bool),
    "--force": (None, bool),
    "--list": (None, bool),
    "--plot": (None, Path),
    "--csv": (None, Path),
    "--fps": (None, float),
    "--window": (None, float),
    "--step": (None, float),
    "--seconds": (None, float),
    "--n": (None, int),
    "--bpm": (None, float),
    "--size": (None, int),
    "--world": ("-w", str),
    "--face": (None, str),
    "--cache": (None, Path),
    "--ungated": (None, bool),
    "--resume": (None, bool),
    "--set": (None, str),
    "--allow-outside": (None, bool),
    "--device": (None, str),
    "--precision": (None, str),
    "--channels-last": (None, bool),
    "--compile": (None, bool),
    "--training": (None, str),
    "--target": (None, str),
    "--convention": (None, str),
}
# Other names of the same concepts.
FOREIGN = {
    "--method", "--methods", "--models", "--weights", "--checkpoint",
    "--jobs", "-j", "--processes", "--threads", "--seeds", "--output", "--keep", "--save", "--dest",
    "--overwrite", "--silent", "--format", "--dataset", "-d", "--root", "--figure", "--picture",
}  # fmt: skip


@functools.cache
def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(build())
    return dict(group.commands)


def hints(name: str) -> dict[str, Any]:
    """The annotated type of each parameter of a command; lists and optional types give their item."""

    def item(hint: Any) -> Any:
        inner = [each for each in get_args(hint) if each is not type(None)]
        return item(inner[0]) if inner else hint

    found = get_type_hints(registry.load("cli", name).command)
    return {key: item(hint) for key, hint in found.items() if key != "return"}


def option_names() -> list[tuple[str, Any]]:
    return [(name, each) for name in COMMANDS for each in commands()[name].params if is_option(each)]


def is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


@pytest.mark.parametrize("name", COMMANDS)
def test_shared_options_have_one_name_and_one_type(name: str) -> None:
    for each in filter(is_option, commands()[name].params):
        assert not FOREIGN & set(each.opts), f"phase {name} {each.opts}"
        for long, (short, kind) in SHARED.items():
            if long in each.opts:
                assert each.opts == ([long, short] if short else [long]), f"phase {name} {each.opts}"
                assert hints(name)[each.name] is kind, f"phase {name} {long}"
            else:
                assert short is None or short not in each.opts, f"phase {name}: {short} is {long}"


def test_options_of_several_commands_are_in_the_table() -> None:
    """A name that two commands use is a concept, so that its type is checked."""
    seen: dict[str, set[str]] = {}
    for name, each in option_names():
        for option in each.opts:
            seen.setdefault(option, set()).add(name)
    shorts = {short for short, _ in SHARED.values()}
    assert {option for option, names in seen.items() if len(names) > 1} - set(SHARED) - shorts == set()
    assert set(SHARED) - set(seen) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_workers_may_be_zero_and_not_negative(name: str) -> None:
    for each in commands()[name].params:
        if "--workers" in each.opts:
            assert each.min == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_data_set_stands_before_its_folder(name: str) -> None:
    arguments = [each.metavar for each in commands()[name].params if not is_option(each)]
    if "DATASET" in arguments or "ROOT" in arguments:
        assert arguments == ["DATASET", "ROOT"]


WITH_PROGRESS = {
    "measure", "demo", "explain", "audit", "calibrate", "evaluate", "prepare", "reproduce", "synth", "train",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(WITH_PROGRESS))
def test_commands_that_take_long_can_be_quiet(name: str) -> None:
    assert "--quiet" in {option for each in commands()[name].params for option in each.opts}


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_h_is_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [name] if name else []
    assert run([*words, "--help"]) == 0
    long = capsys.readouterr().out
    assert run([*words, "-h"]) == 0
    assert capsys.readouterr().out == long
    assert "Usage" in long


def test_every_command_of_the_package_has_a_panel(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert registry.load("cli", name).PANEL in PANELS, name
    assert run(["--help"]) == 0
    titles = re.findall(r"─ ([A-Z][a-z]+) ─", capsys.readouterr().out)
    assert titles == ["Options", *PANELS]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    """tests/cli/test_command_lines.py parses the examples."""
    text = inspect.getdoc(registry.load("cli", name).command) or ""
    assert re.search(rf"^Example: `phase {name}\b", text, re.MULTILINE)


# Completion ------------------------------------------------------------------------------------------------


def completed(words: str, tmp_path: Path) -> list[str]:
    """The proposals of bash completion for a command line."""
    script = "from phase_rppg.cli import main; main()"
    line = f"phase {words}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**_environment(), "_PHASE_COMPLETE": "complete_bash", "COMP_WORDS": line,
             "COMP_CWORD": str(len(line.split(" ")) - 1)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


def _environment() -> dict[str, str]:
    import os

    return {key: value for key, value in os.environ.items() if key != registry.PLUGIN_VARIABLE}


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        ("mea", {"measure"}),
        ("measure face.mp4 --mod", {"--model"}),
        ("measure face.mp4 --model p", {"phasenet-stream", "pos", "pbv", "pca"}),
        ("evaluate p", {"pure"}),
        ("prepare ubfc", {"ubfc_phys", "ubfc_rppg"}),
        ("synth --world stu", {"studio"}),
        ("synth --as p", {"pure"}),
        ("train sm", {"smoke"}),
        ("reproduce table", {"table1", "table2", "table3", "table4", "table5"}),
    ],
)
def test_names_are_completed(words: str, proposed: set[str], tmp_path: Path) -> None:
    assert set(completed(words, tmp_path)) == proposed


def test_files_are_completed_where_no_name_matches(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    complete = options.completion(lambda: ["pos"], files=True)
    assert complete("p") == ["pos"]
    assert complete(f"{tmp_path}/r") == [str(tmp_path / "run.json")]
    assert options.completion(lambda: ["pos"])(f"{tmp_path}/r") == []


def test_completion_can_be_installed(tmp_path: Path) -> None:
    """The shell is the parent process of the program."""
    shell = f"{shlex.quote(sys.executable)} -m phase_rppg --show-completion; exit $?"
    done = subprocess.run(
        ["bash", "-c", shell], env=_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "_PHASE_COMPLETE=complete_bash" in done.stdout
    home = {**_environment(), "HOME": str(tmp_path)}
    shell = shell.replace("--show", "--install")
    done = subprocess.run(["bash", "-c", shell], env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("phase.sh"))


# Files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_suffix_selects_the_format_of_a_figure(suffix: str, tmp_path: Path) -> None:
    figure = tmp_path / f"figure{suffix}"
    assert run(["physics", "--plot", str(figure)]) == 0
    begin = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert figure.read_bytes().startswith(begin)


@pytest.mark.parametrize(
    "words",
    [
        "physics --plot x.docx", "demo --plot x.jpeg", "demo --out x.png", "explain face.mp4 --out x.gif",
        "explain --kernel --out x.mp4", "synth --contact-sheet x.jpg", "audit pure . --out x.pdf",
        "import-weights x.pth --out x.onnx", "export x.safetensors --out x.json",
        "measure face.mp4 --plot x.bmp",
    ],
)  # fmt: skip
def test_an_unknown_suffix_is_wrong_usage(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "face.mp4").touch()
    assert run(words.split()) == 2
    error = capsys.readouterr().err
    assert "a name ending in ." in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "physics --plot there.png", "demo --out there.mp4", "demo --plot there.png",
        "explain face.mp4 --out there.png", "explain --kernel --out there.png",
        "synth --contact-sheet there.png", "audit pure . --out there.html",
        "import-weights x.pth --out there.safetensors", "export x.safetensors --out there.onnx",
        "calibrate --model pos --out .",
    ],
)  # fmt: skip
def test_an_existing_file_needs_force(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = [
        "there.png",
        "there.mp4",
        "there.html",
        "there.safetensors",
        "there.onnx",
        "pos.json",
        "face.mp4",
    ]
    for name in names:
        (tmp_path / name).write_text("mine")
    assert run(words.split()) == 4
    assert "exists; overwrite it with --force" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(names, "mine")


def test_force_replaces_a_figure(tmp_path: Path) -> None:
    figure = tmp_path / "there.png"
    figure.write_text("mine")
    assert run(["physics", "--plot", str(figure), "--force"]) == 0
    assert figure.read_bytes().startswith(b"\x89PNG")
