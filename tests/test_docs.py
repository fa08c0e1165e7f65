"""Every path, link, dotted name and option in the documentation exists; pages are wrapped."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from phase_rppg import registry
from phase_rppg.cli import run
from phase_rppg.types import Reason

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "phase_rppg"
BASES = (ROOT, PACKAGE, ROOT / "web" / "src")  # pages name paths below these
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "MODEL_CARD.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
]
SITE_PAGES = {
    (ROOT / "docs" / name).resolve()
    for name in re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
}
OUTPUT = {"build", "data", "dist", "runs", "site"}  # folders that commands of the examples write
FOLDERS = {path.name for path in (*ROOT.iterdir(), *PACKAGE.iterdir()) if path.is_dir()} - OUTPUT
# A folder of the repository or of the package, then at least one more part.
PATH = re.compile(r"(?<![\w/.~…<{])((?:[\w.-]+/)+[\w.-]*)(?![\w*<{/…])")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
DOTTED = re.compile(r"\bphase_rppg((?:\.[A-Za-z_]\w*)+)")
# A command of the program, then its words up to the end of the code or of the line.
COMMAND = re.compile(r"\bphase ([a-z-]+)([^`|#\n]*)")
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")
ABBREVIATION = re.compile(r"(?<![\w-])[A-Za-z]*[A-Z]{2,}[A-Za-z0-9]*?(?=s?(?!\w))")
# Units, file formats, programs and names that a reader of any technical page knows, or that a page links.
WELL_KNOWN = """
AI AMD API CPU CSV CUDA EDF EPYC ES FIFO FFmpeg GB GPU HDF5 HDR HEVC HTML HTTP II III IV VI IndexedDB JPEG
JSON MAT MATLAB MB MIT MJPEG MP4 MPEG MPS MathML NCCL OpenAPI OpenCV PDF PNG PyAV PyPI QR SIGINT SIGKILL SIMD
SVG TB TFLOP TLS TOML TZ US UTF WFDB CVPR macOS vCPU
"""
STAMPS = {"REAL", "FAKE", "DATA", "SMOKE", "BUDGET", "NO"}  # words of the data stamps
ROW = re.compile(r"^\| (?:`(\w+)`|top level) \| (.*) \|$", re.MULTILINE)  # of README's packages table


def prose(page: Path) -> str:
    """The text of a page without its fenced examples, which other tests run."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def missing_paths(text: str) -> list[str]:
    """Paths below a folder of the repository or of the package that do not exist."""
    found = {path.rstrip(".") for path in PATH.findall(text)}
    ours = {path for path in found if path.split("/")[0] in FOLDERS and "KEY" not in path}
    return sorted(path for path in ours if not any((base / path).exists() for base in BASES))


def missing_links(text: str, page: Path) -> list[str]:
    """Relative links whose file or heading does not exist."""
    return sorted(link for link in LINK.findall(text) if not link_exists(link, page))


def link_exists(link: str, page: Path) -> bool:
    name, _, heading = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return target.resolve() in SITE_PAGES  # generated with the site, which checks its headings
    return not heading or heading in headings(target)


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def missing_names(text: str) -> list[str]:
    """Dotted names that are neither a module nor defined in one."""
    return sorted({name for name in DOTTED.findall(text) if not defined(name[1:].split("."))})


def defined(parts: list[str]) -> bool:
    """Whether the package has this module or name, by its sources (torch is not needed)."""
    place = PACKAGE
    while parts and (place / parts[0]).is_dir():
        place, parts = place / parts[0], parts[1:]
    if not parts:
        return True
    module = place / f"{parts[0]}.py"
    source, parts = (module, parts[1:]) if module.exists() else (place / "__init__.py", parts)
    return not parts or parts[0] in bound_names(source)


def bound_names(source: Path) -> set[str]:
    """The names that a module binds at its top level."""
    names: set[str] = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound = {target.id for target in targets if isinstance(target, ast.Name)}
            names |= set(ast.literal_eval(node.value)) if "__all__" in bound and node.value else bound
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_everything_a_page_names_exists(page: Path) -> None:
    text = prose(page)
    assert missing_paths(text) == []
    assert missing_links(text, page) == []
    assert missing_names(text) == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_pages_are_wrapped(page: Path) -> None:
    lines = prose(page).splitlines()
    assert [line for line in lines if len(line) > 100 and not line.startswith(("|", "    "))] == []


def abbreviations(page: Path) -> set[str]:
    """The words in capitals of a page, without code, formulas and the targets of links."""
    text = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|^    .*$", " ", prose(page), flags=re.MULTILINE)
    return set(ABBREVIATION.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_abbreviation_is_in_the_glossary(page: Path) -> None:
    """An abbreviation is a term of the glossary, a data set, network or reason, or known everywhere."""
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = " ".join(re.findall(r"^\| ([^|]*) \|", glossary, re.MULTILINE))
    names = {word.upper() for kind in ("datasets", "nn", "methods") for word in registry.names(kind)}
    names |= {part for name in names for part in re.split("[-_]", name)}
    page_names = {path.stem.upper() for path in ROOT.glob("*.md")}
    reasons = {reason.value for reason in Reason}
    known = set(ABBREVIATION.findall(terms)) | set(WELL_KNOWN.split()) | STAMPS | page_names | reasons
    unknown = {word for word in abbreviations(page) if word not in known and word.upper() not in names}
    assert unknown == set(), "explain them in docs/glossary.md, or write the words"


def test_every_file_of_the_packages_table_exists() -> None:
    rows = ROW.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(rows) > 10
    files = [(package, name) for package, row in rows for name in re.findall(r"`(\w+(?:\.[a-z]+|/))`", row)]
    assert len(files) > 50
    absent = [
        f"{package}/{name}"
        for package, name in files
        if not ((PACKAGE / package / name).exists() or (PACKAGE / name).is_dir())
    ]
    assert absent == []


def documented_options() -> set[tuple[str, str]]:
    """Return (command, option) for every command line in the documentation."""
    names = set(registry.names("cli"))
    found = [match for page in PAGES for match in COMMAND.findall(page.read_text(encoding="utf-8"))]
    return {(name, option) for name, words in found if name in names for option in OPTION.findall(words)}


@pytest.mark.parametrize("command", sorted({command for command, _ in documented_options()}))
def test_every_option_of_a_command_exists(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run([command, "--help"]) == 0
    known = set(OPTION.findall(capsys.readouterr().out))
    assert {option for name, option in documented_options() if name == command} <= known


def test_what_does_not_exist_is_found() -> None:
    assert missing_paths("see `signal/jitter.py` and `signal/rate.py`") == ["signal/jitter.py"]
    assert missing_paths("`src/phase_rppg/absent.py`, `tests/signal`.") == ["src/phase_rppg/absent.py"]
    page = ROOT / "docs" / "measure.md"
    links = "[a](absent.md) [b](https://example.org/x.md) [c](#exit-codes) [d](python.md#absent)"
    assert missing_links(links, page) == ["absent.md", "python.md#absent"]
    assert missing_names("`phase_rppg.nn.imports` `phase_rppg.types.Waveform`") == [".nn.imports"]
    assert missing_names("`phase_rppg.signal.rate.absent` `phase_rppg.measure`") == [".signal.rate.absent"]
