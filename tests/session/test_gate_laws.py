"""Closed forms of the gate: each limit at its value, the logistic model, the memory of confident windows."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from phase_rppg import registry
from phase_rppg.errors import InputError
from phase_rppg.fileio import read_json, write_json
from phase_rppg.session import calibration as calibrations
from phase_rppg.session import gate as gates
from phase_rppg.session.calibration import (
    Calibration,
    Feature,
    Interval,
    LogisticModel,
    QualityLimits,
    Thresholds,
)
from phase_rppg.session.gate import (
    Gate,
    colour_deviation,
    features,
    gate,
    half_width_bpm,
    in_hindsight,
    probabilities,
    probability,
)
from phase_rppg.session.results import WindowResult
from phase_rppg.signal.constants import BAND_HZ
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, NoReading, Quality, Reading, Reason

LIMITS = QualityLimits(
    min_seconds=5.0, min_fps=10.0, max_gap_s=0.5, min_coverage=0.75, min_face_px=40.0, min_luma=20.0,
    max_clipped=0.25, min_colourfulness=0.125, max_background=0.625, max_motion=0.75,
    max_colour_deviation=0.875,
)  # fmt: skip
GOOD = Quality(
    snr_db=14.0, amplitude=0.004, background=0.0, motion=0.0, coverage=1.0, face_px=160.0, luma=120.0,
    clipped=0.0, colourfulness=0.6, fps=30.0, max_gap_s=0.034, support=0.5, agreement=0.8, visible_db=25.0,
    background_coherence=0.0, red=0.43,
)  # fmt: skip
PEAK = Peak(bpm=72.0, power=0.9, snr_db=14.0, sigma_bpm=0.5)
SUPPORT = Feature(mean=0.5, std=0.25, low=-100.0, high=100.0, weight=1.0)
MODEL = LogisticModel(bias=0.0, features={"support": SUPPORT})
# Both probabilities are equal, so that one number decides: 0.9, or 0.6 near a confident window.
RULE = Calibration(
    family="test", alive=MODEL, ok=MODEL, thresholds=Thresholds(0.6, 0.9, 0.6, 20.0),
    interval=Interval(1.5, {"sigma_bpm": 2.0}), limits=LIMITS, provenance={},
)  # fmt: skip


def having(**changes: float) -> Quality:
    return dataclasses.replace(GOOD, **changes)


def support_of(p_ok: float) -> float:
    """The support for which `RULE` gives this probability: logit = 4 · (support − 0.5)."""
    return 0.5 + math.log(p_ok / (1 - p_ok)) / 4


def reason_of(quality: Quality, duration_s: float = 10.0) -> Reason | None:
    return gates.violated_limit(quality, LIMITS, duration_s)


# ---- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "limit", "worse", "reason"),
    [
        ("fps", LIMITS.min_fps, -0.01, Reason.LOW_FPS),
        ("max_gap_s", LIMITS.max_gap_s, 0.001, Reason.BAD_TIMESTAMPS),
        ("coverage", LIMITS.min_coverage, -0.001, Reason.FACE_LOST),
        ("face_px", LIMITS.min_face_px, -0.01, Reason.FACE_TOO_SMALL),
        ("luma", LIMITS.min_luma, -0.01, Reason.TOO_DARK),
        ("clipped", LIMITS.max_clipped, 0.001, Reason.CLIPPED),
        ("colourfulness", LIMITS.min_colourfulness, -0.001, Reason.NO_COLOUR),
        ("background", LIMITS.max_background, 0.001, Reason.LIGHT_FLICKER),
        ("motion", LIMITS.max_motion, 0.001, Reason.MOTION),
    ],
)
def test_a_value_at_its_limit_passes_and_a_worse_one_is_refused(
    field: str, limit: float, worse: float, reason: Reason
) -> None:
    assert reason_of(having(**{field: limit})) is None
    assert gates.within_limits(having(**{field: limit}), LIMITS)
    assert reason_of(having(**{field: limit + worse})) is reason
    assert not gates.within_limits(having(**{field: limit + worse}), LIMITS)
    refused = gate(PEAK, having(**{field: limit + worse}, support=5.0), 3.0, 13.0, calibration=RULE)
    assert refused == NoReading(reason, 3.0, 13.0, 0.0)


def test_the_duration_of_a_window_has_a_limit_up_to_rounding() -> None:
    for duration_s, reason in ((5.0, None), (5.0 - 5e-7, None), (4.99, Reason.TOO_SHORT)):
        assert reason_of(GOOD, duration_s) is reason
        found = gate(PEAK, having(support=5.0), 100.0, 100.0 + duration_s, calibration=RULE)
        assert (found.reason if isinstance(found, NoReading) else None) is reason


def test_the_most_basic_reason_is_named_first() -> None:
    """Every defect is present; they are repaired one after the other, in the order of the reasons."""
    worst = having(
        fps=1.0, max_gap_s=9.0, coverage=0.0, face_px=1.0, luma=1.0, clipped=1.0, colourfulness=0.0, red=2.0,
        background=1.0, motion=0.9,
    )  # fmt: skip
    assert reason_of(worst, 1.0) is Reason.TOO_SHORT
    repairs: list[tuple[dict[str, float], Reason | None]] = [
        ({}, Reason.LOW_FPS),
        ({"fps": 30.0}, Reason.BAD_TIMESTAMPS),
        ({"max_gap_s": 0.1}, Reason.NO_FACE),
        ({"coverage": 0.1}, Reason.FACE_LOST),
        ({"coverage": 1.0}, Reason.FACE_TOO_SMALL),
        ({"face_px": 100.0}, Reason.TOO_DARK),
        ({"luma": 100.0}, Reason.CLIPPED),
        ({"clipped": 0.0}, Reason.NO_COLOUR),
        ({"colourfulness": 0.5}, Reason.LIGHT_FLICKER),
        ({"red": 0.43}, Reason.LIGHT_FLICKER),
        ({"background": 0.0}, Reason.MOTION),
        ({"motion": 0.0}, None),
    ]
    for change, reason in repairs:
        worst = dataclasses.replace(worst, **change)
        assert reason_of(worst) is reason


@pytest.mark.parametrize(
    ("background", "motion", "reason"),
    [
        (0.49, 0.49, Reason.NO_PULSE),
        (0.5, 0.0, Reason.LIGHT_FLICKER),
        (0.0, 0.5, Reason.MOTION),
        (0.6, 0.6, Reason.LIGHT_FLICKER),
        (0.55, 0.6, Reason.MOTION),
        (0.3, 0.1, Reason.NO_PULSE),
    ],
)
def test_a_doubtful_window_names_the_signal_that_shares_at_least_half_of_the_peak(
    background: float, motion: float, reason: Reason
) -> None:
    doubtful = having(background=background, motion=motion, support=support_of(0.2))
    found = gate(PEAK, doubtful, 0.0, 10.0, calibration=RULE)
    assert found == NoReading(reason, 0.0, 10.0, pytest.approx(0.2), p_alive=pytest.approx(0.2))


# ---- colour ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("red", "visible_db", "expected"),
    [
        (0.43, 40.0, 0.43 - 0.02),  # blood itself
        (0.93, 40.0, 0.93 - 0.02),
        (-0.07, 40.0, 0.93 - 0.02),  # as far on the other side
        (0.93, 20.0, 0.93 - 0.2),
        (0.93, 0.0, 0.0),  # noise of the same power as the peak
        (2.0, 60.0, 2.0 - 0.002),
    ],
)
def test_colour_deviation_is_the_distance_from_blood_minus_twice_the_noise(
    red: float, visible_db: float, expected: float
) -> None:
    assert colour_deviation(having(red=red, visible_db=visible_db)) == pytest.approx(expected)


@pytest.mark.parametrize(("red", "reason"), [(0.96, Reason.LIGHT_FLICKER), (-0.1, Reason.NO_PULSE)])
def test_a_colour_that_is_not_blood_is_light_above_and_motion_below(red: float, reason: Reason) -> None:
    assert reason_of(having(red=red, visible_db=80.0)) is reason
    assert reason_of(having(red=0.87, visible_db=80.0)) is None
    narrow = dataclasses.replace(LIMITS, max_colour_deviation=0.4)
    assert gates.violated_limit(having(red=0.43, visible_db=80.0), narrow) is Reason.NO_PULSE


def test_colour_deviation_at_its_limit_passes() -> None:
    quality = having(red=0.9, visible_db=30.0)
    exact = dataclasses.replace(LIMITS, max_colour_deviation=colour_deviation(quality))
    assert gates.violated_limit(quality, exact) is None


# ---- the model ---------------------------------------------------------------------------------------------


def test_the_features_are_those_of_peak_and_quality() -> None:
    peak = Peak(80.0, 0.7, 99.0, 0.01)
    quality = having(amplitude=1e-4, background=0.1, motion=0.2, background_coherence=0.3, red=0.9, blue=0.8)
    quality = dataclasses.replace(quality, track_sigma_bpm=0.1, change_bpm=9.0)
    quality = dataclasses.replace(quality, beat_bpm=89.0, beat_difference_bpm=99.0, beat_match=0.9)
    noise = 10 ** (-25 / 20)
    assert features(peak, quality) == pytest.approx(
        {
            "snr_db": 14.0, "log_sigma": -2.0, "log_track_sigma": -1.0, "log_change": 1.0,
            "log_amplitude": -4.0, "background": 0.1, "motion": 0.2, "support": 0.5, "agreement": 0.8,
            "visible_db": 25.0, "background_coherence": 0.3, "red_excess": 0.9 - 0.43 - noise,
            "red_deficit": 0.0, "grey_excess": 0.85 - 0.56 - noise, "log_beat_distance": 1.0,
            "log_beat_difference": 2.0, "beat_match": 0.9, "irregularity": 0.0,
        }
    )  # fmt: skip


def test_irregularity_counts_if_the_beats_are_alike_and_their_mean_is_not_the_rate() -> None:
    beats = having(beat_bpm=80.0, beat_difference_bpm=5.0, beat_spread=0.2, beat_match=0.95)
    assert features(PEAK, beats)["irregularity"] == 0.2
    assert features(PEAK, dataclasses.replace(beats, beat_match=0.949))["irregularity"] == 0
    assert features(PEAK, dataclasses.replace(beats, beat_bpm=PEAK.bpm))["irregularity"] == 0
    assert gates.interval_terms(PEAK, beats)["irregular_bpm"] == pytest.approx(0.2 * 72)


def test_the_logarithmic_features_are_bounded() -> None:
    assert features(dataclasses.replace(PEAK, sigma_bpm=0.0), GOOD)["log_sigma"] == pytest.approx(-3)
    assert features(PEAK, having(amplitude=0.0))["log_amplitude"] == pytest.approx(-6)
    largest = math.log10(5e-4)
    for amplitude in (5e-4, 6e-4, 1.0):
        assert features(PEAK, having(amplitude=amplitude))["log_amplitude"] == pytest.approx(largest)
    assert features(PEAK, having(amplitude=4e-4))["log_amplitude"] < largest


def test_the_colour_of_light_is_an_excess_and_that_of_blood_or_noise_is_none() -> None:
    blood = features(PEAK, having(red=0.43, blue=0.69))
    assert (blood["red_excess"], blood["red_deficit"], blood["grey_excess"]) == (0, 0, 0)
    tinted = features(PEAK, having(red=0.7, blue=1.57, visible_db=40.0))
    assert tinted["grey_excess"] == pytest.approx(1.135 - 0.56 - 0.01)
    assert features(PEAK, having(red=-0.2, visible_db=40.0))["red_deficit"] == pytest.approx(0.62)
    assert features(PEAK, having(red=1.0, blue=1.0, visible_db=0.0))["grey_excess"] == 0  # noise


def test_every_term_has_a_sign() -> None:
    """Evidence for a pulse raises a probability; spread, light, motion and foreign colour lower it."""
    lower = {
        "log_sigma", "log_track_sigma", "log_change", "background", "motion", "background_coherence",
        "red_excess", "red_deficit", "grey_excess", "log_beat_distance", "log_beat_difference",
        "irregularity",
    }  # fmt: skip
    for signs in (calibrations.ALIVE_SIGNS, calibrations.OK_SIGNS):
        assert {name for name, sign in signs.items() if sign == -1} <= lower
        assert {name for name, sign in signs.items() if sign == 1} <= set(features(PEAK, GOOD)) - lower
        assert set(signs.values()) == {-1, 1}
    # Colour and background tell blood from light; they are no evidence that the rate is right.
    assert not {"red_excess", "grey_excess", "background_coherence"} & set(calibrations.OK_SIGNS)


@pytest.mark.parametrize("logit", [-20.0, -3.0, 0.0, 0.5, 20.0, 29.0])
def test_the_probability_is_the_logistic_function_of_the_weighted_features(logit: float) -> None:
    two = {
        "support": Feature(mean=0.25, std=0.5, low=0.0, high=1.0, weight=3.0),
        "snr_db": Feature(mean=10.0, std=2.0, low=-9.0, high=90.0, weight=-1.5),
    }
    rest = logit - 3.0 * (0.5 - 0.25) / 0.5 + 1.5 * (14.0 - 10.0) / 2.0
    found = probability(features(PEAK, GOOD), LogisticModel(rest, two))
    assert found == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-9)


@pytest.mark.parametrize(("support", "clipped"), [(-3.0, -0.5), (-0.5, -0.5), (0.25, 0.25), (7.0, 0.75)])
def test_a_feature_counts_within_the_range_of_its_calibration(support: float, clipped: float) -> None:
    narrow = dataclasses.replace(SUPPORT, low=-0.5, high=0.75)
    found = probability(features(PEAK, having(support=support)), LogisticModel(0.0, {"support": narrow}))
    assert found == pytest.approx(1 / (1 + math.exp(-4 * (clipped - 0.5))))


def test_a_huge_logit_is_bounded() -> None:
    for sign in (1, -1):
        extreme = probability(features(PEAK, GOOD), dataclasses.replace(MODEL, bias=sign * 1e6))
        assert extreme == pytest.approx(1 / (1 + math.exp(-sign * 30)), rel=1e-9)


@pytest.mark.parametrize("gated", [True, False])
def test_the_interval_is_floor_plus_scale_times_sigma_within_the_band(gated: bool) -> None:
    def interval(bpm: float, sigma_bpm: float) -> tuple[float, float]:
        peak = Peak(bpm, 0.9, 14.0, sigma_bpm)
        found = gate(peak, having(support=5.0), 0.0, 10.0, calibration=RULE, gated=gated)
        assert isinstance(found, Estimate)
        assert found.bpm == bpm
        return found.low, found.high

    least, most = 60 * BAND_HZ[0], 60 * BAND_HZ[1]
    assert interval(72.0, 0.5) == pytest.approx((72 - 2.5, 72 + 2.5))
    assert interval(72.0, 4.0) == pytest.approx((72 - 9.5, 72 + 9.5))
    assert interval(42.0, 4.0) == pytest.approx((least, 51.5))
    assert interval(198.0, 4.0) == pytest.approx((188.5, most))
    assert interval(30.0, 0.5) == pytest.approx((30.0, 32.5))  # it holds the rate itself
    assert interval(220.0, 0.5) == pytest.approx((217.5, 220.0))


# ---- the decision ------------------------------------------------------------------------------------------


def reading_of(p_ok: float, confident_s: float | None = None) -> Reading:
    return gate(PEAK, having(support=support_of(p_ok)), 80.0, 90.0, calibration=RULE, confident_s=confident_s)


def test_a_window_is_shown_from_its_threshold_on() -> None:
    exact = dataclasses.replace(RULE, thresholds=Thresholds(0.5, 0.5, 0.5, 20.0))
    assert isinstance(gate(PEAK, GOOD, 0.0, 10.0, calibration=exact), Estimate)  # both are exactly 0.5
    assert isinstance(reading_of(0.91), Estimate)
    assert isinstance(reading_of(0.89), NoReading)
    for confident_s in (70.0, 90.0, 110.0):
        assert isinstance(reading_of(0.61, confident_s), Estimate)
        assert isinstance(reading_of(0.59, confident_s), NoReading)
    for confident_s in (69.9, 110.1):
        assert isinstance(reading_of(0.61, confident_s), NoReading)


def test_liveness_and_the_number_are_two_questions() -> None:
    """A clear line of a lamp and a doubtful number of a living face are both refused, and both are stated."""

    def constant(logit: float) -> LogisticModel:
        return LogisticModel(logit, {})

    for ok, alive, shown in ((3.0, 3.0, True), (3.0, 1.0, False), (0.0, 3.0, False)):
        rule = dataclasses.replace(RULE, ok=constant(ok), alive=constant(alive))
        found = gate(PEAK, GOOD, 0.0, 10.0, calibration=rule)
        assert isinstance(found, Estimate) == shown
        assert (found.p_ok, found.p_alive) == pytest.approx(
            (1 / (1 + math.exp(-ok)), 1 / (1 + math.exp(-alive)))
        )
        assert (found.p_ok, found.p_alive) == probabilities(PEAK, GOOD, rule)
        near = gate(PEAK, GOOD, 0.0, 10.0, calibration=rule, confident_s=11.0)
        assert isinstance(near, Estimate) == (ok > 0)  # memory is about liveness, not about the number


def test_the_interval_widens_with_the_change_of_the_rate() -> None:
    scales = {"sigma_bpm": 2.0, "track_sigma_bpm": 0.5, "change_bpm": 0.25}
    rule = dataclasses.replace(RULE, interval=Interval(1.0, scales))
    quality = having(track_sigma_bpm=3.0, change_bpm=8.0)
    assert half_width_bpm(PEAK, quality, rule) == pytest.approx(1 + 2 * 0.5 + 0.5 * 3 + 0.25 * 8)


def test_the_interval_widens_where_the_beats_disagree_with_the_rate() -> None:
    rule = dataclasses.replace(
        RULE, interval=Interval(1.0, {"beat_distance_bpm": 0.5, "beat_difference_bpm": 0.25})
    )
    quality = having(beat_bpm=62.0, beat_difference_bpm=8.0)
    assert half_width_bpm(PEAK, quality, rule) == pytest.approx(1 + 0.5 * 10 + 0.25 * 8)
    unknown = half_width_bpm(PEAK, having(), rule)  # too few beats to compare
    assert unknown == pytest.approx(1 + 0.5 * 20 + 0.25 * 20)


def test_without_a_gate_every_peak_is_an_estimate() -> None:
    doubtful = gate(PEAK, having(support=support_of(0.2)), 0.0, 10.0, calibration=RULE, gated=False)
    assert isinstance(doubtful, Estimate)
    assert doubtful.p_ok == pytest.approx(0.2)
    dark = gate(PEAK, having(luma=1.0, support=5.0), 0.0, 10.0, calibration=RULE, gated=False)
    assert isinstance(dark, Estimate)
    assert dark.p_ok == 0


@pytest.mark.parametrize("gated", [True, False])
def test_without_a_peak_there_is_no_reading(gated: bool) -> None:
    found = gate(None, GOOD, 0.0, 10.0, calibration=RULE, gated=gated)
    assert found == NoReading(Reason.NO_PULSE, 0.0, 10.0)
    dark = gate(None, having(luma=1.0), 0.0, 10.0, calibration=RULE, gated=gated)
    assert dark == NoReading(Reason.TOO_DARK, 0.0, 10.0)


def test_a_reading_without_true_times_is_refused() -> None:
    reading = reading_of(0.95)
    assert gates.refuse_bad_timestamps(reading) == NoReading(Reason.BAD_TIMESTAMPS, 80.0, 90.0)


def shown_by(pushed: Gate, p_ok: float, end_s: float) -> bool:
    reading = pushed.push(PEAK, having(support=support_of(p_ok)), end_s - 10, end_s)
    assert reading.p_ok == pytest.approx(p_ok)
    return isinstance(reading, Estimate)


def test_a_confident_window_lowers_the_threshold_for_its_memory() -> None:
    made = Gate(RULE)
    found = [shown_by(made, p_ok, end_s) for p_ok, end_s in [(0.7, 10), (0.95, 20), (0.7, 40), (0.7, 41)]]
    assert found == [False, True, True, False]  # a kept window is not confident: 41 is 21 s after 20
    again = [shown_by(made, 0.95, 50), shown_by(made, 0.95, 60), shown_by(made, 0.7, 79)]
    assert again == [True, True, True]
    exact = Gate(dataclasses.replace(RULE, thresholds=Thresholds(0.3, 0.5, 0.3, 20.0)))
    exact.push(PEAK, GOOD, 0.0, 10.0)  # both are exactly 0.5
    assert shown_by(exact, 0.4, 11.0)


@pytest.mark.parametrize(
    ("lost_s", "shown"), [(25.0, False), (30.0, False), (30.1, True), (21.0, False), (19.0, True)]
)
def test_a_loss_ends_the_memory_from_the_next_window_on(lost_s: float, shown: bool) -> None:
    """The confident window ends at 20 s, the next one at 30 s."""
    made = Gate(RULE)
    if lost_s < 20:
        made.record_loss(lost_s)
    assert shown_by(made, 0.95, 20.0)
    if lost_s >= 20:
        made.record_loss(lost_s)
    assert shown_by(made, 0.7, 30.0) == shown
    assert shown_by(made, 0.7, 31.0) == (lost_s < 20)


def test_several_losses_are_forgotten_in_turn() -> None:
    made = Gate(RULE)
    made.record_loss(12.0)
    made.record_loss(25.0)
    assert shown_by(made, 0.95, 20.0)
    assert shown_by(made, 0.7, 24.0)
    assert not shown_by(made, 0.7, 26.0)
    assert shown_by(made, 0.95, 27.0)
    assert shown_by(made, 0.7, 28.0)


def test_an_open_gate_shows_everything() -> None:
    assert shown_by(Gate(RULE, gated=False), 0.1, 20.0)


def brute_force(
    p_ok: np.ndarray,
    p_alive: np.ndarray,
    end_s: np.ndarray,
    recording: np.ndarray,
    rule: Thresholds,
    past: bool,
) -> list[bool]:
    """The rule of the module's first lines, window by window."""
    found = []
    for i in range(len(p_ok)):
        near = any(
            recording[k] == recording[i]
            and p_ok[k] >= rule.ok
            and p_alive[k] >= rule.alive
            and abs(end_s[k] - end_s[i]) <= rule.memory_s
            and (past or end_s[k] >= end_s[i])
            for k in range(len(p_ok))
        )
        found.append(bool(p_ok[i] >= rule.ok and p_alive[i] >= (rule.kept_alive if near else rule.alive)))
    return found


@pytest.mark.parametrize("past", [True, False])
def test_shown_windows_are_those_of_the_rule(past: bool) -> None:
    rng = np.random.default_rng(0)
    rule = Thresholds(0.5, 0.875, 0.25, 5.0)
    for _ in range(200):
        count = int(rng.integers(1, 20))
        p_ok, p_alive = rng.integers(0, 9, (2, count)) / 8  # often exactly at a threshold
        end_s = rng.permutation(40)[:count].astype(float)
        recording = rng.integers(0, 3, count)
        found = gates.shown_windows(p_ok, p_alive, end_s, recording, rule, past=past)
        assert found.tolist() == brute_force(p_ok, p_alive, end_s, recording, rule, past)


def window(end_s: float, p_ok: float, peak: Peak | None = PEAK, start_s: float | None = None) -> WindowResult:
    quality = having(support=support_of(p_ok))
    start_s = end_s - 10 if start_s is None else start_s
    return WindowResult(
        0, start_s, end_s, gate(peak, quality, start_s, end_s, calibration=RULE), peak, quality
    )


def test_a_later_confident_window_confirms_refused_ones() -> None:
    windows = [window(10, 0.7), window(11, 0.7, None), window(12, 0.5), window(20, 0.95), window(30, 0.7)]
    found = dict(in_hindsight(windows, RULE))
    assert list(found) == [0]
    assert (found[0].start_s, found[0].end_s, found[0].bpm) == (0.0, 10.0, 72.0)
    assert (found[0].low, found[0].high) == pytest.approx((69.5, 74.5))
    assert found[0].p_ok == pytest.approx(0.7)
    assert list(in_hindsight([], RULE)) == []
    assert list(in_hindsight(windows[:3], RULE)) == []


@pytest.mark.parametrize(
    ("lost_s", "confirmed"),
    [([], [0, 1]), ([15.0], []), ([12.0], []), ([5.0], [1]), ([-1.0], [0, 1]), ([20.5], [0, 1]), ([20.0], []),
     ([10.0, 3.0], [])],
)  # fmt: skip
def test_a_loss_separates_windows(lost_s: list[float], confirmed: list[int]) -> None:
    """Windows of 0–10 s, 6–12 s and a confident one of 14–20 s; a loss at an end belongs to what is later."""
    windows = [window(10, 0.7), window(12, 0.7, start_s=6.0), window(20, 0.95, start_s=14.0)]
    assert [index for index, _ in in_hindsight(windows, RULE, lost_s)] == confirmed


# ---- calibration files -------------------------------------------------------------------------------------


def test_networks_share_a_file_and_methods_without_a_file_use_that_of_pos() -> None:
    assert calibrations.family("pos") == "pos"
    assert calibrations.family("any network") == calibrations.NETWORKS
    assert calibrations.load("any network").family == calibrations.NETWORKS
    folder = Path(calibrations.__file__).parent / "calibrations"
    for name in registry.names("methods"):
        own = (folder / f"{name}.json").exists()
        assert calibrations.load(name).family == (name if own else "pos")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ok", None),
        ("limits", {"min_fps": 3}),
        ("alive", []),
        ("thresholds", "high"),
        ("provenance", 3),
        ("interval", {"floor_bpm": 1.0, "scales": {}}),
    ],
)
def test_a_malformed_calibration_file_is_named(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "x.json"
    calibrations.write(path, calibrations.load("pos"))
    write_json(path, read_json(path) | {key: value})
    with pytest.raises(InputError, match=r"x\.json: not a calibration file"):
        calibrations.read(path)
