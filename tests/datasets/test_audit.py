"""The audit finds inserted faults, and none in recordings without faults."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.cli import run as phase
from phase_rppg.datasets import audit, audit_report, base, reference_rate
from phase_rppg.types import Frame, FrameSource, Waveform

from . import fake_layouts

SECONDS = 11.0


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> audit.Audit:
    """Six recordings: 1 and 2 have no fault, the others have one each."""
    root = tmp_path_factory.mktemp("ubfc")
    fake_layouts.ubfc_rppg(root, [fake_layouts.FaceState(i, 55.0 + 7 * i, SECONDS) for i in range(1, 7)])
    labels = {i: root / f"subject{i}" / "ground_truth.txt" for i in range(1, 7)}

    shifted = np.loadtxt(labels[3])
    shifted[0] = np.interp(shifted[2] - 1.1, shifted[2], shifted[0])
    np.savetxt(labels[3], shifted)
    labels[4].write_bytes(labels[1].read_bytes())
    flat = np.loadtxt(labels[5])
    flat[0, (flat[2] > 6) & (flat[2] < 9)] = 0.4
    np.savetxt(labels[5], flat)
    video = root / "subject6" / "vid.avi"
    video.write_bytes(video.read_bytes()[: video.stat().st_size // 2])
    return audit.audit("ubfc_rppg", root, workers=0)


def kinds(result: audit.Audit, name: str) -> set[str]:
    return {f.kind for f in result.findings if f.recording == name}


def test_sound_recordings_have_no_findings(result: audit.Audit) -> None:
    assert kinds(result, "subject1") == kinds(result, "subject2") == set()
    for one in result.measured[:2]:
        assert one.coverage > 0.99
        assert one.fps == pytest.approx(30, rel=0.01)
        assert one.lag_s == pytest.approx(0, abs=0.08)
        assert one.agreement > 0.8


def test_a_shifted_label_is_found_with_its_shift(result: audit.Audit) -> None:
    assert "shifted label" in kinds(result, "subject3")
    assert result.measured[2].lag_s == pytest.approx(1.1, abs=0.1)


def test_a_copied_reference_is_found_with_its_origin(result: audit.Audit) -> None:
    (finding,) = [f for f in result.findings if f.kind == "copied reference"]
    assert (finding.recording, finding.text) == ("subject4", "has the same reference as subject1")


def test_a_flat_line_is_found_with_its_time(result: audit.Audit) -> None:
    assert kinds(result, "subject5") == {"flat line"}
    ((start_s, end_s),) = result.measured[4].flat
    assert (start_s, end_s) == (pytest.approx(6, abs=0.2), pytest.approx(9, abs=0.2))


def test_a_truncated_video_is_found(result: audit.Audit) -> None:
    assert "truncated video" in kinds(result, "subject6") or "unusable" in kinds(result, "subject6")


def test_the_report_is_one_readable_page(result: audit.Audit) -> None:
    page = audit_report.to_html(result)
    for finding in result.findings:
        assert finding.text in page
    assert len(re.findall("data:image/png;base64", page)) == 5
    assert "Content-Security-Policy" in page
    assert "http" not in page.replace("http-equiv", "").replace("https://", "http")
    assert "DATASET_2" in page
    json.dumps(result.as_json(), allow_nan=False)


def test_names_cannot_break_the_page(result: audit.Audit) -> None:
    evil = audit.Finding("<script>", "flat line", "<img src=x>")
    page = audit_report.to_html(audit.Audit("x", "/", (), (evil,)))
    assert "<script>" not in page
    assert "<img src=x>" not in page


def test_the_command_writes_a_report_and_can_be_strict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_layouts.folder(tmp_path, fake_layouts.people(1, seconds=5.0, face=False))
    report = tmp_path / "report.html"
    arguments = ["audit", "folder", str(tmp_path), "--out", str(report), "--workers", "0"]
    assert phase([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["kind"] == "missing face"
    assert report.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert phase([*arguments, "--strict"]) == 4
    assert phase(["audit", "pure", str(tmp_path)]) == 4
    assert "expected PURE" in capsys.readouterr().err


def test_a_stretch_of_bad_video_does_not_shift_the_label() -> None:
    """A lag that excludes a bad part of the video does not win against the true lag."""
    rng = np.random.default_rng(0)
    t_s = np.arange(360) / 30
    pulse = np.cos(2 * np.pi * 1.02 * t_s)
    video = pulse + np.where(t_s > 9.5, 3 * rng.standard_normal(360), 0.2 * rng.standard_normal(360))
    every = np.ones(360, bool)
    wave, label = Waveform(video, 30.0, 0.0, every), Waveform(pulse, 30.0, 0.0, every)
    lag_s, _ = audit.best_lag(*audit.lag_curve(wave, label), 6.0)
    assert lag_s == pytest.approx(0, abs=0.1)


def test_a_beat_is_not_mistaken_for_a_shift() -> None:
    lags_s = np.arange(-90, 91) / 30
    curve = 0.45 * np.cos(2 * np.pi * lags_s / 0.8) + 0.01 * lags_s
    lag_s, _ = audit.best_lag(lags_s, curve, 60.0)
    assert lag_s == pytest.approx(0, abs=0.02)
    assert audit.best_lag(lags_s, 0.2 * curve, 60.0)[0] is None
    assert audit.best_lag(lags_s, np.zeros(181), 60.0)[0] is None


def test_window_rates_ignore_what_is_not_known() -> None:
    t_s = np.arange(0, 40, 1 / 50)
    valid = (t_s < 15) | (t_s > 22)
    wave = Waveform(np.sin(2 * np.pi * 1.25 * t_s), 50.0, 0.0, valid)
    assert reference_rate.window_bpm(wave, 0, 10) == pytest.approx(75, abs=0.1)
    assert reference_rate.window_bpm(wave, 12, 22) is None
    assert reference_rate.window_bpm(wave, 35, 45) is None
    assert np.allclose(reference_rate.window_rates(wave), 75, atol=0.1)
    assert len(reference_rate.window_rates(wave)) < 7


@dataclasses.dataclass
class Beginning:
    """The first twelve seconds of a video."""

    source: FrameSource

    def frames(self) -> Iterator[Frame]:
        return itertools.takewhile(lambda frame: frame.t_s < 12, self.source.frames())


def test_the_real_samples_show_no_shift(real_data: Path) -> None:
    (recording, *_) = base.load("ubfc_rppg", real_data / "ubfc_rppg")
    measured = audit.measure(dataclasses.replace(recording, video=Beginning(recording.video)))
    assert measured.coverage > 0.99
    assert "shifted label" not in {f.kind for f in audit.check(measured)}
