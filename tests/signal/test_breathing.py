"""The breathing rate is found from any clear sign of it, and absent where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.physics.pulse import Pulse, PulseConfig, pulse_wave
from phase_rppg.signal import rate
from phase_rppg.signal.breathing import Breathing, BreathingReason, NoBreathing, SlowSignals, breathing
from phase_rppg.types import FloatArray, Waveform

FPS, SLOW_HZ = 30.0, 5.0
SILENT = {"rsa": 0.0, "breathing_strength": 0.0, "hrv_s": 0.004, "drift_bpm": 0.3}


def heart(seconds: float = 60.0, seed: int = 0, **config: float) -> tuple[Pulse, Waveform, FloatArray]:
    """A pulse, its wave and its beats."""
    pulse = pulse_wave(PulseConfig(**config), seconds, FPS, np.random.default_rng(seed))
    wave = Waveform(pulse.values, FPS, 0.0, np.ones(len(pulse.values), bool))
    return pulse, wave, rate.find_beats(wave, config.get("bpm", 72.0))


def slow(pulse: Pulse, colour: float, motion: float, seed: int = 1) -> SlowSignals:
    """Slow signals that breathing changes by these amounts, relative to their noise."""
    rng = np.random.default_rng(seed)
    t_s = np.arange(round(len(pulse.t_s) / FPS * SLOW_HZ)) / SLOW_HZ
    breath = np.interp(t_s, pulse.t_s, pulse.breathing)
    noise = rng.standard_normal((2, len(t_s)))
    valid = np.ones(len(t_s), bool)
    return SlowSignals(colour * breath + noise[0], motion * breath + noise[1], SLOW_HZ, 0.0, valid)


def rate_of(found: Breathing | NoBreathing) -> float:
    assert isinstance(found, Breathing)
    assert found.low <= found.per_minute <= found.high
    assert 0.85 <= found.p_ok <= 1
    return found.per_minute


@pytest.mark.parametrize("per_minute", [9.0, 15.0, 24.0])
@pytest.mark.parametrize("sign", ["intervals", "amplitude", "colour"])
def test_each_sign_alone_gives_the_rate(per_minute: float, sign: str) -> None:
    changed = {"intervals": {"rsa": 0.05}, "amplitude": {"breathing_strength": 0.2}}.get(sign, {})
    config = {**SILENT, "breathing_hz": per_minute / 60, "breathing_jitter": 0.03, **changed}
    pulse, wave, beats_s = heart(bpm=75, **config)
    signals = slow(pulse, 3.0, 0.0) if sign == "colour" else None
    assert rate_of(breathing(beats_s, wave, signals)) == pytest.approx(per_minute, abs=1)


def test_motion_supports_the_other_signs() -> None:
    config = {**SILENT, "breathing_hz": 0.25, "breathing_jitter": 0.03, "rsa": 0.006}
    pulse, wave, beats_s = heart(bpm=75, **config)
    still, moving = (breathing(beats_s, wave, slow(pulse, 0.3, motion)) for motion in (0.0, 3.0))
    assert moving.p_ok > still.p_ok


def test_without_breathing_there_is_no_rate() -> None:
    shown = 0
    for seed in range(20):
        pulse, wave, beats_s = heart(seed=seed, bpm=75, **SILENT)
        shown += isinstance(breathing(beats_s, wave, slow(pulse, 0.0, 0.0, seed)), Breathing)
    assert shown <= 1


def test_drift_and_posture_are_not_breathing() -> None:
    _, wave, beats_s = heart(bpm=75, **SILENT)
    t_s = np.arange(300) / SLOW_HZ
    drift = SlowSignals(np.sin(2 * np.pi * 0.03 * t_s), t_s / 60, SLOW_HZ, 0.0, np.ones(300, bool))
    assert isinstance(breathing(beats_s, wave, drift), NoBreathing)


def test_the_reason_of_an_absent_rate() -> None:
    _, wave, beats_s = heart(bpm=75, **SILENT)
    assert breathing(beats_s[:0], wave) == NoBreathing(BreathingReason.NO_BEATS)
    for count in (5, 20):  # a short clip has beats, but too few
        assert breathing(beats_s[:count], wave) == NoBreathing(BreathingReason.TOO_SHORT)
    assert breathing(np.arange(14) * 3.0, wave) == NoBreathing(BreathingReason.NO_BEATS)
    irregular_s = np.cumsum(np.tile([0.5, 1.2], 30))
    assert breathing(irregular_s, wave) == NoBreathing(BreathingReason.NO_BEATS)
    unclear = breathing(beats_s, wave)
    assert isinstance(unclear, NoBreathing)
    assert unclear.reason is BreathingReason.UNCLEAR
    assert 0 < unclear.p_ok < 0.85


def test_a_long_recording_has_the_median_of_its_windows() -> None:
    _, wave, beats_s = heart(200.0, bpm=70, rsa=0.06, breathing_hz=0.2, breathing_jitter=0.02)
    assert rate_of(breathing(beats_s, wave)) == pytest.approx(12, abs=0.7)


def test_unseen_slow_signals_are_not_used() -> None:
    _, wave, beats_s = heart(bpm=75, **SILENT)
    t_s = np.arange(300) / SLOW_HZ
    line = np.sin(2 * np.pi * 0.4 * t_s)
    seen = SlowSignals(line, line, SLOW_HZ, 0.0, np.ones(300, bool))
    assert rate_of(breathing(beats_s, wave, seen)) == pytest.approx(24, abs=1)
    unseen = SlowSignals(line, line, SLOW_HZ, 0.0, np.arange(300) < 100)
    assert breathing(beats_s, wave, unseen) == breathing(beats_s, wave)
