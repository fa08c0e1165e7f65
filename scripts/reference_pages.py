"""Write the reference pages of the site from the code: commands, API, JSON, recipes, worlds and errors.

Each function returns the Markdown of one page. The text is that of help texts, docstrings and comments, so a
page cannot differ from the code. `tests/test_site.py` checks that nothing public is undocumented.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "phase_rppg"
Row = tuple[str, ...]


def all_pages() -> dict[str, str]:
    """Return the Markdown of every reference page by its name."""
    return {
        "api": api(),
        "cli": commands(),
        "errors": errors(),
        "json": json_document(),
        "recipes": recipe_keys(),
        "worlds": world_keys(),
    }


def gallery() -> str:
    """Return the page of the examples: the picture and the program of each."""
    first = ["overlay_film", "attention", "waveform", "beats", "spectrum"]
    names = [path.stem for path in sorted((ROOT / "examples").glob("*.py"))]
    parts = [
        "# Gallery",
        "Each picture is made by the program below it. `scripts/gallery` runs all of them;"
        " `phase demo` makes the video that they read.",
    ]
    for name in [*first, *(name for name in names if name not in first)]:
        source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        about = ast.get_docstring(ast.parse(source)) or ""
        title, _, rest = about.partition("\n\n")
        code = source.split('"""', 2)[2].strip()
        heading, _, sentence = title.rstrip(".").partition(": ")
        parts += [f"## {heading}", f"{sentence[:1].upper()}{sentence[1:]}." if sentence else "", rest]
        parts += [f"![{heading}](images/gallery/{name}.png)", f"```python\n{code}\n```"]
    return "\n\n".join(filter(None, parts)) + "\n"


def notebook() -> str:
    """Return the page of the notebook: its text and its programs."""
    file = ROOT / "examples" / "first_pulse.ipynb"
    parts = []
    for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
    download = "The notebook is [examples/first_pulse.ipynb](first_pulse.ipynb). A test runs its cells."
    return "\n\n".join([parts[0], download, *parts[1:]]) + "\n"


def table(head: Row, rows: list[Row]) -> str:
    """Return a Markdown table; vertical bars in cells are escaped."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


# Commands


@dataclass(frozen=True)
class Parameter:
    """An option or an argument of a command."""

    names: str  # as they are typed
    default: str
    help: str


def command_modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the name and the module of every command of this package."""
    from phase_rppg import registry

    for name in registry.names("cli"):
        yield name, registry.load("cli", name)


def parameters(module: ModuleType) -> Iterator[Parameter]:
    """Yield the options and arguments of a command in the order of its help."""
    from typer.models import ArgumentInfo, OptionInfo

    for name, parameter in inspect.signature(module.command).parameters.items():
        info = parameter.default
        if not isinstance(info, (OptionInfo, ArgumentInfo)):
            continue
        if getattr(info, "hidden", False):
            continue
        words = name.replace("_", "-")
        if isinstance(info, ArgumentInfo):
            names = info.metavar or words.upper()
        else:
            names = ", ".join(info.param_decls or (f"--{words}",))
            names += f" {info.metavar}" if info.metavar else ""
        default = info.default
        shown = "" if default in (..., None, False, "") or callable(default) else _plain(default)
        yield Parameter(names, "required" if default is ... else shown, " ".join((info.help or "").split()))


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return str(getattr(value, "value", value))


def commands() -> str:
    """Return the page of all commands."""
    parts = [
        "# Commands",
        "This page is generated from the help texts. Options that several commands share are explained"
        " in [Shared options](../commands.md).",
    ]
    for name, module in command_modules():
        parts += [f"## phase {name}", _help(module)]
        rows = [(f"`{p.names}`", f"`{p.default}`" if p.default else "", p.help) for p in parameters(module)]
        if rows:
            parts.append(table(("option or argument", "default", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _help(module: ModuleType) -> str:
    text = inspect.cleandoc(module.command.__doc__ or "")
    return re.sub(r"^(Examples?): (`.*)$", r"\1:\n\n\2", text, flags=re.MULTILINE)


# Python API


def public_names() -> list[str]:
    """Return the public names of the package."""
    import phase_rppg

    return [name for name in phase_rppg.__all__ if not name.startswith("__")]


def api() -> str:
    """Return the page of the public names, which mkdocstrings fills in."""
    import phase_rppg

    functions = [name for name in public_names() if inspect.isfunction(getattr(phase_rppg, name))]
    classes = [name for name in public_names() if name not in functions]
    parts = [
        "# Python API",
        "These names are public: `from phase_rppg import measure, Session`. [From Python](../python.md)"
        " explains them with examples.",
        "## Functions",
        *(_object(name) for name in functions),
        "## Classes",
        *(_object(name) for name in classes),
    ]
    return "\n\n".join(parts) + "\n"


def _object(name: str) -> str:
    import phase_rppg

    module = getattr(phase_rppg, name).__module__
    return f"::: {module}.{name}"


# Dataclasses of recipes and worlds


@dataclass(frozen=True)
class Field:
    """A field of a dataclass with the comment behind it or above it."""

    name: str
    kind: str
    default: str
    comment: str


def dataclass_fields(source: str, name: str) -> tuple[str, list[Field]]:
    """Return the docstring and the fields of a dataclass, read from its source."""
    comments = _comments(source)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            fields = [_field(item, comments) for item in node.body if isinstance(item, ast.AnnAssign)]
            return ast.get_docstring(node) or "", fields
    raise LookupError(f"no class {name}")


def _comments(source: str) -> dict[int, tuple[str, bool]]:
    """Return the comment of each line, and whether the line has nothing else."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found[token.start[0]] = (token.string.lstrip("# "), not token.line[: token.start[1]].strip())
    return found


def _field(item: ast.AnnAssign, comments: dict[int, tuple[str, bool]]) -> Field:
    assert isinstance(item.target, ast.Name)
    behind, alone = comments.get(item.end_lineno or item.lineno, ("", False))
    above, line = [], item.lineno - 1
    while comments.get(line, ("", False))[1]:
        above.insert(0, comments[line][0])
        line -= 1
    comment = behind if behind and not alone else " ".join(above)
    default = "" if item.value is None else ast.unparse(item.value)
    if default.startswith("field("):
        default = next((ast.unparse(k.value) for k in _keywords(item.value) if k.arg == "default"), "")
    return Field(item.target.id, ast.unparse(item.annotation), default, comment)


def _keywords(value: ast.expr | None) -> list[ast.keyword]:
    return value.keywords if isinstance(value, ast.Call) else []


def _section(title: str, file: Path, name: str) -> list[str]:
    about, fields = dataclass_fields(file.read_text(encoding="utf-8"), name)
    rows = [(f"`{f.name}`", f"`{f.kind}`", f"`{f.default}`" if f.default else "", f.comment) for f in fields]
    return [f"## {title}", about, table(("key", "type", "default", "meaning"), rows)]


def recipe_keys() -> str:
    """Return the page of the keys of a training recipe."""
    file = PACKAGE / "train" / "recipe.py"
    sections = {
        "Top level": "Recipe",
        "[data]": "Data",
        "A source in data.train or data.validate": "Source",
        "[augment]": "Augment",
        "[loss]": "Loss",
        "[optimise]": "Optimise",
        "[watch]": "Watch",
    }
    parts = [
        "# Recipe keys",
        "A recipe is a TOML file for `phase train`. Every `[[stage]]` block has a `name` and the keys in"
        " which it differs from the rest of the file. `phase train RECIPE --set optimise.lr=1e-4`"
        " replaces a value.",
    ]
    for title, name in sections.items():
        parts += _section(title, file, name)
    return "\n\n".join(parts) + "\n"


def world_keys() -> str:
    """Return the page of the keys of a world of the generator."""
    from phase_rppg import registry, synth
    from phase_rppg.synth import world

    parts = [
        "# World keys",
        "A world is a TOML file that states the distribution of every setting of the generator.",
        inspect.cleandoc(world.__doc__ or "").partition("\n\n")[2],
    ]
    for name, section in world.SECTIONS.items():
        parts += _section(f"[{name}]", Path(inspect.getfile(section)), section.__name__)
    parts += ["## Bundled worlds"]
    rows = [(f"`{name}`", synth.load(name).about) for name in registry.names("worlds")]
    parts.append(table(("world", "content"), rows))
    return "\n\n".join(parts) + "\n"


# JSON and errors


def json_document() -> str:
    """Return the page of the JSON document of `phase measure`."""
    schema = json.loads((ROOT / "docs" / "measure.schema.json").read_text(encoding="utf-8"))
    parts = [
        "# JSON document",
        f"`phase measure --json` prints it. {schema['description']} This page is generated from version"
        f" {schema['$defs']['version']['const']} of the schema, `docs/measure.schema.json`.",
    ]
    for name, part in schema["$defs"].items():
        if "properties" not in part:
            continue
        required = part.get("required", [])
        rows = [
            (f"`{key}`", _type(value), "yes" if key in required else "", value.get("description", ""))
            for key, value in part["properties"].items()
        ]
        parts += [f"## {name}", part.get("description", "")]
        parts.append(table(("field", "type", "always present", "meaning"), rows))
    return "\n\n".join(filter(None, parts)) + "\n"


def _type(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return f"`{value['$ref'].rpartition('/')[2]}`"
    if "oneOf" in value:
        return " or ".join(map(_type, value["oneOf"]))
    if "enum" in value or "const" in value:
        words = value.get("enum", [value.get("const")])
        return ", ".join(f"`{'null' if word is None else word}`" for word in words)
    if value.get("type") == "array":
        return f"list of {_type(value.get('items', {}))}"
    kind = value.get("type", "")
    return f"`{' or '.join(kind) if isinstance(kind, list) else kind}`" if kind else ""


def errors() -> str:
    """Return the page of exceptions, exit codes, reasons and advice."""
    from phase_rppg import errors as module

    rows = []
    for name, kind in vars(module).items():
        if inspect.isclass(kind) and issubclass(kind, module.PhaseError):
            rows.append((f"`{name}`", str(kind.exit_code), (kind.__doc__ or "").partition("\n")[0]))
    reasons = json.loads((PACKAGE / "session" / "reasons.json").read_text(encoding="utf-8"))
    parts = [
        "# Errors and exit codes",
        "Every exception of the package is a `PhaseError`. A command prints its message as one line and"
        " ends with its exit code. Exit code 0 means success and 3 means no reading.",
        table(("exception", "exit code", "meaning"), rows),
        "## Reasons for no reading",
        _reason_table(reasons),
    ]
    return "\n\n".join(parts) + "\n"


def _reason_table(reasons: dict[str, Any]) -> str:
    rows = [(f"`{name}`", text["advice"], text["guidance"]) for name, text in reasons["reasons"].items()]
    return table(("reason", "advice of a command", "advice of the page of `phase live`"), rows)
