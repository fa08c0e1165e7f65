"""Results convert to plain data, tables and figures."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from phase_rppg.errors import ArgumentError, MissingPackageError, is_installed
from phase_rppg.report.document import document
from phase_rppg.session.results import FaceResult, Result, WindowResult
from phase_rppg.types import Estimate, NoReading, Quality, Reason, Waveform

QUALITY = Quality(5, 0.002, 0, 0, 1, 200, 130, 0, 0.4, 30, 0.034)


def face(number: int = 0) -> FaceResult:
    shown = WindowResult(number, 0, 10, Estimate(70, 69, 72, 0.9, 0, 10), None, QUALITY)
    refused = WindowResult(number, 1, 11, NoReading(Reason.MOTION, 1, 11, 0.2), None, QUALITY)
    wave = Waveform(np.sin(np.arange(330) / 4), 30.0, 0.5, np.arange(330) > 2)
    beats_s = np.array([1.0, 1.8, 2.7, 8.0, 8.9])
    return FaceResult(number, shown.reading, (shown, refused), wave, beats_s, None, 200.0, 11.0)


def result(*faces: FaceResult) -> Result:
    return Result("face.mp4", "pos", 11.5, 30.0, 345, faces, None if faces else Reason.NO_FACE)


def test_a_window_has_its_rate_and_interval() -> None:
    shown, refused = face().windows
    assert (shown.bpm, shown.low, shown.high) == (70, 69, 72)
    assert (refused.bpm, refused.low, refused.high) == (None, None, None)


def test_an_interval_ends_at_each_beat_and_gaps_have_none() -> None:
    np.testing.assert_allclose(face().ibi_s, [np.nan, 0.8, 0.9, np.nan, 0.9])
    assert replace(face(), beats_s=np.zeros(0)).ibi_s.shape == (0,)


def test_a_result_as_plain_data_is_the_json_document() -> None:
    found = result(face())
    assert found.to_dict() == document(found)
    assert json.loads(found.to_json()) == json.loads(json.dumps(document(found)))
    assert json.loads(found.faces[0].to_json()) == document(found)["faces"][0]
    assert "\n" not in found.to_json(indent=None)


def test_the_full_document_has_wave_and_beats() -> None:
    found = result(face())
    assert found.to_dict(full=True) == document(found, full=True)
    assert {"wave", "beats"} <= set(found.faces[0].to_dict(full=True))
    assert not {"wave", "beats"} & set(found.faces[0].to_dict())
    assert json.loads(found.to_json(full=True)) == json.loads(json.dumps(found.to_dict(full=True)))


def test_a_figure_of_a_result_and_of_one_face() -> None:
    assert len(result(face(0), face(1)).plot().axes) == 6
    assert len(face().plot().axes) == 3


@pytest.fixture
def pandas() -> ModuleType:
    if not is_installed("pandas"):
        assert not os.environ.get("PHASE_TESTS_COMPLETE"), "pandas is missing: scripts/install --all"
        pytest.skip("pandas is missing: scripts/install --all")
    import pandas

    return pandas


def test_tables_of_a_face(pandas: ModuleType) -> None:
    windows, wave, beats = map(face().to_frame, ("windows", "wave", "beats"))
    assert windows["bpm"].tolist()[0] == 70
    assert windows["bpm"].isna().tolist() == [False, True]
    assert windows["reason"].tolist()[1] == "MOTION"
    assert list(windows) == ["start_s", "end_s", "bpm", "low", "high", "p_ok", "p_alive", "snr_db", "reason"]
    assert wave["t_s"].iloc[0] == 0.5
    assert (len(wave), int(wave["valid"].sum())) == (330, 327)
    np.testing.assert_allclose(beats["ibi_s"], face().ibi_s)


@pytest.mark.parametrize("table", ["windows", "wave", "beats"])
def test_tables_of_a_result_have_a_column_for_the_face(pandas: ModuleType, table: str) -> None:
    found = result(face(0), face(4)).to_frame(table)
    one = face().to_frame(table)
    assert list(found) == ["face", *one]
    assert found["face"].tolist() == [0] * len(one) + [4] * len(one)
    assert found.index.tolist() == list(range(2 * len(one)))
    assert len(result().to_frame(table)) == 0


def test_an_unknown_table_is_refused(pandas: ModuleType) -> None:
    with pytest.raises(ArgumentError, match="windows, wave, beats"):
        face().to_frame("wafe")
    with pytest.raises(ArgumentError, match="windows, wave, beats"):
        result().to_frame("wafe")


@pytest.mark.parametrize("one", [face(), result(face())], ids=["face", "result"])
def test_a_missing_package_is_named_with_its_extra(
    one: FaceResult | Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackageError, match=r"phase-rppg\[pandas\]"):
        one.to_frame()
    with pytest.raises(MissingPackageError, match=r"phase-rppg\[plot\]"):
        one.plot()
