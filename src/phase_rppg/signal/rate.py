"""How fast the heart beats: spectrum, interpolated peak, beats, and the field's own convention.

The peak is refined by least squares of a tone with its first harmonic and a straight drift, so a clean tone
comes back exactly, whatever its phase and however few cycles were seen; a zero-padded spectrum alone is off
by up to several bpm on short windows, because the tone at −f leaks into the one at +f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import BoolArray, ComplexArray, FloatArray, Waveform
from . import filters
from .constants import BAND_HZ, TOOLBOX_BAND_HZ, TOOLBOX_DETREND
from .resample import bridge

# A pulse rises faster than it falls: so strong is its first harmonic, and so far it leads its line (radians).
SHAPE_RATIO, SHAPE_PHASE = 0.4, 1.6
# Hearts are rarely near the ends of the band, noise is strongest at its low end: a broad log-normal weight.
TYPICAL_BPM, TYPICAL_SPREAD = 90.0, 0.5
MIN_CYCLES = 3.0  # fewer cycles than this do not make a rate
_PADDED_STEP_HZ = 0.5 / 60  # the padded spectrum is at least this fine
_LINE_HALF_WIDTH_HZ = 0.1  # de Haan and Jeanne's definition of the line, for long windows
_TURNS: FloatArray = np.linspace(-np.pi / 2, np.pi / 2, 37)  # ways to lay the shape over line and harmonic


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """Tones of a window over frequency, on a uniform grid that starts at 0 Hz."""

    hz: FloatArray  # (F,)
    tone: ComplexArray  # (F,) amplitude at that frequency, and the phase in the middle of the window
    power: FloatArray  # (F,) |tone|²
    duration_s: float  # of the valid part of the window

    @property
    def band(self) -> BoolArray:
        return np.asarray((self.hz >= BAND_HZ[0]) & (self.hz <= BAND_HZ[1]))

    def at(self, hz: FloatArray | float) -> FloatArray:
        """Power at any frequency; nothing beyond the end of the spectrum."""
        return np.asarray(np.interp(hz, self.hz, self.power, right=0.0))

    def evidence(self, hz: FloatArray) -> FloatArray:
        """Power of an upright pulse at `hz`, as far as line and first harmonic have its shape; times the
        prior.

        A harmonic that is in step with its line speaks for the line, even if it is the stronger of the two.
        What noise leaves at half of the true rate is in step with nothing.
        """
        hz = np.asarray(hz)
        line, harmonic = self._tone_at(hz), self._tone_at(2 * hz)
        off = np.angle(harmonic) - 2 * np.angle(line) - SHAPE_PHASE
        fits = np.abs(line)[..., None] * np.cos(_TURNS) + SHAPE_RATIO * np.abs(harmonic)[..., None] * np.cos(
            off[..., None] - 2 * _TURNS
        )
        return prior(hz) * fits.max(-1) ** 2 / (1 + SHAPE_RATIO**2)

    def line_mask(self, hz: float) -> BoolArray:
        """Which frequencies belong to the line at `hz`: ±0.1 Hz, or the width that a short window has."""
        half_hz = max(_LINE_HALF_WIDTH_HZ, 1.5 / max(self.duration_s, 1e-9))
        return np.asarray(np.abs(self.hz - hz) <= half_hz)

    def _tone_at(self, hz: FloatArray) -> ComplexArray:
        return np.asarray(np.interp(hz, self.hz, self.tone, right=0.0))


@dataclass(frozen=True, slots=True)
class Peak:
    """A line in the spectrum that may be the pulse."""

    bpm: float
    power: float  # 0–1: share of the band's power within the line
    snr_db: float  # line and first harmonic over the rest of the band
    sigma_bpm: float  # spread of the rate that the noise beside the line explains


def prior(hz: FloatArray) -> FloatArray:
    """How plausible a rate is before anything was seen: 1 at 90 bpm, a quarter at the ends of the band."""
    distance = np.log(np.maximum(hz, 1e-3) * 60 / TYPICAL_BPM) / TYPICAL_SPREAD
    return np.exp(-0.5 * distance**2)


def spectrum(
    values: FloatArray | Waveform, fps: float | None = None, valid: BoolArray | None = None
) -> Spectrum:
    """Hann-windowed, drift-free, finely padded power spectrum of a window."""
    x, fps, weights = _windowed(values, fps, valid)
    size = filters.fast_length(max(2 * len(x), int(np.ceil(fps / _PADDED_STEP_HZ))))
    transform = np.fft.rfft(x * weights, size)
    total = weights.sum()
    hz = np.fft.rfftfreq(size, 1 / fps)
    middle_s = (len(x) - 1) / 2 / fps
    tone = transform * np.exp(2j * np.pi * hz * middle_s) * (2 / total if total > 0 else 0.0)
    return Spectrum(hz, tone, np.abs(tone) ** 2, 2 * float(total) / fps)


def phasor(values: FloatArray, fps: float, bpm: float, valid: BoolArray | None = None) -> complex:
    """Amplitude and phase of the tone at `bpm`, Hann-weighted: |phasor|² is the spectrum's power there."""
    x, fps, weights = _windowed(values, fps, valid)
    total = float(weights.sum())
    turns = np.exp(-2j * np.pi * bpm / 60 * np.arange(len(x)) / fps)
    return complex((x * weights) @ turns * 2 / total) if total > 0 else 0j


def spectral_peak(
    values: FloatArray | Waveform,
    fps: float | None = None,
    valid: BoolArray | None = None,
    *,
    near_bpm: float | None = None,
    within_bpm: float = 6.0,
) -> Peak | None:
    """The strongest line of the band, interpolated; None when there is nothing (flat, or too few cycles).

    With `near_bpm` only lines within `within_bpm` of it are considered.
    """
    spec = spectrum(values, fps, valid)
    candidates = spec.band
    if near_bpm is not None:
        near = np.abs(spec.hz - near_bpm / 60) <= within_bpm / 60
        candidates = candidates & near if (candidates & near).any() else candidates
    if not candidates.any() or spec.power[spec.band].max() <= _nothing(values):
        return None
    candidates_hz = spec.hz[candidates]
    coarse_hz = float(candidates_hz[int(np.argmax(spec.evidence(candidates_hz)))])
    if coarse_hz * spec.duration_s < MIN_CYCLES:
        return None
    x, rate_hz, weights = _windowed(values, fps, valid)
    hz, sigma_hz = _refine(x, rate_hz, weights, coarse_hz, spec.duration_s)
    share, snr_db = line_share(spec, hz)
    return Peak(60 * hz, share, snr_db, 60 * sigma_hz)


def joint_bpm(peaks: Sequence[Peak]) -> float:
    """The rate of one heart in several waves: the mean, each peak weighted by 1/σ²."""
    weights = np.array([1 / max(peak.sigma_bpm, 1e-6) ** 2 for peak in peaks])
    return float(weights @ [peak.bpm for peak in peaks] / weights.sum())


def spectral_bpm(wave: FloatArray | Waveform, fps: float | None = None) -> float:
    """The rate of the strongest line, or an error when there is none."""
    peak = spectral_peak(wave, fps)
    if peak is None:
        raise ArgumentError(
            "wave", "a flat or too short signal", f"at least {MIN_CYCLES:.0f} cycles of a pulse"
        )
    return peak.bpm


def line_share(spec: Spectrum, hz: float) -> tuple[float, float]:
    """(share of the band within the line, SNR in dB of line plus harmonic over the rest of the band)."""
    in_band = spec.band
    power = spec.power
    line = spec.line_mask(hz) & in_band
    harmonic = spec.line_mask(2 * hz)
    signal = float(power[line | harmonic].sum())
    rest = float(power[in_band & ~line & ~harmonic].sum())
    total = float(power[in_band].sum())
    share = float(power[line].sum()) / total if total > 0 else 0.0
    floor = 1e-6 * (signal + rest) + 1e-300  # SNR is finite: ±60 dB
    return share, float(10 * np.log10(max(signal, floor) / max(rest, floor)))


def toolbox_bpm(
    wave: FloatArray | Waveform,
    fps: float | None = None,
    *,
    band_hz: tuple[float, float] = TOOLBOX_BAND_HZ,
    difference: bool = False,
) -> float:
    """The rate by the convention of the field's toolboxes, for comparison: it snaps to bins of several bpm.

    Cumulative sum if the label is a difference, smoothness-priors detrend (λ=100), first-order Butterworth
    forwards and backwards, periodogram padded to the next power of two, largest bin within the band.
    """
    values, fps, _ = _unpack(wave, fps, None)
    if difference:
        values = np.cumsum(values)
    values = filters.butterworth(filters.detrend(values, TOOLBOX_DETREND), fps, *band_hz, order=1)
    size = 1 << max(len(values) - 1, 0).bit_length()
    hz = np.fft.rfftfreq(size, 1 / fps)
    power = np.abs(np.fft.rfft(values, size)) ** 2
    inside = (hz >= band_hz[0]) & (hz <= band_hz[1])
    return float(60 * hz[inside][np.argmax(power[inside])])


def find_beats(wave: Waveform, bpm: float | FloatArray | None = None) -> FloatArray:
    """Times of the systolic peaks, between samples; `bpm` is the rate, or the rate at each sample, if known.

    Beats in invalid stretches are not reported.
    """
    n = len(wave.values)
    if bpm is None:
        peak = spectral_peak(wave)
        if peak is None:
            return np.zeros(0)
        bpm = peak.bpm
    local_hz = np.broadcast_to(np.asarray(bpm, float) / 60, (n,))
    nyquist = wave.fps / 2
    low, high = 0.6 * float(local_hz.min()), min(2.3 * float(local_hz.max()), 0.95 * nyquist)
    if n < 3 or low >= high:
        return np.zeros(0)
    x = filters.bandpass(bridge(wave.values, wave.valid), wave.fps, low, high, order=2)
    top = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:]) & (x[1:-1] > 0)) + 1
    chosen: list[int] = []
    for i in top:  # of two maxima closer than 0.55 of a period the higher one stays
        if chosen and i - chosen[-1] < 0.55 * wave.fps / local_hz[i]:
            if x[i] > x[chosen[-1]]:
                chosen[-1] = int(i)
        else:
            chosen.append(int(i))
    at = np.asarray([i for i in chosen if wave.valid[i]], dtype=np.int64)
    if len(at) == 0:
        return np.zeros(0)
    left, middle, right = x[at - 1], x[at], x[at + 1]
    bend = left - 2 * middle + right
    shift = np.divide(0.5 * (left - right), bend, out=np.zeros(len(at)), where=bend < 0)
    return wave.start_s + (at + shift) / wave.fps


def beat_bpm(beat_times_s: FloatArray) -> float | None:
    """The rate from beats: the median interval, unmoved by single missed or extra beats."""
    if len(beat_times_s) < 3:
        return None
    return float(60 / np.median(np.diff(beat_times_s)))


def _refine(
    x: FloatArray, fps: float, weights: FloatArray, coarse_hz: float, duration_s: float
) -> tuple[float, float]:
    """Maximise the power that a tone with harmonic and drift explains; returns (hz, sigma_hz)."""
    count = len(x)
    t = (np.arange(count) - (count - 1) / 2) / fps
    used = weights > 0
    t, x, w = t[used], x[used], weights[used]
    drift = np.stack([np.ones(len(t)), t / max(duration_s, 1e-9)], 1)
    energy = float(w @ x**2)

    def explained(hz: float) -> float:
        tones = [hz, 2 * hz] if 2 * hz < 0.9 * fps / 2 else [hz]
        angle = 2 * np.pi * np.outer(t, tones)
        basis = np.concatenate([drift, np.cos(angle), np.sin(angle)], 1)  # (N,4) or (N,6)
        weighted = basis * w[:, None]
        gram = basis.T @ weighted
        gram[np.diag_indices_from(gram)] *= 1 + 1e-9
        right = weighted.T @ x
        return float(right @ np.linalg.solve(gram, right))

    hz, step_hz = coarse_hz, 0.2 / duration_s
    for _ in range(6):  # climb to the local maximum first
        values = {k: explained(hz + k * step_hz) for k in (-1, 0, 1)}
        best = max(values, key=lambda k: values[k])
        if best == 0:
            break
        if abs(hz + best * step_hz - coarse_hz) > 1 / duration_s:
            break
        hz += best * step_hz
    sigma_hz = 0.5 / duration_s
    for _ in range(12):  # then parabolas on a shrinking stencil
        left, middle, right = explained(hz - step_hz), explained(hz), explained(hz + step_hz)
        bend = left - 2 * middle + right
        if bend < 0:
            hz += float(np.clip(0.5 * (left - right) / bend, -1, 1)) * step_hz
            noise = max(energy - middle, 1e-12 * energy) / max(len(t) - 6, 1)
            sigma_hz = min(sigma_hz, float(np.sqrt(2 * noise * step_hz**2 / -bend)))
        step_hz *= 0.15  # each parabola leaves an error far below its stencil
        if step_hz < 1e-4:
            break
    return hz, sigma_hz


def _windowed(
    values: FloatArray | Waveform, fps: float | None, valid: BoolArray | None
) -> tuple[FloatArray, float, FloatArray]:
    """(drift-free values, fps, Hann weights that are zero where invalid)."""
    x, fps, seen = _unpack(values, fps, valid)
    count = len(x)
    hann = np.sin(np.pi * (np.arange(count) + 0.5) / max(count, 1)) ** 2
    weights = hann * seen
    return filters.remove_line(np.where(seen, x, 0.0), weights), fps, weights


def _unpack(
    values: FloatArray | Waveform, fps: float | None, valid: BoolArray | None
) -> tuple[FloatArray, float, BoolArray]:
    if isinstance(values, Waveform):
        return np.asarray(values.values, float), values.fps, values.valid
    x = np.asarray(values, float)
    if x.ndim != 1 or fps is None or fps <= 0:
        raise ArgumentError("values, fps", (x.shape, fps), "a signal (T,) and its frame rate, or a Waveform")
    return x, fps, np.ones(len(x), bool) if valid is None else np.asarray(valid, bool)


def _nothing(values: FloatArray | Waveform) -> float:
    """Power below this is rounding, not signal."""
    x = values.values if isinstance(values, Waveform) else np.asarray(values, float)
    return float(1e-24 * (1e-300 + np.max(np.abs(x), initial=0.0) ** 2))
