"""Names and messages are safe to show: no control character, valid UTF-8, no formula."""

from __future__ import annotations

import json
import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phase_rppg import errors
from phase_rppg.fileio import dump_json, json_pieces
from phase_rppg.text import counted, csv_cell, html_text, printable

ANY_TEXT = st.text(st.characters(exclude_categories=()))
HOSTILE = {
    os.fsdecode(b"caf\xe9.mp4"): r"caf\xe9.mp4",
    "two\nlines\r\t.mp4": r"two\nlines\r\t.mp4",
    "\x1b[31mred\x1b[0m": r"\x1b[31mred\x1b[0m",
    "\x9b31mred": r"\x9b31mred",
    "face\u202egpj.mp4": r"face\u202egpj.mp4",
    "\u2066isolate\u2069": r"\u2066isolate\u2069",
    "zero\u200bwidth\ufeff": r"zero\u200bwidth\ufeff",
    "tag\U000e0041": r"tag\U000e0041",
}


@pytest.mark.parametrize(("text", "shown"), HOSTILE.items(), ids=range(len(HOSTILE)))
def test_hidden_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text", ["face.mp4", "Größe – 脈拍 ♥", "C:\\videos\\a.mp4", "مرحبا", "👨‍👩‍👧", "می‌خواهم"]
)
def test_ordinary_names_are_not_changed(text: str) -> None:
    assert printable(text) == text


@given(ANY_TEXT)
def test_printable_text_is_one_line_of_valid_utf8_and_printing_it_again_changes_nothing(text: str) -> None:
    shown = printable(text)
    shown.encode("utf-8")
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
    assert len(shown.splitlines()) <= 1
    assert printable(shown) == shown


@given(ANY_TEXT)
def test_json_is_valid_utf8_and_loses_nothing_but_lone_surrogates(text: str) -> None:
    written = dump_json({text: [text]}, indent=None)
    written.encode("utf-8")
    assert "".join(json_pieces([text])).encode("utf-8")
    expected = "".join(printable(c) if "\ud800" <= c <= "\udfff" else c for c in text)
    assert json.loads(written) == {expected: [expected]}
    assert not any(c in written for c in "\x1b\x7f\x9b\u202e\u2066\u2028")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", " ="])
def test_a_csv_cell_is_never_a_formula(start: str) -> None:
    assert csv_cell(f"{start}cmd()").lstrip(" ")[0] in ("'", "\\")


def test_numbers_and_ordinary_text_are_not_changed_in_csv() -> None:
    assert [csv_cell(value) for value in (-1.5, 72, "face.mp4", "")] == ["-1.5", "72", "face.mp4", ""]


def test_html_is_escaped_after_the_controls() -> None:
    assert html_text("<b>\x1b\"'&") == r"&lt;b&gt;\x1b&quot;&#x27;&amp;"


@pytest.mark.parametrize(
    "error",
    [
        errors.VideoError("a\nb\x1b.mp4", "no frames"),
        errors.RecordingError("a\nb\x1b", "no label"),
        errors.WeightsError("a\nb\x1b.onnx", "damaged"),
        errors.OutputError("a\nb\x1b.png", "a folder"),
        errors.DatasetLayoutError("a\nb\x1b", "vid.avi", ["c\nd\x1b"]),
        errors.ArgumentError("path", "a\nb\x1b", "a name"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_shows_a_hostile_name_as_escapes(error: errors.PhaseError) -> None:
    assert r"a\nb\x1b" in str(error)
    assert printable(str(error)) == str(error)


def test_a_noun_agrees_with_its_number() -> None:
    assert [counted(number, "clip") for number in (0, 1, 2)] == ["0 clips", "1 clip", "2 clips"]
