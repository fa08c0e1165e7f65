"""A heart beats, each beat pushes, the oscillator answers: a pulse wave whose truth is known.

    rate(t) = mean · (1 + breathing + noise) + drift → beats → one push per beat → damped oscillator
            → systolic wave + reflected (dicrotic) wave

The wave is built on a fine clock from before its first moment to after its last, so it starts in full
swing and can be read at any times (`Pulse.at`), also on the irregular clock of a camera.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ArgumentError
from ..types import BoolArray, FloatArray
from .oscillator import Oscillator, convolve, positive

INTERNAL_FPS = 240.0
MARGIN_S = 4.0  # built beyond both ends of what was asked for, or four beats if that is longer
_RATE_FPS = 16.0  # the rate changes slowly: its own, coarse clock
_REFERENCE_INTERVAL_S = 0.85  # the beat interval at which the times of one beat hold
_ACCEPTED: dict[str, tuple[float, float]] = {
    "bpm": (30, 250), "rsa": (0, 0.4), "hrv_s": (0, 0.3), "drift_bpm": (0, 60), "ectopic_rate": (0, 0.5),
    "breathing_hz": (0.03, 1.5), "breathing_jitter": (0, 0.5), "breathing_strength": (0, 0.9),
    "upstroke_s": (0.05, 0.3), "damping": (0.4, 1.5), "push_s": (0.02, 0.3),
    "dicrotic": (0, 0.9), "dicrotic_delay_s": (0.1, 0.6),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PulseConfig:
    """How a heart beats and what one beat looks like.

    The times of one beat hold at an interval of 0.85 s and scale with the square root of the interval: a
    fast heart also pushes faster.
    """

    bpm: float = 72.0  # mean rate
    rsa: float = 0.04  # respiratory sinus arrhythmia: peak change of the rate, as a fraction of it
    hrv_s: float = 0.015  # standard deviation of the beat intervals, apart from breathing (1/f noise)
    drift_bpm: float = 1.0  # standard deviation of the slow wander of the rate (minutes)
    ectopic_rate: float = 0.0  # probability that a beat comes too early, followed by a pause
    breathing_hz: float = 0.25
    breathing_jitter: float = 0.1  # how irregular breathing is, as a fraction of its frequency
    breathing_strength: float = 0.08  # peak change of the beats' strength by breathing, a fraction
    upstroke_s: float = 0.14  # foot to systolic peak of one push
    damping: float = 1.0  # ζ = α/2ω of the vessel: below 1 it rings, above 1 it creeps
    push_s: float = 0.08  # how long the heart pushes
    dicrotic: float = 0.35  # strength of the reflected wave, as a fraction of the push
    dicrotic_delay_s: float = 0.27  # how late it arrives after the push

    def __post_init__(self) -> None:
        for name, (low, high) in _ACCEPTED.items():
            value = getattr(self, name)
            if not (isinstance(value, (int, float, np.number)) and low <= value <= high):
                raise ArgumentError(name, value, f"{low:g} to {high:g}")

    @property
    def pace(self) -> float:
        """By how much the times of one beat are stretched at the mean rate."""
        return math.sqrt(60 / self.bpm / _REFERENCE_INTERVAL_S)

    def with_random_shape(self, rng: np.random.Generator) -> PulseConfig:
        """The same heart in another person: upstroke, damping, reflected wave and breathing redrawn."""
        return replace(
            self,
            upstroke_s=rng.uniform(0.12, 0.2),
            damping=rng.uniform(0.7, 1.4),
            push_s=rng.uniform(0.05, 0.11),
            dicrotic=rng.uniform(0.1, 0.4),
            dicrotic_delay_s=rng.uniform(0.2, 0.32),
            breathing_strength=rng.uniform(0.0, 0.2),
            breathing_jitter=rng.uniform(0.03, 0.2),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Pulse:
    """A pulse wave and the truth behind it."""

    t_s: FloatArray  # (T,)
    values: FloatArray  # (T,) zero mean, a typical beat is 1 high, upstroke positive
    beat_times_s: FloatArray  # (N,) when each push begins: the foot of the wave
    bpm: FloatArray  # (T,) 60 / the beat interval in which the moment lies; its integral counts beats
    breathing: FloatArray  # (T,) −1 … 1, inhaling is up
    dense: FloatArray  # the same wave on the internal clock
    dense_start_s: float

    def at(self, t_s: FloatArray) -> FloatArray:
        """The wave at any times between its start and end (and a little beyond)."""
        times = np.asarray(t_s, dtype=np.float64)
        grid_end_s = self.dense_start_s + (len(self.dense) - 1) / INTERNAL_FPS
        if times.size and not (times.min() >= self.dense_start_s and times.max() <= grid_end_s):
            raise ArgumentError(
                "t_s", f"{times.min():g} … {times.max():g} s", f"{self.dense_start_s:g} … {grid_end_s:g} s"
            )
        position = (times - self.dense_start_s) * INTERNAL_FPS
        below = np.minimum(position.astype(np.int64), len(self.dense) - 2)
        weight = position - below
        values: FloatArray = (1 - weight) * self.dense[below] + weight * self.dense[below + 1]
        return values


def pulse_wave(config: PulseConfig, duration_s: float, fps: float, rng: np.random.Generator) -> Pulse:
    """Make `duration_s` seconds of pulse at `fps`; the same generator state gives the same pulse."""
    frames = round(positive("duration_s", duration_s, "s") * positive("fps", fps, "frames per second"))
    if frames < 1:
        raise ArgumentError("duration_s", f"{duration_s:g} s at {fps:g} fps", "at least one frame")
    t_s = np.arange(frames) / fps
    margin_s = max(MARGIN_S, 4 * 60 / config.bpm)
    start_s, end_s = -margin_s, max(float(t_s[-1]), duration_s) + margin_s

    clock_s = np.arange(math.ceil((end_s - start_s + 2) * _RATE_FPS)) / _RATE_FPS + start_s
    breathing = _breathing(config, len(clock_s), rng)
    beats_s, early = _beats(config, clock_s, breathing, rng)
    strength = _strength(config, beats_s, early, np.interp(beats_s, clock_s, breathing))
    dense = _wave(config, beats_s, strength, start_s, end_s)

    pulse = Pulse(
        t_s=t_s,
        values=np.empty(0),
        beat_times_s=beats_s[(beats_s >= 0) & (beats_s < duration_s)],
        bpm=_rate_at(t_s, beats_s),
        breathing=np.interp(t_s, clock_s, breathing),
        dense=dense,
        dense_start_s=start_s,
    )
    values = pulse.at(t_s)
    offset, scale = float(values.mean()), _typical_height(dense, beats_s, start_s)
    return replace(pulse, values=(values - offset) / scale, dense=(dense - offset) / scale)


def _noise(rng: np.random.Generator, count: int, low_hz: float, high_hz: float, slope: float) -> FloatArray:
    """Unit-variance noise on the rate clock with power ∝ 1/f^slope between two frequencies."""
    size = max(1 << (count - 1).bit_length(), int(_RATE_FPS / low_hz))
    frequency = np.fft.rfftfreq(size, 1 / _RATE_FPS)
    band = (frequency >= low_hz) & (frequency <= high_hz)
    spectrum = np.zeros(len(frequency), dtype=np.complex128)
    draw = rng.standard_normal((2, int(band.sum())))
    power = frequency[band] ** -slope
    spectrum[band] = np.sqrt(power / (4 * power.sum())) * (draw[0] + 1j * draw[1]) * size
    noise: FloatArray = np.fft.irfft(spectrum, size)
    return noise[:count]


def _breathing(config: PulseConfig, count: int, rng: np.random.Generator) -> FloatArray:
    wander = np.clip(1 + config.breathing_jitter * _noise(rng, count, 0.01, 0.1, 0), 0.3, 2)
    phase = 2 * np.pi * np.cumsum(config.breathing_hz * wander) / _RATE_FPS
    return np.sin(phase + rng.uniform(0, 2 * np.pi))


def _beats(
    config: PulseConfig, clock_s: FloatArray, breathing: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, BoolArray]:
    """Beat times over the whole clock, and which of them (True) came too early.

    Integral pulse frequency modulation: a beat falls wherever the integral of the rate passes a whole
    number. A premature ectopic beat leaves the next beat where it was: the compensatory pause.
    """
    mean_hz = config.bpm / 60
    change = config.rsa * breathing + config.hrv_s * mean_hz * _noise(rng, len(clock_s), 0.02, 0.4, 1)
    change = change + config.drift_bpm / config.bpm * _noise(rng, len(clock_s), 0.002, 0.02, 1)
    rate_hz = mean_hz * np.clip(1 + change, 0.5, 2)
    count = np.concatenate([[0.0], np.cumsum((rate_hz[1:] + rate_hz[:-1]) / (2 * _RATE_FPS))])
    offset = rng.uniform()
    beats_s = np.interp(np.arange(math.floor(count[-1] - offset) + 1) + offset, count, clock_s)

    early = rng.uniform(size=len(beats_s)) < config.ectopic_rate
    early[:1] = early[-1:] = False
    early[1:] &= ~early[:-1]  # two in a row would swallow the pause
    advance = rng.uniform(0.25, 0.45, size=len(beats_s))
    interval_s = np.diff(beats_s, prepend=beats_s[0] - 1 / rate_hz[0])
    return beats_s - early * advance * interval_s, early


def _strength(
    config: PulseConfig, beats_s: FloatArray, early: BoolArray, breathing: FloatArray
) -> FloatArray:
    """How hard each beat pushes: breathing modulates it, and a heart fills in proportion to its pause."""
    interval_s = np.diff(beats_s, prepend=2 * beats_s[0] - beats_s[1])
    previous_s = np.concatenate([interval_s[:1], interval_s[:-1]])
    after_early = np.concatenate([[False], early[:-1]])
    filling = np.where(early, (interval_s / previous_s) ** 1.5, 1.0) * np.where(after_early, 1.15, 1.0)
    return filling * (1 - config.breathing_strength * breathing)


def _wave(
    config: PulseConfig, beats_s: FloatArray, strength: FloatArray, start_s: float, end_s: float
) -> FloatArray:
    """Push the oscillator once per beat, and once more, weaker, when the reflected wave arrives."""
    samples = math.ceil((end_s - start_s) * INTERNAL_FPS) + 1
    interval_s = np.diff(beats_s, append=2 * beats_s[-1] - beats_s[-2])
    delay_s = config.dicrotic_delay_s * np.sqrt(interval_s / _REFERENCE_INTERVAL_S)
    push_s = config.push_s * config.pace
    reflected = strength * config.dicrotic * min(config.pace, 1)  # a fast heart leaves it no room
    force = _pushes(beats_s, strength, push_s, start_s, samples)
    force += _pushes(beats_s + delay_s, reflected, push_s, start_s, samples)
    memory = min(samples, math.ceil(-start_s * INTERNAL_FPS))
    return convolve(vessel_oscillator(config).kernel(memory), force)


def vessel_oscillator(config: PulseConfig) -> Oscillator:
    """The oscillator whose answer to a push peaks `upstroke_s` (at this pace) after the foot."""
    rise_s = config.pace * max(
        config.upstroke_s - config.push_s / 2, 0.02
    )  # the middle of the push to the peak
    zeta = config.damping
    if abs(zeta - 1) < 1e-6:
        omega = 1 / rise_s
    elif zeta < 1:
        omega = math.acos(zeta) / math.sqrt(1 - zeta**2) / rise_s
    else:
        omega = math.acosh(zeta) / math.sqrt(zeta**2 - 1) / rise_s
    return Oscillator(alpha=2 * zeta * omega, omega=omega, dt_s=1 / INTERNAL_FPS)


def _pushes(
    times_s: FloatArray, strength: FloatArray, width_s: float, start_s: float, samples: int
) -> FloatArray:
    """One raised-cosine push per time, placed between samples where it belongs."""
    first = np.ceil((times_s - start_s) * INTERNAL_FPS).astype(np.int64)  # (N,)
    index = first[:, None] + np.arange(math.ceil(width_s * INTERNAL_FPS))  # (N,W)
    phase = (index / INTERNAL_FPS + start_s - times_s[:, None]) / width_s
    push = np.where(phase < 1, 1 - np.cos(2 * np.pi * phase), 0) * (strength / width_s)[:, None]
    inside = (index >= 0) & (index < samples)
    return np.bincount(index[inside], push[inside], minlength=samples).astype(np.float64)


def _rate_at(t_s: FloatArray, beats_s: FloatArray) -> FloatArray:
    interval = np.searchsorted(beats_s, t_s, side="right")
    return 60 / np.diff(beats_s)[np.clip(interval - 1, 0, len(beats_s) - 2)]


def _typical_height(dense: FloatArray, beats_s: FloatArray, start_s: float) -> float:
    """Median over the beats of highest minus lowest value, so that odd beats do not set the scale."""
    index = ((beats_s - start_s) * INTERNAL_FPS).astype(np.int64)
    settled = MARGIN_S / 2 * INTERNAL_FPS
    index = index[(index > settled) & (index < len(dense))]
    inner = dense[: index[-1]]
    height = np.maximum.reduceat(inner, index[:-1]) - np.minimum.reduceat(inner, index[:-1])
    return float(np.median(height))
