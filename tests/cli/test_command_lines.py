"""Every command line in the documentation and in the help texts is valid."""

from __future__ import annotations

import functools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from phase_rppg import registry
from phase_rppg.cli import build, choices, run

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")])

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = ("", "bash", "sh", "shell", "console")
_BLOCK_LINE = re.compile(r"^(?: {4})?(?:\$ )?(phase (?!-rppg).*)$", re.MULTILINE)
_INLINE = re.compile(r"`(phase [a-z-]+[^`]*)`")


@functools.cache
def program() -> Any:
    return typer.main.get_command(build())


def commands() -> dict[str, Any]:
    return dict(program().commands)


def command_lines(text: str) -> tuple[list[str], list[str]]:
    """Return the lines of shell blocks and the inline code that begin with `phase`."""
    fenced = [body for language, body in _FENCED.findall(text) if language in _SHELL]
    prose = _FENCED.sub("", text)
    indented = [line for line in prose.splitlines() if line.startswith("    ")]
    return _BLOCK_LINE.findall("\n".join([*fenced, *indented])), _INLINE.findall(prose)


def recipe_commands(text: str) -> list[str]:
    """Return the command lines in the comments of a recipe, in backticks or not."""
    comments = re.findall(r"#(.*)$", text, re.MULTILINE)
    quoted = [line for comment in comments for line in _INLINE.findall(comment)]
    bare = [re.search(r"(?<![\w`-])(phase [a-z-]+ .*)", re.sub(r"`[^`]*`", "", c)) for c in comments]
    return quoted + [match.group(1) for match in bare if match]


def options_of(command: Any) -> set[str]:
    found = {word for each in command.params for word in (*each.opts, *each.secondary_opts)}
    return found | {"-h", "--help"}


def check_names(line: str) -> tuple[str, list[str]]:
    """Return the command and its arguments; unknown names fail."""
    words = shlex.split(line, comments=True)
    ends = [i for i, word in enumerate(words) if word in (">", "|", "&&", "&")]
    words = words[: ends[0]] if ends else words
    while words[1:2] == ["--max"]:  # the option of the program, before the name of the command
        del words[1:3]
    first, name, *words = words
    assert first == "phase"
    if name.startswith("-"):
        assert name in options_of(program()), f"{line}: `phase` has no option {name}"
        return name, words
    assert name in commands(), f"{line}: there is no command {name!r}"
    for word in words:
        if re.match(r"--?[a-zA-Z]", word):
            option = word.partition("=")[0]
            assert option in options_of(commands()[name]), f"{line}: `phase {name}` has no option {option}"
    return name, words


LINES = [(page.name, line) for page in PAGES for line in command_lines(page.read_text(encoding="utf-8"))[0]]
INLINE = [(page.name, line) for page in PAGES for line in command_lines(page.read_text(encoding="utf-8"))[1]]
# The guide defines an example command, which tests/test_plugins.py runs.
EXAMPLE = re.search(
    r"```python cli/.*?^NAME = \"(\w+)\"",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)
INLINE = [(page, line) for page, line in INLINE if EXAMPLE is None or line.split()[1] != EXAMPLE.group(1)]
RECIPES = [
    (file.name, line)
    for file in sorted((ROOT / "src/phase_rppg/recipes").rglob("*.toml"))
    for line in recipe_commands(file.read_text(encoding="utf-8"))
]
HELP = [
    (name, line)
    for name in registry.names("cli")
    for line in re.findall(r"`(phase [^`]+)`", registry.load("cli", name).command.__doc__ or "")
]


def test_the_documentation_shows_commands() -> None:
    assert len(LINES) > 20
    assert {name for name, _ in HELP} == set(registry.names("cli"))  # every command shows an example


@pytest.mark.parametrize(("page", "line"), [*LINES, *HELP, *RECIPES])
def test_command_lines_can_be_parsed(page: str, line: str) -> None:
    name, words = check_names(line)
    commands()[name].make_context(name, words)


@pytest.mark.parametrize(("page", "line"), INLINE)
def test_inline_commands_use_known_names(page: str, line: str) -> None:
    check_names(line)


@pytest.mark.parametrize(
    "line", ["phase mesure face.mp4", "phase measure face.mp4 --plott a.png", "phase --nonsense"]
)
def test_unknown_names_fail(line: str) -> None:
    with pytest.raises(AssertionError, match=r"there is no command|no option"):
        check_names(line)


def test_commands_in_the_comments_of_recipes_are_found() -> None:
    assert ("stream.toml", "phase train stream") in RECIPES
    assert any(page == "paper.toml" and line.startswith("phase prepare") for page, line in RECIPES)
    text = "# first: phase prepare pure ROOT\nx = 1  # then `phase train paper` again\n"
    assert recipe_commands(text) == ["phase train paper", "phase prepare pure ROOT"]


def test_code_blocks_and_inline_code_are_found() -> None:
    text = "Use `phase live`:\n\n    $ phase demo  # try\n\n```python\nphase = 1\n```\n"
    text += "```bash\nphase models\n```\n"
    assert command_lines(text) == (["phase models", "phase demo  # try"], ["phase live"])


@pytest.mark.parametrize("name", registry.names("cli"))
def test_help_is_complete(name: str) -> None:
    """Every option has a help text that is a sentence; option names are unique."""
    seen: list[str] = []
    for each in commands()[name].params:
        assert getattr(each, "help", None), f"phase {name}: {each.name} has no help"
        assert each.help.rstrip().endswith((".", "]", ")")), f"phase {name}: {each.name}: {each.help!r}"
        seen += each.opts
    assert len(seen) == len(set(seen))


def test_choices_in_help_texts_are_accepted() -> None:
    from phase_rppg import infer
    from phase_rppg.synth import writers
    from phase_rppg.train import recipe

    assert choices.networks().split(", ") == infer.names()
    clips, *layouts = choices.output_formats().split(", ")
    assert clips == "clips"
    assert {"video", "mmpd"} <= set(layouts)
    for name in layouts:
        writers.writer(name)
    assert "smoke" in choices.recipes().split(", ")
    for name in choices.recipes().split(", "):
        recipe.load_stages(name)


def test_import_weights_lists_every_published_network() -> None:
    pytest.importorskip("torch")
    from phase_rppg.nn import published_weights

    (option,) = (each for each in commands()["import-weights"].params if each.name == "network")
    listed = option.help.removeprefix("Network: ").rstrip(".").replace(" or ", ", ").split(", ")
    assert sorted(listed) == published_weights.networks()


@pytest.mark.parametrize("name", registry.names("cli"))
def test_an_unknown_option_gives_a_one_line_error(name: str, capfd: pytest.CaptureFixture[str]) -> None:
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
def test_other_usage_errors_give_one_line(
    words: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert said in err
    assert err.count("\n") == 1
    assert err.endswith("--help)\n")


def test_phase_without_arguments_prints_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    run([])
    said = "".join(capfd.readouterr())
    assert "Usage" in said
    assert "error" not in said
