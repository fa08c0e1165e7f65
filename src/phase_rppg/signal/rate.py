"""The rate estimator: spectrum, interpolated peak, beats, and the convention of rPPG toolboxes.

Least squares refines the peak with a sine, its second harmonic and a linear trend. The rate of a noise-free
sine is then exact for any phase and for few cycles. The maximum of a zero-padded spectrum has errors of
several bpm in short windows, because the component at −f leaks into the one at +f.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..errors import ArgumentError
from ..types import BoolArray, ComplexArray, FloatArray, Waveform
from . import filters
from .constants import BAND_HZ, TOOLBOX_BAND_HZ, TOOLBOX_DETREND
from .resample import interpolate_invalid

# A pulse rises faster than it falls: relative amplitude and phase lead (radians) of its second harmonic.
SHAPE_RATIO, SHAPE_PHASE = 0.4, 1.6
# Log-normal prior: heart rates are rare at the ends of the band, and noise is strongest at its low end.
TYPICAL_BPM, TYPICAL_SPREAD = 90.0, 0.5
MIN_CYCLES = 3.0  # fewer cycles give no reliable rate
_PADDED_STEP_HZ = 0.5 / 60  # largest bin width of the zero-padded spectrum
_LINE_HALF_WIDTH_HZ = 0.1  # of a spectral line in long windows, after de Haan and Jeanne
_REPEATING = (0.9, 3.3)  # frequencies that `subharmonic_excess` compares, in multiples of the rate
_EDGE_HZ = 1e-9  # rounding of frequencies at the ends of that range
_LONGEST_LAG_S, _LONGEST_LAG = 1.6, 0.5  # longest lag of the autocorrelation: in seconds, and of the signal
_LEAST_TRIPLE = 2.9  # lowest rate whose third may be a rate, in multiples of the lowest rate
_PHASES: FloatArray = np.linspace(-np.pi / 2, np.pi / 2, 37)  # time shifts at which the shape is compared
_SHIFTS: FloatArray = np.stack([np.cos(_PHASES), np.cos(2 * _PHASES), np.sin(2 * _PHASES)])  # (3,37)


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The spectrum of a window on a uniform frequency grid that starts at 0 Hz."""

    hz: FloatArray  # (F,)
    tone: ComplexArray  # (F,) complex amplitude; the phase refers to the middle of the window
    power: FloatArray  # (F,) |tone|²
    duration_s: float  # of the valid part of the window

    @property
    def band(self) -> BoolArray:
        """Return which frequencies are in BAND_HZ."""
        return np.asarray((self.hz >= BAND_HZ[0]) & (self.hz <= BAND_HZ[1]))

    def at(self, hz: FloatArray | float) -> FloatArray:
        """Return the interpolated power at any frequency, 0 above the Nyquist frequency."""
        return np.asarray(np.interp(hz, self.hz, self.power, right=0.0))

    def evidence(self, hz: FloatArray) -> FloatArray:
        """Return the evidence for a pulse at `hz`: power that matches the pulse shape, times the prior.

        A second harmonic with the phase of the pulse shape adds to the evidence, even if it is stronger than
        the fundamental. Noise at half the true rate has no such phase relation.
        """
        hz = np.asarray(hz)
        fundamental, harmonic = self._tone_at(hz), self._tone_at(2 * hz)
        phase_error = np.angle(harmonic) - 2 * np.angle(fundamental) - SHAPE_PHASE
        second = SHAPE_RATIO * np.abs(harmonic)
        # |f|·cos p + r·|h|·cos(e − 2p) for all shifts p is one product, because
        # cos(e − 2p) = cos e·cos 2p + sin e·sin 2p.
        parts = [np.abs(fundamental), second * np.cos(phase_error), second * np.sin(phase_error)]
        match = np.stack(parts, -1) @ _SHIFTS  # (…,37)
        return prior(hz) * match.max(-1) ** 2 / (1 + SHAPE_RATIO**2)

    def subharmonic_excess(self, hz: FloatArray) -> FloatArray:
        """Return how much better a signal repeats after two or three periods of each rate than after one.

        A pulse repeats after one period, which gives about 0. At twice the true rate only every second period
        repeats, which gives 0.3 to 1. Only frequencies from the rate upwards count, because noise at lower
        ones repeats slowly as well. Three periods count where a third of the rate is in the band.
        """
        if self.duration_s <= 0:
            return np.zeros(len(hz))
        # A short signal needs few frequencies for its autocorrelation.
        every = max(int(1 / (float(self.hz[1]) * (self.duration_s + _LONGEST_LAG_S))), 1)
        power = self.power[::every]
        inside, cosines = _repetition_table(float(self.hz[1]) * every, len(power), tuple(hz.tolist()))
        total = np.maximum(inside @ power, 1e-300)
        one, two, three = (
            cosine @ power / (total * _hann_autocorrelation(periods / hz, self.duration_s))
            for periods, cosine in enumerate(cosines, 1)
        )
        longer = np.where(hz >= _LEAST_TRIPLE * BAND_HZ[0], np.maximum(two, three), two)
        return np.clip(longer - one, 0.0, 2.0)

    def line_mask(self, hz: float) -> BoolArray:
        """Return which frequencies belong to the line at `hz`: ±0.1 Hz, or more in short windows."""
        half_hz = max(_LINE_HALF_WIDTH_HZ, 1.5 / max(self.duration_s, 1e-9))
        return np.asarray(np.abs(self.hz - hz) <= half_hz)

    def _tone_at(self, hz: FloatArray) -> ComplexArray:
        return np.asarray(np.interp(hz, self.hz, self.tone, right=0.0))


@dataclass(frozen=True, slots=True)
class Peak:
    """A spectral peak that may be the pulse."""

    bpm: float
    power: float  # 0–1: share of the band's power within the line
    snr_db: float  # line and second harmonic over the rest of the band
    sigma_bpm: float  # standard error of the rate due to the residual noise


@functools.lru_cache(maxsize=16)
def _repetition_table(
    step_hz: float, count: int, rates_hz: tuple[float, ...]
) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Return which frequencies (R,F) `subharmonic_excess` compares, and their cosines at 1 to 3 periods."""
    hz, part_hz = np.array(rates_hz)[:, None], step_hz * np.arange(count)
    low, high = _REPEATING
    inside = ((part_hz >= low * hz - _EDGE_HZ) & (part_hz <= high * hz + _EDGE_HZ)).astype(float)
    return inside, tuple(inside * np.cos(2 * np.pi * periods / hz * part_hz) for periods in (1, 2, 3))


def _hann_autocorrelation(lag_s: FloatArray, duration_s: float) -> FloatArray:
    """Return the autocorrelation of a Hann window, which divides that of a signal (Boersma 1993)."""
    share = np.minimum(lag_s / duration_s, _LONGEST_LAG)
    turn = 2 * np.pi * share
    return np.asarray((1 - share) * (2 + np.cos(turn)) / 3 + np.sin(turn) / (2 * np.pi))


def prior(hz: FloatArray) -> FloatArray:
    """Return the prior weight of a rate: 1 at 90 bpm, about a quarter at the ends of the band."""
    distance = np.log(np.maximum(hz, 1e-3) * 60 / TYPICAL_BPM) / TYPICAL_SPREAD
    return np.exp(-0.5 * distance**2)


def spectrum(
    values: FloatArray | Waveform, fps: float | None = None, valid: BoolArray | None = None
) -> Spectrum:
    """Return the Hann-windowed, zero-padded spectrum of a window without its linear trend."""
    x, fps, usable = _unpack(values, fps, valid)
    return spectra(x[:, None], fps, usable)[0]


def spectra(columns: FloatArray, fps: float, valid: BoolArray | None = None) -> list[Spectrum]:
    """Return the `spectrum` of each column (T,C) of a window; one transform for all is faster."""
    x, weights = _windowed(columns, valid)
    hz, to_middle = _frequencies(len(x), fps)
    total = float(weights.sum())
    weighted = np.ascontiguousarray((x * weights[:, None]).T)  # (C,T)
    tones = np.fft.rfft(weighted, 2 * (len(hz) - 1)) * (to_middle * (2 / total if total > 0 else 0.0))
    return [Spectrum(hz, tone, np.abs(tone) ** 2, 2 * total / fps) for tone in tones]


@lru_cache(maxsize=8)
def _frequencies(count: int, fps: float) -> tuple[FloatArray, ComplexArray]:
    """Return the frequencies of a spectrum of `count` samples, and what refers its phase to their middle."""
    size = filters.fast_length(max(2 * count, int(np.ceil(fps / _PADDED_STEP_HZ))))
    hz = np.fft.rfftfreq(size, 1 / fps)
    to_middle = np.exp(2j * np.pi * hz * ((count - 1) / 2 / fps))
    hz.flags.writeable = to_middle.flags.writeable = False  # shared by all spectra of this length
    return hz, to_middle


def phasor(values: FloatArray, fps: float, bpm: float, valid: BoolArray | None = None) -> complex:
    """Return the Hann-weighted complex amplitude at `bpm`; |phasor|² is the power of the spectrum."""
    x, fps, usable = _unpack(values, fps, valid)
    return complex(phasors(x[:, None], fps, bpm, usable)[0])


def phasors(columns: FloatArray, fps: float, bpm: float, valid: BoolArray | None = None) -> ComplexArray:
    """Return the `phasor` (C,) of each column (T,C)."""
    x, weights = _windowed(columns, valid)
    total = float(weights.sum())
    if total <= 0:
        return np.zeros(x.shape[1], complex)
    rotation = np.exp(-2j * np.pi * bpm / 60 * np.arange(len(x)) / fps)
    return np.asarray((weights * rotation) @ x * (2 / total))


def spectral_peak(
    values: FloatArray | Waveform,
    fps: float | None = None,
    valid: BoolArray | None = None,
    *,
    near_bpm: float | None = None,
    within_bpm: float = 6.0,
    spec: Spectrum | None = None,
) -> Peak | None:
    """Return the interpolated peak with the most evidence; None for a flat signal or too few cycles.

    With `near_bpm`, only peaks within `within_bpm` of it are candidates. `spec` is the spectrum of the
    values, if the caller has it already.
    """
    spec = spectrum(values, fps, valid) if spec is None else spec
    candidates = spec.band
    if near_bpm is not None:
        near = np.abs(spec.hz - near_bpm / 60) <= within_bpm / 60
        candidates = candidates & near if (candidates & near).any() else candidates
    if not candidates.any() or spec.power[spec.band].max() <= _rounding_power(values):
        return None
    candidates_hz = spec.hz[candidates]
    coarse_hz = float(candidates_hz[int(np.argmax(spec.evidence(candidates_hz)))])
    if coarse_hz * spec.duration_s < MIN_CYCLES:
        return None
    x, rate_hz, usable = _unpack(values, fps, valid)
    columns, weights = _windowed(x[:, None], usable)
    hz, sigma_hz = _refine(columns[:, 0], rate_hz, weights, coarse_hz, spec.duration_s)
    share, snr_db = line_share(spec, hz)
    return Peak(60 * hz, share, snr_db, 60 * sigma_hz)


def joint_bpm(peaks: Sequence[Peak]) -> float:
    """Return the common rate of several waveforms of one heart: the mean with weights 1/σ²."""
    weights = np.array([1 / max(peak.sigma_bpm, 1e-6) ** 2 for peak in peaks])
    return float(weights @ [peak.bpm for peak in peaks] / weights.sum())


def spectral_bpm(wave: FloatArray | Waveform, fps: float | None = None) -> float:
    """Return the rate of the strongest peak; raise an error when there is none."""
    peak = spectral_peak(wave, fps)
    if peak is None:
        raise ArgumentError(
            "wave", "a flat or too short signal", f"at least {MIN_CYCLES:.0f} cycles of a pulse"
        )
    return peak.bpm


def line_share(spec: Spectrum, hz: float) -> tuple[float, float]:
    """Return (share of the band power within the line, SNR in dB of line and harmonic to the rest)."""
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
    """Return the rate by the convention of rPPG toolboxes, for comparison with published results.

    The steps are: cumulative sum if the label is a difference, smoothness-priors detrending (λ=100),
    first-order Butterworth forwards and backwards, periodogram padded to the next power of two, largest bin
    within the band. The bins are several bpm wide.
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


def find_beats(
    wave: Waveform,
    bpm: float | FloatArray | None = None,
    *,
    band: tuple[float, float] = (0.6, 2.3),
    shortest: float = 0.55,
) -> FloatArray:
    """Return the times of systolic peaks, interpolated between samples.

    `bpm` is the rate, or the rate at each sample; it is estimated if absent. Beats at invalid samples are
    left out. `band` is the pass band in heart rates, `shortest` the shortest interval in mean intervals.
    """
    n = len(wave.values)
    if bpm is None:
        peak = spectral_peak(wave)
        if peak is None:
            return np.zeros(0)
        bpm = peak.bpm
    local_hz = np.broadcast_to(np.asarray(bpm, float) / 60, (n,))
    nyquist = wave.fps / 2
    low, high = band[0] * float(local_hz.min()), min(band[1] * float(local_hz.max()), 0.95 * nyquist)
    if n < 3 or low >= high:
        return np.zeros(0)
    x = filters.bandpass(interpolate_invalid(wave.values, wave.valid), wave.fps, low, high, order=2)
    maxima = np.flatnonzero((x[1:-1] > x[:-2]) & (x[1:-1] >= x[2:]) & (x[1:-1] > 0)) + 1
    heights, apart = x[maxima].tolist(), (shortest * wave.fps / local_hz[maxima]).tolist()
    chosen: list[int] = []
    highest = 0.0  # of the last one
    for i, height, least in zip(maxima.tolist(), heights, apart, strict=True):
        if not chosen or i - chosen[-1] >= least:
            chosen.append(i)
            highest = height
        elif height > highest:  # of two maxima closer than the shortest interval, keep the higher one
            chosen[-1], highest = i, height
    at = np.asarray(chosen, dtype=np.int64)
    at = at[wave.valid[at]]
    if len(at) == 0:
        return np.zeros(0)
    left, middle, right = x[at - 1], x[at], x[at + 1]
    curvature = left - 2 * middle + right
    shift = np.divide(0.5 * (left - right), curvature, out=np.zeros(len(at)), where=curvature < 0)
    return wave.start_s + (at + shift) / wave.fps


def beat_bpm(beat_times_s: FloatArray) -> float | None:
    """Return the rate from the median beat interval, which is robust to single missed or extra beats."""
    if len(beat_times_s) < 3:
        return None
    return float(60 / np.median(np.diff(beat_times_s)))


def _refine(
    x: FloatArray, fps: float, weights: FloatArray, coarse_hz: float, duration_s: float
) -> tuple[float, float]:
    """Maximise the energy that sine, harmonic and linear trend explain; return (hz, sigma_hz)."""
    count = len(x)
    t = (np.arange(count) - (count - 1) / 2) / fps
    used = weights > 0
    t, x, w = t[used], x[used], weights[used]
    energy = float(w @ x**2)
    trend = np.stack([np.ones(len(t)), t / max(duration_s, 1e-9)])

    def explained_around(hz: float, step_hz: float) -> list[float]:
        around = [hz - step_hz, hz, hz + step_hz]
        with_harmonic = [2 * each < 0.9 * fps / 2 for each in around]
        if len(set(with_harmonic)) == 1:
            return _explained(x, w, t, trend, around, with_harmonic[0])
        return [
            _explained(x, w, t, trend, [each], harmonic)[0]
            for each, harmonic in zip(around, with_harmonic, strict=True)
        ]

    hz, step_hz = coarse_hz, 0.2 / duration_s
    energies = explained_around(hz, step_hz)
    for _ in range(6):  # first, move to the local maximum in steps
        best = int(np.argmax(energies)) - 1
        if best == 0 or abs(hz + best * step_hz - coarse_hz) > 1 / duration_s:
            break
        hz += best * step_hz
        energies = explained_around(hz, step_hz)
    sigma_hz = 0.5 / duration_s
    for _ in range(12):  # then fit parabolas with a decreasing step
        left, middle, right = energies
        curvature = left - 2 * middle + right
        if curvature < 0:
            hz += float(np.clip(0.5 * (left - right) / curvature, -1, 1)) * step_hz
            noise = max(energy - middle, 1e-12 * energy) / max(len(t) - 6, 1)
            sigma_hz = min(sigma_hz, float(np.sqrt(2 * noise * step_hz**2 / -curvature)))
        step_hz *= 0.15  # the error of a parabola is far below its step
        if step_hz < 1e-4:
            break
        energies = explained_around(hz, step_hz)
    return hz, sigma_hz


def _explained(
    x: FloatArray, w: FloatArray, t: FloatArray, trend: FloatArray, tones_hz: list[float], harmonic: bool
) -> list[float]:
    """Return the energy that a trend and a tone, with or without its harmonic, explain, for each tone."""
    angle = np.multiply.outer(np.array(tones_hz), 2 * np.pi * t)  # (K,N)
    basis = np.empty((len(tones_hz), 6 if harmonic else 4, len(t)))
    basis[:, :2] = trend
    cosine, sine = basis[:, 2], basis[:, 3]
    np.cos(angle, out=cosine)
    np.sin(angle, out=sine)
    if harmonic:  # of the double angle
        basis[:, 4] = 1 - 2 * sine**2
        basis[:, 5] = 2 * sine * cosine
    weighted = basis * w
    gram = weighted @ basis.swapaxes(1, 2)  # (K,6,6)
    gram[:, np.arange(gram.shape[1]), np.arange(gram.shape[1])] *= 1 + 1e-9
    right = weighted @ x  # (K,6)
    found: list[float] = (right * np.linalg.solve(gram, right[..., None])[..., 0]).sum(1).tolist()
    return found


def _windowed(columns: FloatArray, valid: BoolArray | None) -> tuple[FloatArray, FloatArray]:
    """Return (columns (T,C) without linear trend, Hann weights (T,) that are zero where invalid)."""
    weights = _hann(len(columns))
    start = 0 if valid is None or not len(valid) else int(valid.argmax())
    columns = columns - columns[start : start + 1]  # a constant column becomes zero without rounding errors
    if valid is not None and not valid.all():
        weights = weights * valid
        columns = np.where(valid[:, None], columns, 0.0)
    return filters.remove_linear_trend(columns, weights), weights


@lru_cache(maxsize=8)
def _hann(count: int) -> FloatArray:
    weights: FloatArray = np.sin(np.pi * (np.arange(count) + 0.5) / max(count, 1)) ** 2
    weights.flags.writeable = False  # shared by all windows of this length
    return weights


def _unpack(
    values: FloatArray | Waveform, fps: float | None, valid: BoolArray | None
) -> tuple[FloatArray, float, BoolArray]:
    if isinstance(values, Waveform):
        return np.asarray(values.values, float), values.fps, values.valid
    x = np.asarray(values, float)
    if x.ndim != 1 or fps is None or fps <= 0:
        raise ArgumentError("values, fps", (x.shape, fps), "a signal (T,) and its frame rate, or a Waveform")
    return x, fps, np.ones(len(x), bool) if valid is None else np.asarray(valid, bool)


def _rounding_power(values: FloatArray | Waveform) -> float:
    """Return the power below which a spectrum is rounding error."""
    x = values.values if isinstance(values, Waveform) else np.asarray(values, float)
    return float(1e-24 * (1e-300 + np.max(np.abs(x), initial=0.0) ** 2))
