"""Waveforms and beats are read back with independent libraries."""

from __future__ import annotations

import csv
import dataclasses
import io
import warnings
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.errors import ArgumentError, InputError, MissingPackageError
from phase_rppg.report import signals
from report import results

TWO = results.result(results.face(0), results.face(3, bpm=90.0))


def test_wave_rows_have_time_value_and_validity() -> None:
    rows = list(csv.DictReader(io.StringIO(signals.wave_csv(TWO))))
    assert tuple(rows[0]) == signals.WAVE_COLUMNS
    assert len(rows) == 2400
    wave = TWO.faces[1].wave
    second = [row for row in rows if row["face"] == "3"]
    assert [float(row["time_s"]) for row in second] == pytest.approx(wave.t_s, abs=1e-4)
    assert [float(row["value"]) for row in second] == pytest.approx(wave.values, abs=1e-5)
    assert [row["valid"] == "1" for row in second] == wave.valid.tolist()


def test_beat_intervals_are_empty_after_a_gap() -> None:
    face = results.face()
    beats_s = face.beats_s[(face.beats_s < 10) | (face.beats_s > 15)]
    gapped = results.result(dataclasses.replace(face, beats_s=beats_s))
    rows = list(csv.DictReader(io.StringIO(signals.beats_csv(gapped))))
    assert tuple(rows[0]) == signals.BEAT_COLUMNS
    assert [float(row["time_s"]) for row in rows] == pytest.approx(beats_s, abs=1e-4)
    gap = np.diff(beats_s) > 4
    assert gap.sum() == 1
    assert [row["ibi_s"] == "" for row in rows] == [True, *gap]
    known = [float(row["ibi_s"]) for row in rows if row["ibi_s"]]
    assert known == pytest.approx(np.diff(beats_s)[~gap], abs=1e-4)


def test_edf_is_read_back_by_pyedflib(tmp_path: Path) -> None:
    pyedflib = pytest.importorskip("pyedflib")
    signals.save_wave(tmp_path / "x.edf", TWO)
    with pyedflib.EdfReader(str(tmp_path / "x.edf")) as file:
        assert file.getSignalLabels() == ["PPG face 0", "PPG face 3"]
        assert file.getSampleFrequencies().tolist() == [30.0, 30.0]
        for channel, face in enumerate(TWO.faces):
            assert np.abs(file.readSignal(channel)[:1200] - face.wave.values).max() < 1e-4
        start_s, length_s, text = file.readAnnotations()
    for face in TWO.faces:
        assert start_s[text == f"beat face {face.id}"] == pytest.approx(face.beats_s, abs=1e-3)
        gap = text == f"invalid face {face.id}"
        assert start_s[gap] == pytest.approx([10.0])
        assert length_s[gap] == pytest.approx([1.0])


@pytest.mark.parametrize("fps", [25.0, 29.97])
def test_edf_keeps_other_frame_rates(fps: float, tmp_path: Path) -> None:
    pyedflib = pytest.importorskip("pyedflib")
    face = results.face()
    face = dataclasses.replace(face, wave=dataclasses.replace(face.wave, fps=fps))
    signals.save_wave(tmp_path / "x.edf", results.result(face))
    with pyedflib.EdfReader(str(tmp_path / "x.edf")) as file:
        assert file.getSampleFrequency(0) == pytest.approx(fps, rel=1e-4)
        assert np.abs(file.readSignal(0)[:1200] - face.wave.values).max() < 1e-4


def test_wfdb_is_read_back_by_wfdb(tmp_path: Path) -> None:
    pytest.importorskip("wfdb")
    signals.save_wave(tmp_path / "x.hea", TWO)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.atr", "x.dat", "x.hea"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of wfdb, about pandas
        import wfdb

        record = wfdb.rdrecord(str(tmp_path / "x"))
        marks = wfdb.rdann(str(tmp_path / "x"), "atr")
    assert record.sig_name == ["PPG face 0", "PPG face 3"]
    assert record.fs == 30
    for channel, face in enumerate(TWO.faces):
        signal = record.p_signal[:, channel]
        assert np.isnan(signal).tolist() == (~face.wave.valid).tolist()
        assert np.nanmax(np.abs(signal - face.wave.values)) < 1e-4
        samples = marks.sample[np.asarray(marks.chan) == channel]
        assert samples.tolist() == np.rint(face.beats_s * 30).tolist()


def test_old_beats_do_not_stay_beside_a_new_wave(tmp_path: Path) -> None:
    pytest.importorskip("wfdb")
    signals.save_wave(tmp_path / "x.hea", TWO)
    signals.save_wave(tmp_path / "x.hea", results.result(results.face(silent=True)))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.dat", "x.hea"]


@pytest.mark.parametrize("name", ["x.edf", "x.hea"])
def test_a_result_without_a_face_has_no_wave(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no face"):
        signals.save_wave(tmp_path / name, results.result())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.wav", "x", "two words.hea", "ä.hea"])
def test_other_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="--wave"):
        signals.check_wave_name(tmp_path / name)


@pytest.mark.parametrize(("name", "package"), [("x.edf", "pyedflib"), ("x.hea", "wfdb")])
def test_a_missing_package_names_the_extra(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phase_rppg.errors.is_installed", lambda _: False)
    message = rf'{package} is not installed; run: pip install "phase-rppg\[interchange\]"'
    with pytest.raises(MissingPackageError, match=message):
        signals.check_wave_name(tmp_path / name)
