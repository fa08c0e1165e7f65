"""Clips of the short encoder search have the pulse and the labels of clips of the full search."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from phase_rppg import synth
from phase_rppg.synth import codec
from phase_rppg.types import FloatArray

CLIPS = 12
FIXED = {
    "codec.name": "h264", "codec.crf": 23, "codec.again": 0.0, "camera.fps": 30.0, "pulse.bpm": 80.0,
    "pulse.irregular": 0.0, "pulse.step_factor": 1.0, "pulse.amplitude": 0.03, "motion.kind": "still",
    "light.kind": "constant", "frame.face_px": 120.0, "subject.fitzpatrick": 2,
}  # fmt: skip


def clips(monkeypatch: pytest.MonkeyPatch, *, economical: bool) -> list[synth.Sample]:
    def transcode(frames: Any, spec: codec.CodecSpec, fps: float, **_: bool) -> Any:
        return codec.transcode(frames, spec, fps, economical=economical)

    monkeypatch.setattr(importlib.import_module("phase_rppg.synth.sample"), "transcode", transcode)
    world = synth.load("wild")
    return [synth.sample(world, 7, i, seconds=5, size=48, fixed=FIXED) for i in range(CLIPS)]


def noise_power(one: synth.Sample) -> float:
    """Return the power that the skin has in the band of heart rates besides the true wave."""
    green, wave = detrended_green(one), centred_wave(one)
    rest = green - wave * (green @ wave / (wave @ wave))
    power = np.abs(np.fft.rfft(rest * np.hanning(len(rest)))) ** 2
    hz = np.fft.rfftfreq(len(rest), 1 / 30)
    return float(power[(hz > 0.6) & (hz < 4)].sum())


def amplitude(one: synth.Sample) -> float:
    """Return the size of the true wave in the logarithm of the green channel of the skin."""
    wave = centred_wave(one)
    return -float(detrended_green(one) @ wave / (wave @ wave))


def detrended_green(one: synth.Sample) -> FloatArray:
    green = np.log(one.pixels[:, one.truth.mask > 0.5, 1].mean(1))
    frame = np.arange(len(green))
    return green - np.polyval(np.polyfit(frame, green, 3), frame)


def centred_wave(one: synth.Sample) -> FloatArray:
    return one.truth.wave - one.truth.wave.mean()


def test_a_short_search_keeps_the_pulse_and_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    full, short = (clips(monkeypatch, economical=economical) for economical in (False, True))
    for one, other in zip(full, short, strict=True):
        for name in ("wave", "bpm", "beat_times_s", "mask"):
            np.testing.assert_array_equal(getattr(one.truth, name), getattr(other.truth, name))
        assert not np.array_equal(one.pixels, other.pixels)
    kept = sum(map(amplitude, short)) / sum(map(amplitude, full))
    assert kept == pytest.approx(1, abs=0.07)
    # The sum over clips: the power of single clips differs by several dB between two equally good encodings.
    added_db = 10 * np.log10(sum(map(noise_power, short)) / sum(map(noise_power, full)))
    assert added_db == pytest.approx(0, abs=0.7)
