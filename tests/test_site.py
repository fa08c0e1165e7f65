"""The documentation site builds without a warning, loads nothing from other hosts and leaves nothing out."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import phase_rppg
from phase_rppg import errors
from phase_rppg.cli import run
from phase_rppg.errors import InputError
from phase_rppg.types import Reason

ROOT = Path(__file__).parents[1]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:[^\"]*)\"|<link\b[^>]*\bhref=\"(https?:[^\"]*)\""
)


FILE_LINK = re.compile(r">([\w./-]+\.md)</a>")
# 3, no reading, is no error; the others are those of the exceptions.
EXIT_CODES = {0, 1, 2, 3, 4, 130}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(scope="module")
def reference() -> Any:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        yield importlib.import_module("reference_pages")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "scripts" / "docs"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": "src"})
    assert done.returncode == 0, done.stderr[-3000:]
    return out


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    loaded = {(page.name, found) for page in pages for found in LOADED.findall(page.read_text("utf-8"))}
    assert loaded == set()


def test_links_show_titles_of_pages_not_names_of_files(site: Path) -> None:
    shown = {
        (page.name, found)
        for page in site.rglob("*.html")
        for found in FILE_LINK.findall(page.read_text("utf-8"))
    }
    assert shown == set()


@pytest.fixture(scope="module")
def phone() -> Iterator[Any]:
    """A page of a browser as wide as a phone."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("Chromium is missing")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 390, "height": 844})
        browser.close()


@pytest.mark.slow
def test_no_page_is_wider_than_a_phone(site: Path, phone: Any) -> None:
    excess_px = {}
    for page in site.rglob("*.html"):
        phone.goto(page.as_uri())
        root = "document.documentElement"
        excess_px[page.name] = phone.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
    assert {name: excess for name, excess in excess_px.items() if excess > 0} == {}


def test_formulas_are_mathml(site: Path) -> None:
    text = (site / "physics.html").read_text("utf-8")
    assert text.count("<math") > 10
    assert "arithmatex" not in text


def test_the_notebook_is_a_page_and_a_download(site: Path) -> None:
    text = (site / "first-pulse.html").read_text("utf-8")
    assert 'href="first_pulse.ipynb"' in text
    assert "make_recording" in text
    original = (ROOT / "examples" / "first_pulse.ipynb").read_bytes()
    assert (site / "first_pulse.ipynb").read_bytes() == original


def test_every_command_and_option_is_in_the_reference(reference: Any) -> None:
    page = reference.commands()
    names = [name for name, _ in reference.command_modules()]
    assert len(names) > 15
    for name, module in reference.command_modules():
        assert f"## phase {name}\n" in page
        assert inspect.getdoc(module.command), name
        unexplained = [p.names for p in reference.parameters(module) if not p.help]
        assert unexplained == [], name
        declared = list(inspect.signature(module.command).parameters.values())
        assert len(list(reference.parameters(module))) == len(declared), name


def test_every_public_name_is_documented(reference: Any) -> None:
    page = reference.api()
    for name in reference.public_names():
        assert f".{name}\n" in page
        thing = getattr(phase_rppg, name)
        # A dataclass without a docstring gets its signature as one.
        assert thing.__doc__, name
        assert not thing.__doc__.startswith(f"{name}("), name
        members = vars(thing).items() if inspect.isclass(thing) else ()
        functions = {n: getattr(m, "fget", None) or getattr(m, "__func__", m) for n, m in members}
        public = {n: f for n, f in functions.items() if inspect.isfunction(f) and not n.startswith("_")}
        assert [f"{name}.{n}" for n, f in public.items() if not f.__doc__] == []


def undocumented(page: str) -> list[str]:
    """Return the rows of reference tables whose last cell, the meaning, is empty."""
    return [line for line in page.splitlines() if line.startswith("| `") and line.endswith("|  |")]


def test_every_world_key_is_documented(reference: Any) -> None:
    from phase_rppg.synth.world import SECTIONS

    page = reference.world_keys()
    for section in SECTIONS.values():
        for key in section.__dataclass_fields__:
            assert f"| `{key}` |" in page
    assert undocumented(page) == []


def test_every_recipe_key_is_documented(reference: Any) -> None:
    from phase_rppg.train import recipe

    page = reference.recipe_keys()
    tables = {kind for kind in vars(recipe).values() if dataclasses.is_dataclass(kind)} - {recipe.Stage}
    assert len(tables) == page.count("| key | type |")
    for kind in tables:
        for key in kind.__dataclass_fields__:
            assert f"| `{key}` |" in page
    assert undocumented(page) == []


def test_every_field_of_the_json_document_is_documented(reference: Any) -> None:
    page = reference.json_document()
    for name in ("document", "failure", "face", "summary", "window", "hrv"):
        assert f"## {name}\n\n" in page
        assert f"## {name}\n\n| field" not in page, "a definition without a description"
    assert page.count("| `") > 50
    assert undocumented(page) == []


def test_every_error_exit_code_and_reason_is_documented(reference: Any) -> None:
    page = reference.errors()
    kinds = {errors.PhaseError}
    while more := {sub for kind in kinds for sub in kind.__subclasses__()} - kinds:
        kinds |= more
    ours = {kind for kind in kinds if kind.__module__ == errors.__name__}
    assert len(ours) > 10
    for kind in ours:
        assert f"| `{kind.__name__}` | {kind.exit_code} |" in page
        assert f"{kind.__name__} " in (errors.__doc__ or ""), "the tree at the top of errors.py"
    for name in Reason:
        assert f"| `{name}` |" in page
    assert "|  |" not in page
    for file in ("commands.md", "measure.md"):
        shown = (
            (ROOT / "docs" / file)
            .read_text(encoding="utf-8")
            .partition("## Exit codes")[2]
            .partition("##")[0]
        )
        assert {int(code) for code in re.findall(r"^\| (\d+) \|", shown, re.MULTILINE)} == EXIT_CODES
    reasons = (ROOT / "docs" / "measure.md").read_text(encoding="utf-8").partition("## Reasons")[2]
    for name in Reason:
        assert f"`{name}`" in reasons.partition("## Exit codes")[0]


def test_the_comment_of_a_field_is_its_meaning(reference: Any) -> None:
    source = (
        "class Size:\n"
        '    """How large."""\n'
        "    # above,\n"
        "    # two lines\n"
        "    a: int = 1\n"
        "    b: float = 2.0  # behind\n"
        "    c: str = field(default='x', metadata=M)\n"
    )
    about, fields = reference.dataclass_fields(source, "Size")
    assert about == "How large."
    assert [(f.name, f.default, f.comment) for f in fields] == [
        ("a", "1", "above, two lines"),
        ("b", "2.0", "behind"),
        ("c", "'x'", ""),
    ]


def test_bars_in_cells_do_not_split_a_table(reference: Any) -> None:
    assert reference.table(("a",), [("x|y",)]).splitlines()[-1] == "| x\\|y |"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that `phase docs` takes for the checkout; without files it is that of a wheel."""
    from phase_rppg.cli import docs

    monkeypatch.setattr(docs, "_CHECKOUT", tmp_path)
    return tmp_path


def test_phase_docs_opens_a_built_site(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = place / "site" / "index.html"
    page.parent.mkdir()
    page.touch()
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert run(["docs", "--path"]) == 0
    assert opened == []
    assert run(["docs"]) == 0
    assert opened == [page.as_uri()]
    assert capsys.readouterr().out == f"{page}\n{page}\n"


@pytest.mark.parametrize("checkout", [True, False])
def test_phase_docs_says_in_one_line_where_the_pages_are(
    checkout: bool, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    if checkout:
        (place / "mkdocs.yml").touch()
    assert run(["docs"]) == InputError.exit_code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "scripts/docs" in captured.err
    assert "docs/" in captured.err
    assert ("source distribution" in captured.err) != checkout


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    subprocess.run([sys.executable, "-m", "phase_rppg", "demo"], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs_and_has_a_picture(example: Path, demo_folder: Path) -> None:
    command = [sys.executable, str(example), f"{example.stem}.png"]
    done = subprocess.run(command, cwd=demo_folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (demo_folder / f"{example.stem}.png").stat().st_size > 5000
    assert (ROOT / "docs" / "images" / "gallery" / f"{example.stem}.png").is_file()
