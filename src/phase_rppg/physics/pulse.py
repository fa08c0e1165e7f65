"""Generate a pulse wave with known beats: each beat is a force on the damped oscillator.

    rate(t) = mean · (1 + breathing + noise) + drift + step → beats → one force per beat → damped oscillator
            → systolic wave + reflected (dicrotic) wave

The wave is computed on a fine clock that extends beyond both ends, so that it starts in its steady state and
can be interpolated at any times (`Pulse.at`), for example at the timestamps of a camera.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ArgumentError
from ..types import BoolArray, FloatArray
from .oscillator import Oscillator, convolve, positive

INTERNAL_FPS = 240.0
MARGIN_S = 4.0  # computed beyond both ends, or four beats if that is longer
STEP_DURATION_S = 2.0
SHORTEST_INTERVAL_S = 0.25  # refractory period: an irregular beat is not earlier than this
_RATE_FPS = 16.0  # clock of the rate, which changes slowly
_REFERENCE_INTERVAL_S = 0.85  # the beat interval to which the times of PulseConfig refer
_ACCEPTED: dict[str, tuple[float, float]] = {
    "bpm": (30, 250), "rsa": (0, 0.4), "hrv_s": (0, 0.3), "drift_bpm": (0, 60), "ectopic_rate": (0, 0.5),
    "breathing_hz": (0.03, 1.5), "breathing_jitter": (0, 0.5), "breathing_strength": (0, 0.9),
    "upstroke_s": (0.05, 0.3), "damping": (0.4, 1.5), "push_s": (0.02, 0.3),
    "dicrotic": (0, 0.9), "dicrotic_delay_s": (0.1, 0.6), "irregular": (0, 0.5), "step_factor": (0.3, 3),
    "step_s": (0, 86_400),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PulseConfig:
    """The statistics of the beats and the shape of one beat.

    The times of one beat refer to an interval of 0.85 s and scale with the square root of the interval.
    """

    bpm: float = 72.0  # mean rate
    rsa: float = 0.04  # respiratory sinus arrhythmia: peak change of the rate, as a fraction of it
    hrv_s: float = 0.015  # standard deviation of the beat intervals, apart from breathing (1/f noise)
    drift_bpm: float = 1.0  # standard deviation of the slow drift of the rate (minutes)
    ectopic_rate: float = 0.0  # probability of a premature beat with a compensatory pause
    breathing_hz: float = 0.25
    breathing_jitter: float = 0.1  # standard deviation of the breathing frequency, as a fraction of it
    breathing_strength: float = 0.08  # peak change of the beat amplitude by breathing, as a fraction
    upstroke_s: float = 0.14  # foot to systolic peak of one beat
    damping: float = 1.0  # ζ = α/2ω of the vessel: underdamped below 1, overdamped above 1
    push_s: float = 0.08  # duration of the force of one beat
    dicrotic: float = 0.35  # amplitude of the reflected wave, as a fraction of the force
    dicrotic_delay_s: float = 0.27  # delay of the reflected wave
    irregular: float = 0.0  # independent change of each interval, as in atrial fibrillation (log, std)
    step_factor: float = 1.0  # the mean rate is multiplied by this from `step_s` on, within STEP_DURATION_S
    step_s: float = 0.0

    def __post_init__(self) -> None:
        for name, (low, high) in _ACCEPTED.items():
            value = getattr(self, name)
            if not (isinstance(value, (int, float, np.number)) and low <= value <= high):
                raise ArgumentError(name, value, f"{low:g} to {high:g}")
        low, high = _ACCEPTED["bpm"]
        if not low <= self.bpm * self.step_factor <= high:
            raise ArgumentError("step_factor", self.step_factor, f"{low:g} to {high:g} bpm after it")

    @property
    def pace(self) -> float:
        """The factor by which the times of one beat are scaled at the mean rate."""
        return math.sqrt(60 / self.bpm / _REFERENCE_INTERVAL_S)

    def with_random_shape(self, rng: np.random.Generator) -> PulseConfig:
        """Return the same beats with a random shape: upstroke, damping, reflected wave and breathing."""
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
    """A pulse wave with its beats, rate and breathing."""

    t_s: FloatArray  # (T,)
    values: FloatArray  # (T,) zero mean, median beat height 1, upstroke positive
    beat_times_s: FloatArray  # (N,) start of each beat: the foot of the wave
    bpm: FloatArray  # (T,) 60 / current beat interval; its integral counts beats
    breathing: FloatArray  # (T,) −1 … 1, inhaling is positive
    dense: FloatArray  # the same wave on the internal clock
    dense_start_s: float

    def at(self, t_s: FloatArray) -> FloatArray:
        """Interpolate the wave at times between its start and end, with a margin."""
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
    """Generate `duration_s` seconds of a pulse at `fps`; equal generator states give equal pulses."""
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
    """Return unit-variance noise on the rate clock with power ∝ 1/f^slope between two frequencies."""
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
    """Return the beat times over the whole clock, and which of them are premature.

    Integral pulse frequency modulation: a beat occurs when the integral of the rate passes an integer. A
    premature ectopic beat does not move the next beat, which gives the compensatory pause.
    """
    mean_hz = config.bpm / 60
    change = config.rsa * breathing + config.hrv_s * mean_hz * _noise(rng, len(clock_s), 0.02, 0.4, 1)
    change = change + config.drift_bpm / config.bpm * _noise(rng, len(clock_s), 0.002, 0.02, 1)
    rate_hz = mean_hz * np.clip(1 + change, 0.5, 2)
    if config.step_factor != 1:
        x = np.clip((clock_s - config.step_s) / STEP_DURATION_S, 0, 1)
        rate_hz *= 1 + (config.step_factor - 1) * x * x * (3 - 2 * x)
    count = np.concatenate([[0.0], np.cumsum((rate_hz[1:] + rate_hz[:-1]) / (2 * _RATE_FPS))])
    offset = rng.uniform()
    beats_s: FloatArray = np.interp(np.arange(math.floor(count[-1] - offset) + 1) + offset, count, clock_s)
    if config.irregular > 0:
        beats_s = _irregular(beats_s, config.irregular, rng)

    early = rng.uniform(size=len(beats_s)) < config.ectopic_rate
    early[:1] = early[-1:] = False
    early[1:] &= ~early[:-1]  # two in a row would have no pause
    advance = rng.uniform(0.25, 0.45, size=len(beats_s))
    interval_s = np.diff(beats_s, prepend=beats_s[0] - 1 / rate_hz[0])
    return beats_s - early * advance * interval_s, early


def _irregular(beats_s: FloatArray, spread: float, rng: np.random.Generator) -> FloatArray:
    """Change every interval independently; the first and the last beat keep their times."""
    interval_s = np.diff(beats_s) * np.exp(spread * rng.standard_normal(len(beats_s) - 1))
    interval_s = np.maximum(interval_s, SHORTEST_INTERVAL_S)
    interval_s *= (beats_s[-1] - beats_s[0]) / interval_s.sum()
    return np.concatenate([beats_s[:1], beats_s[0] + np.cumsum(interval_s)])


def _strength(
    config: PulseConfig, beats_s: FloatArray, early: BoolArray, breathing: FloatArray
) -> FloatArray:
    """Return the strength of each beat, modulated by breathing and by the filling time before it."""
    interval_s = np.diff(beats_s, prepend=2 * beats_s[0] - beats_s[1])
    previous_s = np.concatenate([interval_s[:1], interval_s[:-1]])
    after_early = np.concatenate([[False], early[:-1]])
    filling = np.where(early, (interval_s / previous_s) ** 1.5, 1.0) * np.where(after_early, 1.15, 1.0)
    if config.irregular > 0:  # a shorter interval fills the heart less
        filling = filling * np.clip(interval_s / np.median(interval_s), 0.3, 1.5)
    return filling * (1 - config.breathing_strength * breathing)


def _wave(
    config: PulseConfig, beats_s: FloatArray, strength: FloatArray, start_s: float, end_s: float
) -> FloatArray:
    """Return the response of the oscillator to one force per beat and one for its reflected wave."""
    samples = math.ceil((end_s - start_s) * INTERNAL_FPS) + 1
    interval_s = np.diff(beats_s, append=2 * beats_s[-1] - beats_s[-2])
    delay_s = config.dicrotic_delay_s * np.sqrt(interval_s / _REFERENCE_INTERVAL_S)
    push_s = config.push_s * config.pace
    reflected = strength * config.dicrotic * min(config.pace, 1)  # weaker at high rates
    force = _pushes(beats_s, strength, push_s, start_s, samples)
    force += _pushes(beats_s + delay_s, reflected, push_s, start_s, samples)
    memory = min(samples, math.ceil(-start_s * INTERNAL_FPS))
    return convolve(vessel_oscillator(config).kernel(memory), force)


def vessel_oscillator(config: PulseConfig) -> Oscillator:
    """Return the oscillator whose response peaks `upstroke_s`, scaled by `pace`, after the foot."""
    rise_s = config.pace * max(
        config.upstroke_s - config.push_s / 2, 0.02
    )  # from the middle of the force to the peak
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
    """Return one raised-cosine force per time, with sub-sample positions."""
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
    """Return the median over the beats of maximum minus minimum, which ignores irregular beats."""
    index = ((beats_s - start_s) * INTERNAL_FPS).astype(np.int64)
    settled = MARGIN_S / 2 * INTERNAL_FPS
    index = index[(index > settled) & (index < len(dense))]
    inner = dense[: index[-1]]
    height = np.maximum.reduceat(inner, index[:-1]) - np.minimum.reduceat(inner, index[:-1])
    return float(np.median(height))
