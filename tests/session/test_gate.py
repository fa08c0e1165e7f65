"""The gate: each limit has its reason, confidence grows with evidence, ungated windows keep their `p_ok`."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg import registry
from phase_rppg.errors import InputError
from phase_rppg.fileio import read_json, write_json
from phase_rppg.session import calibration as calibrations
from phase_rppg.session.calibration import Thresholds
from phase_rppg.session.gate import features, gate, in_hindsight, probabilities
from phase_rppg.session.results import WindowResult
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, NoReading, Quality, Reason

GOOD = Quality(
    snr_db=14.0, amplitude=0.004, background=0.0, motion=0.0, coverage=1.0, face_px=160.0, luma=120.0,
    clipped=0.0, colourfulness=0.6, fps=30.0, max_gap_s=0.034, support=0.95, agreement=0.8, visible_db=25.0,
    background_coherence=0.0, red=0.4, blue=0.65, track_sigma_bpm=0.5, change_bpm=0.5, beat_bpm=72.0,
    beat_difference_bpm=0.5, beat_spread=0.04, beat_match=0.99,
)  # fmt: skip
PEAK = Peak(bpm=72.0, power=0.9, snr_db=14.0, sigma_bpm=0.3)
CALIBRATIONS = sorted(
    {calibrations.load(name).family for name in [*registry.names("methods"), "some-network"]}
)


@pytest.fixture(params=CALIBRATIONS)
def method(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_clear_pulse_gets_an_estimate(method: str) -> None:
    found = gate(PEAK, GOOD, 0.0, 10.0, calibration=calibrations.load(method))
    assert isinstance(found, Estimate)
    assert (found.bpm, found.start_s, found.end_s) == (72.0, 0.0, 10.0)
    assert found.low <= 72.0 <= found.high
    assert found.p_ok > 0.8


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fps": 6.0}, Reason.LOW_FPS),
        ({"max_gap_s": 2.5}, Reason.BAD_TIMESTAMPS),
        ({"coverage": 0.0}, Reason.NO_FACE),
        ({"coverage": 0.5}, Reason.FACE_LOST),
        ({"face_px": 9.0}, Reason.FACE_TOO_SMALL),
        ({"luma": 3.0}, Reason.TOO_DARK),
        ({"clipped": 0.99}, Reason.CLIPPED),
        ({"colourfulness": 0.0}, Reason.NO_COLOUR),
        ({"background": 1.0}, Reason.LIGHT_FLICKER),
        ({"motion": 1.0}, Reason.MOTION),
        ({"visible_db": 30.0, "red": 0.98, "blue": 1.0}, Reason.LIGHT_FLICKER),
        ({"snr_db": -12.0, "support": 0.0, "agreement": 0.0, "amplitude": 1e-5}, Reason.NO_PULSE),
    ],
)
def test_each_defect_has_its_reason(method: str, change: dict[str, float], reason: Reason) -> None:
    peak = (
        dataclasses.replace(PEAK, snr_db=-12.0, power=0.05, sigma_bpm=5.0)
        if reason is Reason.NO_PULSE
        else PEAK
    )
    found = gate(peak, dataclasses.replace(GOOD, **change), 0.0, 10.0, calibration=calibrations.load(method))
    assert isinstance(found, NoReading)
    assert found.reason is reason


def test_the_colour_of_a_weak_peak_causes_no_refusal(method: str) -> None:
    faint = dataclasses.replace(GOOD, visible_db=9.0, red=1.1)
    found = gate(PEAK, faint, 0.0, 10.0, calibration=calibrations.load(method))
    assert isinstance(found, Estimate) or found.p_ok > 0


def test_two_seconds_are_too_short_and_no_peak_is_no_pulse(method: str) -> None:
    assert gate(PEAK, GOOD, 0.0, 2.0, calibration=calibrations.load(method)) == NoReading(
        Reason.TOO_SHORT, 0.0, 2.0
    )
    assert gate(None, GOOD, 0.0, 10.0, calibration=calibrations.load(method)) == NoReading(
        Reason.NO_PULSE, 0.0, 10.0
    )


def test_a_confident_window_lowers_the_threshold_before_and_after_it(method: str) -> None:
    calibration = calibrations.load(method)
    p_ok, p_alive = probabilities(PEAK, GOOD, calibration)
    between = dataclasses.replace(
        calibration, thresholds=Thresholds(p_ok / 2, (1 + p_alive) / 2, p_alive / 2, 20.0)
    )
    unlikely = dataclasses.replace(
        between, ok=dataclasses.replace(calibration.ok, bias=calibration.ok.bias - 20)
    )
    for confident_s, shown in ((None, False), (70.0, True), (69.9, False), (110.0, True), (110.1, False)):
        found = gate(PEAK, GOOD, 80.0, 90.0, calibration=between, confident_s=confident_s)
        assert isinstance(found, Estimate) == shown
        assert (found.p_ok, found.p_alive) == (p_ok, p_alive)
        refused = gate(PEAK, GOOD, 80.0, 90.0, calibration=unlikely, confident_s=confident_s)
        assert isinstance(refused, NoReading)
    dark = dataclasses.replace(GOOD, luma=3.0)  # a limit applies nevertheless
    found = gate(PEAK, dark, 80.0, 90.0, calibration=between, confident_s=85.0)
    assert isinstance(found, NoReading)
    assert found.reason is Reason.TOO_DARK


def seen(end_s: float, bias: float, calibration: calibrations.Calibration) -> WindowResult:
    """A window whose `p_ok` depends on its support alone, gated without other windows."""
    there = dataclasses.replace(GOOD, support=GOOD.support + bias)
    reading = gate(PEAK, there, end_s - 10, end_s, calibration=calibration)
    return WindowResult(0, end_s - 10, end_s, reading, PEAK, there)


def test_a_later_confident_window_confirms_earlier_ones() -> None:
    shipped = calibrations.load("pos")
    support = calibrations.Feature(mean=0.5, std=0.25, low=0.0, high=1.0, weight=4.0)
    model = calibrations.LogisticModel(0.0, {"support": support})
    gate = dataclasses.replace(shipped, ok=model, alive=model, thresholds=Thresholds(0.5, 0.95, 0.5, 20.0))
    faint, none = 0.55 - GOOD.support, -GOOD.support  # more likely right than wrong; not at all
    ends = [(10.0, faint), (11.0, none), (12.0, faint), (31.0, 0.0), (32.0, faint)]
    windows = [seen(end_s, bias, gate) for end_s, bias in ends]
    assert [isinstance(window.reading, Estimate) for window in windows] == [False, False, False, True, False]
    # 10 is 21 s before the confident window; 32 is later than it, which is the task of the session.
    found = dict(in_hindsight(windows, gate))
    assert list(found) == [2]
    assert (found[2].bpm, found[2].end_s, found[2].p_ok) == (PEAK.bpm, 12.0, windows[2].reading.p_ok)
    assert dict(in_hindsight(windows, gate, lost_s=[20.0])) == {}  # the face that returned may be another one
    assert list(dict(in_hindsight(windows, gate, lost_s=[1.0, 40.0]))) == [2]
    assert dict(in_hindsight(windows[:3], gate)) == {}


def test_an_ungated_window_outside_a_limit_has_p_ok_zero(method: str) -> None:
    bad = dataclasses.replace(GOOD, background=1.0)
    found = gate(PEAK, bad, 0.0, 10.0, calibration=calibrations.load(method), gated=False)
    assert isinstance(found, Estimate)
    assert found.p_ok == 0.0


@settings(deadline=None, max_examples=60)
@given(
    snr_db=st.floats(-60, 60), amplitude=st.floats(0, 1), support=st.floats(0, 1), agreement=st.floats(0, 1),
    sigma=st.floats(0, 50), face_px=st.floats(0, 4000), luma=st.floats(0, 255), bpm=st.floats(40, 200),
)  # fmt: skip
def test_every_estimate_is_finite_and_ordered(
    snr_db: float, amplitude: float, support: float, agreement: float, sigma: float, face_px: float,
    luma: float, bpm: float,
) -> None:  # fmt: skip
    quality = dataclasses.replace(
        GOOD,
        snr_db=snr_db,
        amplitude=amplitude,
        support=support,
        agreement=agreement,
        face_px=face_px,
        luma=luma,
    )
    shipped = calibrations.load("pos")
    found = gate(Peak(bpm, 0.5, snr_db, sigma), quality, 0.0, 10.0, calibration=shipped, gated=False)
    assert isinstance(found, Estimate)
    assert 0 <= found.p_ok <= 1
    assert found.low <= found.bpm <= found.high


@pytest.mark.parametrize("family", CALIBRATIONS)
def test_every_feature_of_the_files_exists_and_the_files_name_their_command(family: str) -> None:
    calibration = calibrations.load(family)
    assert set(calibration.alive.features) == set(calibrations.ALIVE_SIGNS) <= set(features(PEAK, GOOD))
    assert set(calibration.ok.features) == set(calibrations.OK_SIGNS) <= set(features(PEAK, GOOD))
    assert "phase calibrate" in calibration.provenance["command"]
    thresholds = calibration.thresholds
    assert 0.5 <= thresholds.ok < 1
    assert 0.1 <= thresholds.kept_alive <= thresholds.alive < 1
    assert thresholds.memory_s > 0
    assert all(0 < p < 1 for p in probabilities(PEAK, GOOD, calibration))


def test_a_file_is_read_as_written_and_an_incomplete_one_is_refused(tmp_path) -> None:
    calibration = calibrations.load("pos")
    calibrations.write(tmp_path / "pos.json", calibration)
    assert calibrations.read(tmp_path / "pos.json") == calibration
    broken = read_json(tmp_path / "pos.json")
    del broken["thresholds"]
    write_json(tmp_path / "broken.json", broken)
    with pytest.raises(InputError, match="phase calibrate"):
        calibrations.read(tmp_path / "broken.json")


def test_a_file_with_features_of_another_version_is_refused_with_their_names(tmp_path) -> None:
    calibrations.write(tmp_path / "pos.json", calibrations.load("pos"))
    older = read_json(tmp_path / "pos.json")
    features = older["alive"]["features"]
    features["light_db"] = features.pop("background_coherence")
    write_json(tmp_path / "older.json", older)
    with pytest.raises(InputError, match=r"another version: background_coherence, light_db.*phase calibrate"):
        calibrations.read(tmp_path / "older.json")
