"""The documentation site builds without a warning, loads nothing from other hosts and leaves nothing out."""

from __future__ import annotations

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
from phase_rppg.cli import run
from phase_rppg.errors import InputError

ROOT = Path(__file__).parents[1]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:[^\"]*)\"|<link\b[^>]*\bhref=\"(https?:[^\"]*)\""
)


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
        assert inspect.getdoc(getattr(phase_rppg, name)), name


def test_every_key_of_recipes_and_worlds_is_listed(reference: Any) -> None:
    from phase_rppg.synth.world import SECTIONS

    page = reference.world_keys()
    for section in SECTIONS.values():
        for key in section.__dataclass_fields__:
            assert f"| `{key}` |" in page
    assert [line for line in page.splitlines() if line.startswith("| `") and line.endswith("|  |")] == []
    recipes = reference.recipe_keys()
    for key in ("delay_frames", "clips_per_epoch", "stretch", "warmup_frames", "schedule", "save_every"):
        assert f"| `{key}` |" in recipes


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
