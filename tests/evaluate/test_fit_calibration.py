"""Laws of calibration: the model is the maximum-likelihood one, and its promises hold on constructed
windows.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
import typer

from phase_rppg import infer
from phase_rppg.cli.calibrate import recordings_of
from phase_rppg.errors import ArgumentError, InputError
from phase_rppg.evaluate import fit_calibration, world_windows
from phase_rppg.evaluate.world_windows import from_json, replay
from phase_rppg.session import calibration as calibrations
from phase_rppg.session.config import CONTEXT_S
from phase_rppg.session.gate import gate, probability, shown_windows, within_limits
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, Quality


def windows(count: int, seed: int = 0) -> list[fit_calibration.Observed]:
    """Windows whose chance to be right grows with the SNR; a third of them has no pulse and looks like
    noise.
    """
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
        found.append(fit_calibration.Observed(peak, quality, truth, f"recording {i // 10}"))
    return found


def test_a_window_kept_by_an_older_version_is_refused() -> None:
    (window,) = windows(1)
    row = asdict(window)
    assert from_json(row) == window
    del row["quality"]["red"]
    with pytest.raises(InputError, match="red"):
        from_json(row)


def test_the_fit_is_where_the_gradient_vanishes() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    truth = np.array([1.5, -0.7, 0.0])
    y = rng.random(4000) < 1 / (1 + np.exp(-(x @ truth + 0.4)))
    weights, bias = fit_calibration.fit_logistic(x, y, ridge=1e-3)
    np.testing.assert_allclose(weights, truth, atol=0.15)
    assert bias == pytest.approx(0.4, abs=0.15)
    p = 1 / (1 + np.exp(-(x @ weights + bias)))
    assert np.abs(x.T @ (p - y)).max() < 0.1


def test_the_promises_hold_on_windows_that_were_not_seen() -> None:
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


def test_a_number_stays_near_a_sure_one_and_never_near_another_recordings() -> None:
    p = np.array([0.6, 0.6, 0.95, 0.6, 0.3, 0.6, 0.6, 0.6])
    end_s = np.array([10.0, 11.0, 31.0, 32.0, 33.0, 51.0, 51.1, 32.0])
    recording = np.array([0, 0, 0, 0, 0, 0, 0, 1])
    thresholds = calibrations.Thresholds(0.9, 0.5, 20.0)
    shown = shown_windows(p, end_s, recording, thresholds)
    assert shown.tolist() == [False, True, True, True, False, True, False, False]
    back = np.argsort(end_s)[::-1]  # whatever the order of the rows
    assert shown_windows(p[back], end_s[back], recording[back], thresholds).tolist() == shown[back].tolist()
    later = shown_windows(p, end_s, recording, thresholds, past=False)
    assert later.tolist() == [False, True, True, False, False, False, False, False]


def test_a_replay_is_what_the_gate_shows_window_by_window() -> None:
    """The gate over kept windows, and the arithmetic by which its thresholds were found, agree."""
    observed = [replace(o, end_s=10.0 + i % 10, group=f"{i // 10}") for i, o in enumerate(windows(400))]
    for i in range(0, 400, 7):  # some that leave no doubt, so that the gate opens now and then
        clear = replace(observed[i].quality, snr_db=20.0, amplitude=0.004, background=0.0, support=1.0)
        clear = replace(clear, agreement=1.0, visible_db=30.0, background_coherence=0.0, red=0.4)
        observed[i] = replace(observed[i], peak=Peak(75.0, 0.95, 20.0, 0.1), quality=clear)
    gate = calibrations.load("pos")
    within = [o for o in observed if within_limits(o.quality, gate.limits)]
    p = np.array([probability(o.peak, o.quality, gate) for o in within])
    end_s = np.array([o.end_s for o in within])
    shown = shown_windows(p, end_s, fit_calibration.recording_numbers(within), gate.thresholds)
    replayed = [isinstance(reading, Estimate) for reading in replay(within, "pos")]
    assert replayed == shown.tolist()
    assert 0 < sum(replayed) < len(replayed)
    at_once = [isinstance(reading, Estimate) for reading in replay(within, "pos", hindsight=False)]
    assert all(later for later, now in zip(replayed, at_once, strict=True) if now)
    assert 0 < sum(at_once) < sum(replayed)  # a camera cannot show what was before the first sure window
    for i in np.flatnonzero(at_once):
        before = [p[k] for k in range(i + 1) if within[k].group == within[i].group]
        assert max(before) >= gate.threshold


def test_p_ok_is_a_probability() -> None:
    calibration = fit_calibration.calibrate(windows(3000), "test", {"command": "phase calibrate", "seed": 0})
    fresh = windows(3000, seed=2)
    p = np.array([probability(o.peak, o.quality, calibration) for o in fresh])
    right = np.array([o.right for o in fresh])
    for low in (0.0, 0.25, 0.5, 0.75):
        inside = (p >= low) & (p < low + 0.25)
        assert p[inside].mean() == pytest.approx(right[inside].mean(), abs=0.1)


def test_only_right_or_only_wrong_windows_teach_nothing() -> None:
    with pytest.raises(ArgumentError, match="some right"):
        fit_calibration.calibrate([o for o in windows(300) if o.right], "test", {})


def recordings(count: int, seed: int) -> list[fit_calibration.Observed]:
    """Eight shown windows of each recording, whose errors share a size of which sigma says nothing."""
    rng = np.random.default_rng(seed)
    quality = windows(1)[0].quality
    found = []
    for i in range(count):
        size_bpm = rng.exponential(1.0)
        for error_bpm in size_bpm * rng.normal(1, 0.1, 8):
            found.append(fit_calibration.Observed(Peak(75 + error_bpm, 0.8, 8.0, 0.1), quality, 75.0, f"{i}"))
    return found


def test_the_interval_holds_the_truth_of_new_recordings_nine_times_of_ten() -> None:
    inside = []
    for seed in range(60):
        floor_bpm = fit_calibration.interval_floor_bpm(recordings(25, seed))
        for o in recordings(25, 1000 + seed):
            assert o.truth_bpm is not None
            half_bpm = floor_bpm + fit_calibration.INTERVAL_SIGMAS * o.peak.sigma_bpm
            inside.append(abs(o.peak.bpm - o.truth_bpm) <= half_bpm)
    assert 0.89 <= np.mean(inside) <= 0.95


def test_a_long_recording_weighs_no_more_than_a_short_one() -> None:
    good, bad = recordings(1, 0)[:1], recordings(1, 1)[:1]
    bad = [
        fit_calibration.Observed(Peak(79.0, 0.8, 8.0, 0.1), bad[0].quality, 75.0, f"bad {i}")
        for i in range(4)
    ]
    once = fit_calibration.interval_floor_bpm(good + bad)
    assert fit_calibration.interval_floor_bpm(good * 100 + bad) == once
    assert fit_calibration.interval_floor_bpm([]) == fit_calibration.WITHIN_BPM


def test_the_shipped_gate_was_made_with_the_shipped_weights() -> None:
    model = infer.load()
    made_with = calibrations.load(model.manifest.name).provenance["weights_sha256"]
    assert made_with == model.manifest.sha256
    assert model.manifest.calibration == calibrations.family(model.manifest.name)


def test_each_world_is_watched_as_often_as_asked(monkeypatch) -> None:
    monkeypatch.setattr(world_windows, "_watch", lambda job: {"pos": [(job.world, job.index)]})
    found = world_windows.observe_worlds({"photo": 3, "studio": 1}, ["pos"], seed=0, seconds=10.0, workers=0)
    assert sorted(found["pos"]) == [("photo", 0), ("photo", 1), ("photo", 2), ("studio", 0)]


@pytest.mark.parametrize(("camera", "context_s"), [(False, CONTEXT_S), (True, 0.0)])
def test_films_are_watched_as_a_file_or_as_a_camera(monkeypatch, camera: bool, context_s: float) -> None:
    asked = []

    def watch(world: str, seed: int, index: int, configs, **_: object):
        asked.extend(config.context_s for config in configs.values())
        return {name: [] for name in configs}

    monkeypatch.setattr(world_windows, "observe", watch)
    world_windows.observe_worlds(
        {"photo": 2}, ["pos", "chrom"], seed=0, seconds=10.0, workers=0, camera=camera
    )
    assert asked == [context_s] * 4


@pytest.mark.parametrize(("words", "meant"), [("photo", ("photo", 12)), ("photo:36", ("photo", 36))])
def test_a_world_may_name_its_number_of_recordings(words: str, meant: tuple[str, int]) -> None:
    assert recordings_of(words, 12) == meant


@pytest.mark.parametrize("words", ["photo:", "photo:0", "photo:-1", "photo:many", "photo:2.5"])
def test_a_number_of_recordings_that_is_none_is_a_usage_error(words: str) -> None:
    with pytest.raises(typer.BadParameter, match="photo:24"):
        recordings_of(words, 12)


def test_a_window_that_counts_twice_is_two_windows() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(80, 2)), rng.random(80) > 0.4
    counts = np.where(np.arange(80) < 30, 2.0, 1.0)
    once = fit_calibration.fit_logistic(x, y, counts=counts)
    twice = fit_calibration.fit_logistic(np.concatenate([x, x[:30]]), np.concatenate([y, y[:30]]))
    np.testing.assert_allclose(once[0], twice[0], atol=1e-6)
    assert once[1] == pytest.approx(twice[1], abs=1e-6)


def test_every_world_counts_alike_however_often_it_was_filmed() -> None:
    like = windows(1)[0]
    names = ["studio/1/0", "studio/1/0", "photo/1/0", "photo/1/1", "photo/1/2", "photo/1/2"]
    counts = fit_calibration.world_counts([replace(like, group=name) for name in names])
    np.testing.assert_allclose(counts, [1, 1, 1 / 3, 1 / 3, 1 / 3, 1 / 3])
