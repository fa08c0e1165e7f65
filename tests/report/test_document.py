"""Documents follow the schema, CSV rows have all columns, and plots show gaps."""

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
from phase_rppg.report import document, html, picture, plots
from phase_rppg.session import reasons
from phase_rppg.signal.hrv import Hrv, HrvLimit
from phase_rppg.types import FaceTrack, NoReading, Reason, SummaryEstimate
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
        document.error_document("x.mp4", "x.mp4: is empty")
    ]
    jsonschema.validate(json.loads(dump_json(entries)), SCHEMA)


def test_the_schema_refuses_other_documents() -> None:
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


def test_texts_contain_the_rate_or_the_reason() -> None:
    assert document.face_text(results.face()) == "72.0 bpm (70–74), 90 % sure to be within 5 bpm"
    assert document.face_text(results.face(silent=True)).startswith("no reading: NO_PULSE – ")


def test_a_probable_rate_is_never_a_reading() -> None:
    near = NoReading(Reason.NO_PULSE, 0.0, 12.0, 0.82, probable_bpm=61.2, p_alive=1.0)
    face = dataclasses.replace(results.face(silent=True), summary=near)
    text = document.face_text(face)
    assert text == "no reading: probably 61 bpm (82 %), not sure enough; film 20 s more"
    assert plots.short_text(face) == "no reading: probably 61 bpm (82 %), not sure enough"
    found = document.document(results.result(face))
    jsonschema.validate(found, SCHEMA)
    summary = found["faces"][0]["summary"]
    assert (summary["bpm"], summary["probable_bpm"], summary["p_ok"]) == (None, 61.2, 0.82)
    assert summary["advice"] in text
    assert "Probably 61 bpm (82 %), not sure enough" in html.page([results.result(face)])


def test_a_changing_rate_is_shown_as_a_range() -> None:
    wide = SummaryEstimate(94.2, 92.0, 96.0, 0.97, 0.0, 300.0, range_low=79.0, range_high=104.0)
    face = dataclasses.replace(results.face(), summary=wide)
    assert document.face_text(face) == "79–104 bpm, median 94, 97 % sure to be within 5 bpm"
    found = document.document(results.result(face))
    jsonschema.validate(found, SCHEMA)
    summary = found["faces"][0]["summary"]
    assert (summary["bpm"], summary["range_low"], summary["range_high"]) == (94.2, 79.0, 104.0)
    page = html.page([results.result(face)])
    assert "79–104 bpm</p>" in page
    assert "median 94.2 bpm" in page
    steady = dataclasses.replace(wide, range_low=91.0, range_high=97.0)
    assert document.rate_text(steady) == "94.2 bpm (92–96)"


def test_boxes_position_and_thumbnail_are_shown() -> None:
    boxes = FaceTrack(0, np.arange(3.0), np.array([[1.0, 2, 30, 40]] * 3), np.array([True, False, True]))
    shown = np.arange(96 * 96 * 3, dtype=np.uint8).reshape(96, 96, 3)
    face = dataclasses.replace(results.face(), boxes=boxes, position="left", thumbnail=shown)
    result = results.result(face, results.face(1))
    found = document.document(result)
    jsonschema.validate(found, SCHEMA)
    first = found["faces"][0]
    assert first["position"] == "left"
    assert [box["time_s"] for box in first["boxes"]] == [0.0, 2.0]
    assert first["boxes"][0]["box"] == [1.0, 2.0, 30.0, 40.0]
    page = html.page([result])
    assert "Face 0, left" in page
    assert "Face 0: all" in page
    assert "Face 0" not in html.page([results.result(results.face())])
    assert page.count("data:image/png;base64,") == 1


def test_the_report_says_why_lf_hf_is_missing() -> None:
    found = Hrv(beats=60, duration_s=45.0, rmssd_ms=30.0, sdnn_ms=None, pnn50=None, lf_hf=None)
    limits = {"sdnn_ms": HrvLimit("duration_s", 45.0, 60.0), "lf_hf": HrvLimit("duration_s", 45.0, 120.0)}
    page = html.page([results.result(dataclasses.replace(results.face(), hrv=found, hrv_limits=limits))])
    assert "<td>SDNN (ms)</td><td>45 s of beats, 60 s are needed</td>" in page
    assert "<td>LF/HF</td><td>45 s of beats, 120 s are needed</td>" in page


def test_only_the_figure_has_a_legend_over_its_waveform() -> None:
    """The strip of a video is too low: the legend would cover the waveform."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    face = results.face()
    start_s, end_s = plots.plotted_interval(face, plots.best_window(face))
    shown = plots.figure(results.result(face)).axes[0]
    assert shown.get_xlim() == (start_s, end_s)
    last = dataclasses.replace(face, windows=face.windows[-1:])
    assert plots.plotted_interval(last, last.windows[0]) == (28.0, 40.0)  # to the end of the waveform
    beats = int(((face.beats_s >= start_s) & (face.beats_s <= end_s)).sum())
    assert [text.get_text() for text in shown.get_legend().get_texts()] == [f"{beats} beats"]
    strip = Figure().add_subplot()
    plots.draw_wave(strip, face, 0.0, 10.0)
    assert strip.get_legend() is None


def test_a_plot_names_faces_only_among_several() -> None:
    pytest.importorskip("matplotlib")
    one = plots.figure(results.result(results.face()))
    two = plots.figure(results.result(results.face(), results.face(1)))
    assert not one.axes[0].get_title().startswith("face")
    assert [axes.get_title()[:7] for axes in two.axes[:2]] == ["face 0:", "face 1:"]


def test_the_overview_names_a_video_that_failed_once() -> None:
    page = html.page(
        [results.result(results.face())], [("in/cut\n.mp4", r"in/cut\n.mp4: is empty; record it")]
    )
    assert "<td class=word>not measured: is empty; record it</td>" in page


def test_an_embedded_picture_is_read_back() -> None:
    matplotlib_image = pytest.importorskip("matplotlib.image")
    rgb = np.random.default_rng(0).integers(0, 256, (7, 5, 3), np.uint8)
    read = matplotlib_image.imread(io.BytesIO(picture.png(rgb)), format="png")
    assert np.array_equal(np.rint(255 * read).astype(np.uint8), rgb)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (HrvLimit("jitter_s", 0.021, 0.009), "21 ms, at most 9 ms are allowed"),
        (HrvLimit("jitter_s", None, 0.009), "unknown, at most 9 ms"),
        (HrvLimit("duration_s", 12.0, 30.0), "12 s of beats, 30 s are needed"),
        (HrvLimit("normal_share", 0.5, 0.8), "50 % of the beat intervals are regular, 80 %"),
        (HrvLimit("beats", 1, 3), "1 beat, 3 are needed"),
    ],
)
def test_the_failed_limit_of_variability_is_shown(limit: HrvLimit, words: str) -> None:
    face = dataclasses.replace(results.face(), hrv=None, hrv_limits={"rmssd_ms": limit})
    found = document.document(results.result(face))
    jsonschema.validate(found, SCHEMA)
    assert found["faces"][0]["hrv_limits"] == {"rmssd_ms": dataclasses.asdict(limit)}
    assert words in html.page([results.result(face)])


def test_reports_show_whole_names_of_equal_files() -> None:
    names = ("s1/vid.avi", "s2/vid.avi")
    page = html.page([results.result(results.face(), video=name) for name in names])
    assert all(f"<td>{name}</td>" in page for name in names)


def test_rates_are_nan_without_a_reading() -> None:
    _, bpm, low, high = plots.rate_series(results.face())
    assert np.isnan(bpm[8:14]).all()
    assert np.isfinite(np.delete(bpm, np.arange(8, 14))).all()
    assert np.isnan(low[8:14]).all()
    assert np.isnan(high[8:14]).all()


def test_the_best_window_has_the_highest_p_ok() -> None:
    face = results.face()
    rated = [
        dataclasses.replace(w, reading=dataclasses.replace(w.reading, p_ok=0.99 if i == 5 else 0.6))
        for i, w in enumerate(face.windows)
    ]
    assert plots.best_window(dataclasses.replace(face, windows=rated)) is rated[5]


@pytest.mark.parametrize("case", CASES)
def test_every_case_can_be_plotted(case: str, tmp_path: Path) -> None:
    plots.save(tmp_path / "out.png", CASES[case])
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["out.png"]


def test_a_report_has_no_external_resources(tmp_path: Path) -> None:
    html.save_html(tmp_path / "r.html", list(CASES.values()), [("bad.mp4", "bad.mp4: is empty")])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:image/png;base64,)""", text)
    assert "@import" not in text
    assert "<script" not in text
    assert "<b>folder" not in text
    assert text.count("<svg") == 3
    assert "not a medical device" in text
    assert "bad.mp4" in text


def test_an_unwritable_output_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(OutputError):
        html.save_html(tmp_path / "folder.png", [CASES["silent"]])
    with pytest.raises(OutputError):
        plots.save(tmp_path / "folder.png", CASES["silent"])
    assert list((tmp_path / "folder.png").iterdir()) == []


def test_beat_markers_are_at_the_maxima_of_the_curve() -> None:
    t_s = np.arange(600) / 30
    values = np.sin(2 * np.pi * 1.2 * t_s)
    values[300:330] = np.nan
    true_s = (np.arange(24) + 0.25) / 1.2
    drawn_s, heights = plots.beat_markers(t_s, values, true_s + 0.06)
    assert np.abs(drawn_s - true_s[:, None]).min(0).max() <= 1 / 30
    assert (heights > 0.97).all()
    assert 22 <= len(drawn_s) <= 23  # no marker inside the gap


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_a_document_in_pieces_is_the_same_document(value: object) -> None:
    assert "".join(json_pieces(value)) == dump_json(value)


@pytest.mark.parametrize("case", CASES)
def test_lazy_windows_give_the_same_document(case: str) -> None:
    late = "".join(json_pieces(document.document(CASES[case], windows=iter)))
    assert late == dump_json(document.document(CASES[case]))


def test_a_long_document_is_written_in_pieces() -> None:
    made: list[int] = []
    items = ({"bpm": i / 7, "made": made.append(i)} for i in range(3000))
    pieces = json_pieces({"windows": items})
    assert next(pieces).startswith("{")
    assert 0 < len(made) < 1000
    assert sum(map(len, pieces)) > 60_000


def test_a_number_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        list(json_pieces({"bpm": float("nan")}))
