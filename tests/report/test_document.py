"""Laws of what is written: documents follow the schema, rows have their columns, pictures show gaps as
gaps.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phase_rppg.errors import OutputError
from phase_rppg.fileio import dump_json, json_pieces
from phase_rppg.report import document, html, plots
from phase_rppg.session import reasons
from phase_rppg.types import Reason
from report import results

pytestmark = pytest.mark.smoke

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "measure.schema.json").read_text(encoding="utf-8"))
CASES = {
    "one face": results.result(results.face()),
    "two faces": results.result(
        results.face(0), results.face(3, silent=True), warnings=("the clock jumped",)
    ),
    "silent": results.result(results.face(silent=True)),
    "nobody": results.result(),
}


@pytest.mark.parametrize("case", CASES)
def test_documents_follow_the_schema(case: str) -> None:
    text = dump_json(document.document(CASES[case]))
    found = json.loads(text)
    jsonschema.validate(found, SCHEMA)
    assert ("reason" in found) == (case == "nobody")


def test_a_batch_is_a_list_and_may_hold_failures() -> None:
    entries = [document.document(r) for r in CASES.values()] + [
        {"video": "x.mp4", "error": "x.mp4: is empty"}
    ]
    jsonschema.validate(json.loads(dump_json(entries)), SCHEMA)


def test_the_schema_refuses_what_is_not_promised() -> None:
    good = document.document(CASES["one face"])
    for bad in ({**good, "extra": 1}, {**good, "faces": []}, {**good, "reason": "NO_FACE"}, {"video": "x"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, SCHEMA)


def test_rows_have_one_line_per_window() -> None:
    rows = list(csv.DictReader(io.StringIO(document.csv_text([CASES["two faces"], CASES["nobody"]]))))
    assert len(rows) == 62
    assert tuple(rows[0]) == document.CSV_COLUMNS
    assert rows[0]["reason"] == ""
    assert rows[10] == rows[10] | {"bpm": "", "low": "", "high": "", "reason": "NO_PULSE"}


def test_every_reason_has_advice_and_guidance_and_no_other_name_has() -> None:
    texts = json.loads(Path(reasons.__file__).with_suffix(".json").read_text(encoding="utf-8"))
    assert set(texts["reasons"]) == {reason.name for reason in Reason}
    assert all(set(one) == {"advice", "guidance"} and all(one.values()) for one in texts["reasons"].values())


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"luma": 59}, "light"),
        ({"face_px": 69}, "closer"),
        ({"motion": 0.21}, "still"),
        ({"fps": 19}, "camera"),
    ],
)
def test_a_poor_quality_feature_gives_its_hint(changed: dict[str, float], word: str) -> None:
    good = dataclasses.replace(
        results.face().windows[0].quality, luma=60.0, face_px=70.0, motion=0.2, clipped=0.15, fps=20.0
    )
    assert reasons.hint(good) is None
    assert word in str(reasons.hint(dataclasses.replace(good, **changed)))


def test_lines_say_the_rate_or_the_reason() -> None:
    assert document.line(results.face()) == "72.0 bpm (70–74), 90 % sure to be within 5 bpm"
    assert document.line(results.face(silent=True)).startswith("no reading: NO_PULSE – ")


def test_gaps_are_gaps_and_not_lines() -> None:
    _, bpm, low, high = plots.rate_series(results.face())
    assert np.isnan(bpm[8:14]).all()
    assert np.isfinite(np.delete(bpm, np.arange(8, 14))).all()
    assert np.isnan(low[8:14]).all()
    assert np.isnan(high[8:14]).all()


def test_the_spectrum_is_of_the_window_most_likely_right() -> None:
    face = results.face()
    rated = [
        dataclasses.replace(w, reading=dataclasses.replace(w.reading, p_ok=0.99 if i == 5 else 0.6))
        for i, w in enumerate(face.windows)
    ]
    assert plots.clearest(dataclasses.replace(face, windows=rated)) is rated[5]


@pytest.mark.parametrize("case", CASES)
def test_every_case_can_be_drawn(case: str, tmp_path: Path) -> None:
    plots.save_png(tmp_path / "out.png", CASES[case])
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["out.png"]


def test_a_report_is_one_file_that_needs_nothing_else(tmp_path: Path) -> None:
    html.save_html(tmp_path / "r.html", list(CASES.values()), [("bad.mp4", "bad.mp4: is empty")])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", text)
    assert "@import" not in text
    assert "<script" not in text
    assert "<b>folder" not in text
    assert text.count("<svg") == 3
    assert "not a medical device" in text
    assert "bad.mp4" in text


def test_a_place_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError):
        html.save_html(tmp_path / "folder", [CASES["silent"]])
    with pytest.raises(OutputError):
        plots.save_png(tmp_path / "folder", CASES["silent"])
    assert list((tmp_path / "folder").iterdir()) == []


def test_beats_are_drawn_on_the_crests_of_the_line() -> None:
    t_s = np.arange(600) / 30
    values = np.sin(2 * np.pi * 1.2 * t_s)
    values[300:330] = np.nan
    true_s = (np.arange(24) + 0.25) / 1.2
    drawn_s, heights = plots.crests(t_s, values, true_s + 0.06)
    assert np.abs(drawn_s - true_s[:, None]).min(0).max() <= 1 / 30
    assert (heights > 0.97).all()
    assert 22 <= len(drawn_s) <= 23  # the one inside the gap is not drawn


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_a_document_in_pieces_is_the_same_document(value: object) -> None:
    assert "".join(json_pieces(value)) == dump_json(value)


@pytest.mark.parametrize("case", CASES)
def test_windows_that_are_made_while_they_are_written_are_the_same(case: str) -> None:
    late = "".join(json_pieces(document.document(CASES[case], windows=iter)))
    assert late == dump_json(document.document(CASES[case]))


def test_a_long_document_comes_in_pieces_and_its_items_are_made_one_by_one() -> None:
    made: list[int] = []
    items = ({"bpm": i / 7, "made": made.append(i)} for i in range(3000))
    pieces = json_pieces({"windows": items})
    assert next(pieces).startswith("{")
    assert 0 < len(made) < 1000
    assert sum(map(len, pieces)) > 60_000


def test_a_number_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        list(json_pieces({"bpm": float("nan")}))
