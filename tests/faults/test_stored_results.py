"""Damaged results of earlier commands: measured again, or refused with one line and exit code 4."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faults.crafted import is_refused, phase
from phase_rppg.errors import InputError, RecipeError
from phase_rppg.evaluate import comparison_files, films, observation_cache
from phase_rppg.measurement import trace
from phase_rppg.report import folder
from phase_rppg.report.document import SCHEMA_VERSION
from phase_rppg.reproduce.store import Store
from phase_rppg.signal.rate import Peak
from phase_rppg.synth import world
from phase_rppg.synth.clips import Clips
from phase_rppg.types import Quality, Reason

PROVENANCE = {"sha256": "0", "options": {}, "software": "x"}


def document() -> dict[str, Any]:
    rate = {"bpm": 70.0, "low": 68.0, "high": 72.0, "range_low": 69.0, "range_high": 71.0, "p_ok": 0.9}
    silent = {"bpm": None, "reason": "NO_PULSE", "advice": "…", "probable_bpm": None}
    return {
        "schema_version": SCHEMA_VERSION, "video": "a.mp4", "duration_s": 10.0, "warnings": [],
        "faces": [{"id": 1, "position": "left", "summary": rate},
                  {"id": 2, "position": None, "summary": silent}],
        "provenance": PROVENANCE,
    }  # fmt: skip


CHANGES: dict[str, Any] = {
    "no faces": lambda d: d.pop("faces"),
    "faces as a number": lambda d: d.update(faces=5),
    "a face without a summary": lambda d: d["faces"][0].pop("summary"),
    "a rate as text": lambda d: d["faces"][0]["summary"].update(bpm="70"),
    "no interval": lambda d: d["faces"][0]["summary"].pop("low"),
    "no advice": lambda d: d["faces"][1]["summary"].pop("advice"),
    "a warning as a number": lambda d: d.update(warnings=[5]),
    "no reason": lambda d: d.update(faces=[]),
    "no duration": lambda d: d.pop("duration_s"),
    "another video": lambda d: d.update(provenance={}),
}


def stored(path: Path, value: dict[str, Any]) -> dict[str, Any] | None:
    (path / folder.RESULT).write_text(json.dumps(value))
    return folder.stored(path, PROVENANCE)


def test_a_whole_document_is_used_again(tmp_path: Path) -> None:
    assert stored(tmp_path, document()) == document()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_damaged_document_is_measured_again(change: Any, tmp_path: Path) -> None:
    value = document()
    change(value)
    assert stored(tmp_path, value) is None


def evaluation(**changes: Any) -> dict[str, Any]:
    rows = [{"subject": str(i), "whole": {"ours": {"bpm": 60.0 + i, "truth_bpm": 61.0}}} for i in range(4)]
    found = {"convention": {"name": "ours"}, "dataset": "x", "model": "A", "stamp": "", "recordings": rows}
    return found | changes


def whole(bpm: Any) -> dict[str, Any]:
    return {"recordings": [{"subject": "1", "whole": {"ours": {"bpm": bpm, "truth_bpm": 60}}}]}


def test_an_evaluation_is_read(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(json.dumps(evaluation()))
    assert comparison_files.read(tmp_path / "e.json").errors[3] == ("3", 2.0)


@pytest.mark.parametrize(
    "change",
    [{"dataset": {"a": 1}}, {"stamp": 5}, {"model": ["x"]}, {"convention": {"name": 5}}, whole(float("nan")),
     whole(10**400), whole(1e308), whole(True), whole(-1), whole("60")],
    ids=["data set", "stamp", "model", "convention", "nan", "10^400", "1e308", "true", "-1", "text"],
)  # fmt: skip
def test_a_damaged_evaluation_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text(json.dumps(evaluation(**change)))
    with pytest.raises(InputError, match="is not an evaluation in a convention"):
        comparison_files.read(tmp_path / "e.json")


@pytest.mark.parametrize(
    "text",
    ["[pulse]\nbpm = 'a'", "[pulse]\nbpm = [nan, inf]", "[pulse]\nbpm = [1e300, 1e308]", "[pulse]\nbpm = inf",
     "[codec]\nname = 5", "[codec]\nname = [1, 2]", "[pulse]\nbpm = {choose = [60, 'a']}",
     "[pulse]\nbpm = {log = [1, inf]}"],
)  # fmt: skip
def test_a_world_with_a_wrong_value_is_refused(text: str) -> None:
    with pytest.raises(RecipeError):
        world.parse(text, "w")


def test_every_bundled_world_is_accepted() -> None:
    assert all(world.load(name).name == name for name in world.names())


SYNTH = ("synth", "--world", "studio", "--n", "1", "--seconds", "1", "--size", "16", "--workers", "0")


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"count": "1"}', '{"count": NaN}', '{"count": 1, "clips": []}']
)
def test_damaged_clips_are_refused(text: str, tmp_path: Path) -> None:
    pytest.importorskip("scipy", reason="scipy is missing: the extra research")
    assert phase(*SYNTH, "--out", tmp_path).returncode == 0
    assert len(Clips(tmp_path)) == 1
    (tmp_path / "shard-00000" / "meta.json").write_text(text)
    done = phase(*SYNTH, "--out", tmp_path, "--quiet")
    assert is_refused(done)
    assert "is damaged; delete" in done.stderr
    with pytest.raises(InputError, match="is damaged; delete"):
        Clips(tmp_path)


@pytest.mark.parametrize("times_s", [[0.0], [*(np.arange(300) / 30), 1e6]], ids=["only", "after a pause"])
def test_a_single_sample_of_a_trace_is_too_short(times_s: list[float]) -> None:
    colours = np.full((len(times_s), 3), 100.0)
    result = trace.measure_trace(colours, t_s=times_s)
    reasons = {result.reason, *(getattr(face.summary, "reason", None) for face in result.faces)}
    assert (Reason.TOO_SHORT in reasons) == (len(times_s) == 1)


@pytest.mark.parametrize("damage", ["cut", "text", "fifo", "pickle", "empty"])
def test_damaged_waves_and_films_are_refused(damage: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("k", {"bpm": 70}, {"wave": np.zeros(100)})
    assert len(store.waves("k")["wave"]) == 100
    path = tmp_path / "results" / "k.npz"
    content = {"cut": path.read_bytes()[:100], "text": b"text", "pickle": b"\x80\x04K\x01.", "empty": b""}
    if damage == "fifo":
        path.unlink()
        os.mkfifo(path)
    else:
        path.write_bytes(content[damage])
    for read in (lambda: store.waves("k"), lambda: films.read(path)):
        with pytest.raises(InputError, match=r"is damaged; delete it|a pipe or a socket"):
            read()


def test_a_stored_result_that_is_no_table_is_computed_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put("k", {"bpm": 70}, {"wave": np.zeros(100)})
    assert store.get("k") == {"key": "k", "bpm": 70}
    (tmp_path / "results" / "k.json").write_text("[]")
    assert store.get("k") is None


@pytest.mark.parametrize("change", [{"peak": {"bpm": "70"}}, {"peak": 5}, {"truth_bpm": "70"}, {"end_s": []}])
def test_windows_of_a_calibration_with_a_wrong_type_are_measured_again(
    change: dict[str, Any], tmp_path: Path
) -> None:
    values = {kind: {item.name: 0.5 for item in dataclasses.fields(kind)} for kind in (Peak, Quality)}
    window = {"peak": values[Peak], "quality": values[Quality], "truth_bpm": 70.0, "end_s": 10.0}
    window |= {"group": "", "mode": "file"}
    spec, file = films.FilmSpec("studio", 1, 0, 10.0), tmp_path / "w.json"
    file.write_text(json.dumps({"windows": [window]}))
    assert len(observation_cache.read(file, spec) or []) == 1
    for key, value in change.items():
        window[key] = {**values[Peak], **value} if isinstance(value, dict) else value
    file.write_text(json.dumps({"windows": [window]}))
    assert observation_cache.read(file, spec) is None
