"""Every command line in the documentation, and in the help itself, is one that `phase` understands."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from phase_rppg import registry
from phase_rppg.cli import build, run

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = ("", "bash", "sh", "shell", "console")
_BLOCK_LINE = re.compile(r"^(?: {4})?(?:\$ )?(phase (?!-rppg).*)$", re.MULTILINE)
_INLINE = re.compile(r"`(phase [a-z-]+[^`]*)`")


@functools.cache
def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(build())
    return dict(group.commands)


def command_lines(text: str) -> tuple[list[str], list[str]]:
    """(lines of shell blocks, fenced or indented; code within a sentence) that begin with `phase`."""
    fenced = [body for language, body in _FENCED.findall(text) if language in _SHELL]
    prose = _FENCED.sub("", text)
    indented = [line for line in prose.splitlines() if line.startswith("    ")]
    return _BLOCK_LINE.findall("\n".join([*fenced, *indented])), _INLINE.findall(prose)


def options_of(name: str) -> set[str]:
    return {word for each in commands()[name].params for word in (*each.opts, *each.secondary_opts)} | {
        "--help"
    }


def check_names(line: str) -> tuple[str, list[str]]:
    """The command and its words; unknown names fail."""
    words = shlex.split(line, comments=True)
    ends = [i for i, word in enumerate(words) if word in (">", "|", "&&", "&")]
    program, name, *words = words[: ends[0]] if ends else words
    assert program == "phase"
    assert name in commands(), f"{line}: there is no command {name!r}"
    for word in words:
        if re.match(r"--?[a-zA-Z]", word):
            option = word.partition("=")[0]
            assert option in options_of(name), f"{line}: `phase {name}` has no option {option}"
    return name, words


WHOLE = [(page.name, line) for page in PAGES for line in command_lines(page.read_text(encoding="utf-8"))[0]]
SPOKEN = [(page.name, line) for page in PAGES for line in command_lines(page.read_text(encoding="utf-8"))[1]]
HELP = [
    (name, line)
    for name in registry.names("cli")
    for line in re.findall(r"`(phase [^`]+)`", registry.load("cli", name).command.__doc__ or "")
]


def test_the_documentation_shows_commands() -> None:
    assert len(WHOLE) > 20
    assert {name for name, _ in HELP} == set(registry.names("cli"))  # every command shows an example


@pytest.mark.parametrize(("page", "line"), [*WHOLE, *HELP])
def test_a_whole_line_can_be_parsed(page: str, line: str) -> None:
    name, words = check_names(line)
    commands()[name].make_context(name, words)


@pytest.mark.parametrize(("page", "line"), SPOKEN)
def test_a_spoken_command_has_known_names(page: str, line: str) -> None:
    check_names(line)


@pytest.mark.parametrize("line", ["phase mesure face.mp4", "phase measure face.mp4 --plott a.png"])
def test_a_typing_error_would_be_found(line: str) -> None:
    with pytest.raises(AssertionError, match=r"there is no command|no option"):
        check_names(line)


def test_blocks_are_read_as_a_person_reads_them() -> None:
    text = "Use `phase live`:\n\n    $ phase demo  # try\n\n```python\nphase = 1\n```\n"
    text += "```bash\nphase models\n```\n"
    assert command_lines(text) == (["phase models", "phase demo  # try"], ["phase live"])


@pytest.mark.parametrize("name", registry.names("cli"))
def test_help_is_complete(name: str) -> None:
    """Every option says what it does, in a sentence; no two options of a command share a name."""
    seen: list[str] = []
    for each in commands()[name].params:
        assert getattr(each, "help", None), f"phase {name}: {each.name} has no help"
        assert each.help.rstrip().endswith((".", "]", ")")), f"phase {name}: {each.name}: {each.help!r}"
        seen += each.opts
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("name", registry.names("cli"))
def test_a_wrong_option_is_answered_in_one_line(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--no-such-option"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(rf"error: .*--no-such-option.* \(see phase {name} --help\)\n", err)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mesure"], "'measure'"),
        (["--nonsense"], "--nonsense"),
        (["train"], "RECIPE"),
        (["measure", "--window"], "--window"),
        (["measure", "x.mp4", "--window", "ten"], "--window"),
        (["demo", "--bpm", "500"], "--bpm"),
    ],
)
def test_other_wrong_lines_too(words: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert said in err
    assert err.count("\n") == 1
    assert err.endswith("--help)\n")


def test_the_bare_command_shows_its_help(capfd: pytest.CaptureFixture[str]) -> None:
    run([])
    said = "".join(capfd.readouterr())
    assert "Usage" in said
    assert "error" not in said
