"""The texts of reasons and the rule of the gate exist once."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "phase_rppg"
MODULES = sorted(PACKAGE.rglob("*.py"))
THRESHOLDS = {"alive", "kept_alive", "memory_s"}


def texts(value: object) -> list[str]:
    """Return all texts of three or more words in a JSON value."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return [value] if isinstance(value, str) and len(value.split()) > 2 else []


def longest_part(text: str) -> str:
    """Return the longest part of a text without its placeholders."""
    return max(re.split(r"\{\w+\}", text), key=len).rstrip(".")


def compares_thresholds(source: str) -> bool:
    """Return whether a module compares an attribute with the name of a threshold of the gate."""
    return any(
        isinstance(part, ast.Attribute) and part.attr in THRESHOLDS
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
    )


def test_texts_of_reasons_have_one_copy() -> None:
    found = texts(json.loads((PACKAGE / "session" / "reasons.json").read_text(encoding="utf-8")))
    assert len(found) > 24
    written = ROOT / "web" / "phase-rppg" / "src" / "data.ts"  # by the build, from reasons.json
    folders = [ROOT / "web" / name / "src" for name in ("phase-rppg", "app")]
    page = [file for folder in folders for file in folder.rglob("*.ts")]
    assert len(page) > 40
    sources = [*MODULES, *(file for file in page if file != written), ROOT / "web" / "app" / "index.html"]
    for file in sources:
        source = file.read_text(encoding="utf-8")
        copies = [text for text in found if longest_part(text) in source]
        assert not copies, f"{file}: read these texts from reasons.json: {copies}"


def test_only_the_gate_compares_its_thresholds() -> None:
    assert compares_thresholds("shown = p_ok >= calibration.thresholds.kept_alive")
    comparing = {
        str(file.relative_to(PACKAGE)) for file in MODULES if compares_thresholds(file.read_text("utf-8"))
    }
    assert comparing == {str(Path("session") / "gate.py")}
