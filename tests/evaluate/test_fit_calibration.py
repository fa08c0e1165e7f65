"""The calibration fit maximises the likelihood, and its constraints hold on constructed windows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer

from phase_rppg import infer
from phase_rppg.cli.calibrate import parse_world
from phase_rppg.errors import ArgumentError
from phase_rppg.evaluate import films, fit_calibration, world_windows
from phase_rppg.evaluate.world_windows import film_specs, replay
from phase_rppg.session import calibration as calibrations
from phase_rppg.session.config import CONTEXT_S
from phase_rppg.session.gate import gate, probabilities, shown_windows, within_limits
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, Quality


def windows(count: int, seed: int = 0) -> list[fit_calibration.ObservedWindow]:
    """Return windows whose probability of a correct rate increases with the SNR; a third has no pulse."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        pulse = rng.random() > 0.33
        snr_db = rng.normal(4, 5) if pulse else rng.normal(-6, 2)
        right = pulse and rng.random() < 1 / (1 + np.exp(-(snr_db - 1)))
        truth = 75.0 if pulse else None
        bpm = 75 + rng.normal(0, 0.8) if right else rng.uniform(85, 180)
        quality = Quality(
            snr_db=snr_db, amplitude=10 ** rng.normal(-3, 0.3), background=rng.uniform(0, 0.2), motion=0.05,
            coverage=1.0, face_px=rng.uniform(80, 200), luma=rng.uniform(60, 200), clipped=0.0,
            colourfulness=rng.uniform(0.2, 0.8), fps=30.0, max_gap_s=0.04,
            support=float(np.clip(rng.normal(0.7 if right else 0.4, 0.2), 0, 1)), agreement=rng.uniform(0, 1),
        )  # fmt: skip
        peak = Peak(bpm, float(np.clip(0.5 + snr_db / 30, 0, 1)), snr_db, 0.5)
        kind = "pulse" if pulse else "none"  # a recording has a pulse, or none
        found.append(fit_calibration.ObservedWindow(peak, quality, truth, f"{kind}/{i // 10}"))
    return found


def test_the_gradient_vanishes_at_the_fit() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    truth = np.array([1.5, -0.7, 0.0])
    y = rng.random(4000) < 1 / (1 + np.exp(-(x @ truth + 0.4)))
    weights, bias = fit_calibration.fit_logistic(x, y, ridge=1e-3)
    np.testing.assert_allclose(weights, truth, atol=0.15)
    assert bias == pytest.approx(0.4, abs=0.15)
    p = 1 / (1 + np.exp(-(x @ weights + bias)))
    assert np.abs(x.T @ (p - y)).max() < 0.1


def test_the_constraints_hold_on_new_windows() -> None:
    calibration = fit_calibration.calibrate(windows(3000), "test", {"command": "phase calibrate", "seed": 0})
    fresh = windows(3000, seed=1)
    shown, false, without = [], 0, 0
    for o in fresh:
        reading = gate(o.peak, o.quality, 0, 10, calibration=calibration)
        without += o.truth_bpm is None
        if isinstance(reading, Estimate):
            shown.append(o.right)
            false += o.truth_bpm is None
    assert false / without <= 0.02
    assert np.mean(shown) >= 0.92
    assert len(shown) > 0.2 * len(fresh)


def test_a_confident_window_affects_its_own_recording_only() -> None:
    p = np.array([0.6, 0.6, 0.95, 0.6, 0.3, 0.6, 0.6, 0.6])
    sure = np.full(8, 0.9)
    end_s = np.array([10.0, 11.0, 31.0, 32.0, 33.0, 51.0, 51.1, 32.0])
    recording = np.array([0, 0, 0, 0, 0, 0, 0, 1])
    thresholds = calibrations.Thresholds(0.7, 0.9, 0.5, 20.0)
    assert not shown_windows(np.full(8, 0.6), p, end_s, recording, thresholds).any()
    shown = shown_windows(sure, p, end_s, recording, thresholds)
    assert shown.tolist() == [False, True, True, True, False, True, False, False]
    back = np.argsort(end_s)[::-1]  # whatever the order of the rows
    assert (
        shown_windows(sure, p[back], end_s[back], recording[back], thresholds).tolist()
        == shown[back].tolist()
    )
    later = shown_windows(sure, p, end_s, recording, thresholds, past=False)
    assert later.tolist() == [False, True, True, False, False, False, False, False]


def test_replay_equals_shown_windows(monkeypatch) -> None:
    """The gate, applied window by window, agrees with the vectorised rule that the fit uses."""
    observed = [replace(o, end_s=10.0 + i % 10, group=f"{i // 10}") for i, o in enumerate(windows(400))]
    for i in range(0, 400, 7):  # some windows with a clear pulse
        clear = replace(observed[i].quality, snr_db=20.0, amplitude=0.004, background=0.0, support=1.0)
        clear = replace(clear, agreement=1.0, visible_db=30.0, background_coherence=0.0, red=0.4, blue=0.6)
        clear = replace(clear, track_sigma_bpm=0.4, change_bpm=0.5, beat_bpm=75.0, beat_difference_bpm=0.3)
        clear = replace(clear, beat_spread=0.03, beat_match=0.99)
        observed[i] = replace(observed[i], peak=Peak(75.0, 0.95, 20.0, 0.1), quality=clear)
    shipped = calibrations.load("pos")
    within = [o for o in observed if within_limits(o.quality, shipped.limits)]
    p_ok, p = np.array([probabilities(o.peak, o.quality, shipped) for o in within]).T
    middle, most = np.quantile(p, [0.5, 0.9]).tolist()
    gate = replace(shipped, thresholds=calibrations.Thresholds(0.0, most, middle, 20.0))
    monkeypatch.setattr(calibrations, "load", lambda _: gate)
    end_s = np.array([o.end_s for o in within])
    shown = shown_windows(p_ok, p, end_s, fit_calibration.recording_numbers(within), gate.thresholds)
    replayed = [isinstance(reading, Estimate) for reading in replay(within, "pos")]
    assert replayed == shown.tolist()
    assert 0 < sum(replayed) < len(replayed)
    at_once = [isinstance(reading, Estimate) for reading in replay(within, "pos", hindsight=False)]
    assert all(later for later, now in zip(replayed, at_once, strict=True) if now)
    assert 0 < sum(at_once) < sum(replayed)  # a camera has no later windows
    for i in np.flatnonzero(at_once):
        before = [p[k] for k in range(i + 1) if within[k].group == within[i].group]
        assert max(before) >= gate.thresholds.alive


def test_p_ok_is_a_probability_if_the_face_is_alive() -> None:
    calibration = fit_calibration.calibrate(windows(3000), "test", {"command": "phase calibrate", "seed": 0})
    fresh = [o for o in windows(3000, seed=2) if o.truth_bpm is not None]
    p = np.array([probabilities(o.peak, o.quality, calibration)[0] for o in fresh])
    right = np.array([o.right for o in fresh])
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (p >= low) & (p < low + 0.25)
        assert p[inside].mean() == pytest.approx(right[inside].mean(), abs=0.1)


def test_p_alive_separates_right_windows_from_films_without_a_pulse() -> None:
    calibration = fit_calibration.calibrate(windows(3000), "test", {"command": "phase calibrate", "seed": 0})
    fresh = windows(2000, seed=3)
    p = np.array([probabilities(o.peak, o.quality, calibration)[1] for o in fresh])
    right, without = (
        np.array(mask) for mask in zip(*((o.right, o.truth_bpm is None) for o in fresh), strict=True)
    )
    assert p[right].mean() > p[without].mean() + 0.3


def test_only_correct_windows_are_refused() -> None:
    with pytest.raises(ArgumentError, match="some right"):
        fit_calibration.calibrate([o for o in windows(300) if o.right], "test", {})


def recordings(count: int, seed: int) -> list[fit_calibration.ObservedWindow]:
    """Return eight windows of each recording, whose errors are dependent and do not depend on sigma."""
    rng = np.random.default_rng(seed)
    quality = windows(1)[0].quality
    found = []
    for i in range(count):
        size_bpm = rng.exponential(1.0)
        for error_bpm in size_bpm * rng.normal(1, 0.1, 8):
            found.append(
                fit_calibration.ObservedWindow(Peak(75 + error_bpm, 0.8, 8.0, 0.1), quality, 75.0, f"{i}")
            )
    return found


def test_the_interval_covers_ninety_percent_of_new_recordings() -> None:
    inside = []
    for seed in range(40):
        interval = fit_calibration.fit_interval(recordings(25, seed))
        for o in recordings(25, 1000 + seed):
            half_bpm = interval.floor_bpm + sum(
                scale * fit_calibration.interval_terms(o.peak, o.quality)[name]
                for name, scale in interval.scales.items()
            )
            inside.append(o.error_bpm <= half_bpm)
    assert 0.89 <= np.mean(inside) <= 0.97


def test_the_interval_grows_with_the_change_of_the_rate() -> None:
    rng = np.random.default_rng(0)
    quality = windows(1)[0].quality
    observed = []
    for i in range(300):
        change_bpm = rng.uniform(0, 20)
        peak = Peak(75 + rng.normal(0, 0.2 + 0.3 * change_bpm), 0.8, 8.0, 0.1)
        changed = replace(quality, change_bpm=change_bpm)
        observed.append(fit_calibration.ObservedWindow(peak, changed, 75.0, f"{i}"))
    assert fit_calibration.fit_interval(observed).scales["change_bpm"] > 0.3


def test_every_recording_has_the_same_weight() -> None:
    beyond, groups = np.array([1.0, 4.0, 4.0, 4.0, 4.0]), ["good", *(f"bad {i}" for i in range(4))]
    once = fit_calibration.interval_floor_bpm(beyond, groups)
    many = fit_calibration.interval_floor_bpm(
        np.concatenate([np.full(100, 1.0), beyond[1:]]), ["good"] * 100 + groups[1:]
    )
    assert once == many == 4.0
    assert fit_calibration.fit_interval([]).floor_bpm == fit_calibration.WITHIN_BPM


def test_the_upper_bound_is_exact_without_a_hit() -> None:
    assert fit_calibration.upper_bound(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100), abs=1e-4)
    assert fit_calibration.upper_bound(3, 3) == 1.0
    assert fit_calibration.upper_bound(0, 0) is None


def test_the_bundled_gate_was_fitted_to_the_bundled_weights() -> None:
    model = infer.load()
    made_with = calibrations.load(model.manifest.name).provenance["weights_sha256"]
    assert made_with == model.manifest.sha256
    assert model.manifest.calibration == calibrations.family(model.manifest.name)


def test_each_world_has_its_number_of_films_and_lengths_in_turn() -> None:
    specs = film_specs({"photo": 3, "talk,pulse.present=false": 1}, seed=0, seconds=(10.0, 14.0))
    assert [(s.name, s.index, s.seconds) for s in specs] == [
        ("photo", 0, 10.0), ("talk,pulse.present=false", 0, 10.0), ("photo", 1, 14.0), ("photo", 2, 10.0),
    ]  # fmt: skip
    assert specs[1].settings == (("pulse.present", False),)
    assert len({s.file(Path()) for s in specs}) == 4


@pytest.mark.parametrize(("mode", "context_s"), [("file", CONTEXT_S), ("camera", 0.0)])
def test_recordings_are_measured_as_a_file_or_as_a_camera(monkeypatch, mode: str, context_s: float) -> None:
    asked = []
    monkeypatch.setattr(world_windows, "sampled_film", lambda *_: films.NO_FACE)
    monkeypatch.setattr(films, "windows", lambda _film, config, _state: asked.append(config.context_s) or [])
    world_windows.observe_worlds(
        {"photo": 2}, ["pos", "chrom"], seed=0, seconds=10.0, workers=0, modes=(mode,)
    )
    assert asked == [context_s] * 4


@pytest.mark.parametrize(
    ("words", "meant"),
    [("photo", ("photo", 12)), ("photo:36", ("photo", 36)), ("talk:2,a.b=1", ("talk,a.b=1", 2))],
)
def test_a_world_may_have_its_own_number_of_recordings(words: str, meant: tuple[str, int]) -> None:
    assert parse_world(words, 12) == meant


@pytest.mark.parametrize("words", ["photo:", "photo:0", "photo:-1", "photo:many", "photo:2.5"])
def test_an_invalid_number_of_recordings_is_a_usage_error(words: str) -> None:
    with pytest.raises(typer.BadParameter, match="photo:24"):
        parse_world(words, 12)


def test_a_weight_of_two_equals_two_windows() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(80, 2)), rng.random(80) > 0.4
    counts = np.where(np.arange(80) < 30, 2.0, 1.0)
    once = fit_calibration.fit_logistic(x, y, counts=counts)
    twice = fit_calibration.fit_logistic(np.concatenate([x, x[:30]]), np.concatenate([y, y[:30]]))
    np.testing.assert_allclose(once[0], twice[0], atol=1e-6)
    assert once[1] == pytest.approx(twice[1], abs=1e-6)


def test_films_with_and_without_a_pulse_have_the_same_weight() -> None:
    like = replace(windows(1)[0], truth_bpm=70.0)
    alive = [replace(like, group=name) for name in ("studio/1/0", "studio/1/0", "talk/1/1")]
    still = [replace(like, group=f"photo/1/{i}", truth_bpm=None) for i in range(4)]
    counts = fit_calibration.film_counts(alive + still)
    np.testing.assert_allclose(counts, [1 / 4, 1 / 4, 1 / 2, *[1 / 4] * 4])


def test_a_fit_of_p_ok_changes_p_ok_only() -> None:
    first = fit_calibration.calibrate(windows(3000), "test", {"seed": 0})
    facts = {"seed": 0, "command": "phase calibrate"}
    known = calibrations.KeptPart("test", first.alive, first.thresholds, first.interval, first.limits, facts)
    worse = [replace(o, peak=replace(o.peak, bpm=o.peak.bpm + 3 * (o.right))) for o in windows(3000, seed=4)]
    second = fit_calibration.refit_ok(worse, known, {"seed": 4})
    assert (second.alive, second.limits, second.family) == (first.alive, first.limits, "test")
    assert second.interval == first.interval
    assert replace(second.thresholds, ok=0.0) == replace(first.thresholds, ok=0.0)
    assert second.ok != first.ok
    assert second.provenance["kept_from"] == facts
    assert second.provenance["seed"] == 4


def test_the_kept_part_is_that_of_the_bundled_file() -> None:
    for method in ("pos", "chrom", "phasenet-stream"):
        shipped, kept = calibrations.load(method), calibrations.kept_part(method)
        assert (kept.alive, kept.thresholds) == (shipped.alive, shipped.thresholds)
        assert (kept.interval, kept.limits) == (shipped.interval, shipped.limits)
        assert kept.provenance == shipped.provenance.get("kept_from", shipped.provenance)
