"""Quality features of a spectral line at the heart rate.

They measure its signal-to-noise ratio, the colour change that causes it, and whether the background or
another signal has the same line.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..types import BoolArray, ComplexArray, FloatArray, RgbTrace, Waveform
from . import rate
from .median import median

NEIGHBOURHOOD_HZ = 0.6  # half width of the neighbourhood of a line
MIN_CONTRAST = 4.0  # smallest ratio of a line to the median power of its neighbourhood


def snr_db(values: FloatArray | Waveform, bpm: float, fps: float | None = None) -> float:
    """Return the power at the rate and its second harmonic over the rest of the band, in dB (within ±60)."""
    return rate.line_share(rate.spectrum(values, fps), bpm / 60)[1]


def pulsation(trace: RgbTrace, bpm: float, green: rate.Spectrum | None = None) -> float:
    """Return AC/DC of the green channel of the skin at `bpm`, about 0.001–0.01 for a pulse.

    `green` is the spectrum of the green channel, if the caller has it already.
    """
    if not trace.valid.any():
        return 0.0
    level = float(trace.values[trace.valid, 1].mean())
    if level <= 0:
        return 0.0
    spec = green_spectrum(trace) if green is None else green
    return float(np.sqrt(spec.at(bpm / 60))) / level


def green_spectrum(trace: RgbTrace) -> rate.Spectrum:
    """Return the spectrum of the green channel."""
    return rate.spectrum(trace.values[:, 1], trace.fps, trace.valid)


def visible_db(trace: RgbTrace, bpm: float, green: rate.Spectrum | None = None) -> float:
    """Return the line of the green channel at `bpm` over its neighbourhood, in dB (within ±40).

    `green` is the spectrum of the green channel, if the caller has it already.
    """
    if not trace.valid.any():
        return 0.0
    spec = green_spectrum(trace) if green is None else green
    return _decibel(float(spec.at(bpm / 60)), _neighbourhood_power(spec, bpm / 60))


def background_coherence(skin: RgbTrace, background: RgbTrace, bpm: float) -> float:
    """Return the background line at `bpm` that is in phase with the skin's line, relative to it, 0 to 2.

    A flickering light changes both equally, which gives about 1. Noise of the background has a random phase
    and gives about 0 at any strength.
    """
    behind, face = _relative_phasors(background, bpm), _relative_phasors(skin, bpm)
    return _in_phase_ratio(behind, face, 0.0)


def in_phase(skin: RgbTrace, background: RgbTrace, bpm: float) -> float:
    """Return the cosine similarity of the lines of background and skin at `bpm`, with phase, 0–1."""
    behind, face = _relative_phasors(background, bpm), _relative_phasors(skin, bpm)
    size = float(np.linalg.norm(behind) * np.linalg.norm(face))
    return max(float((behind * face.conj()).real.sum()) / size, 0.0) if size > 0 else 0.0


def red_green_ratio(trace: RgbTrace, bpm: float) -> float:
    """Return relative red over relative green at `bpm`, for the part in phase with green: −1 to 2.

    Blood absorbs less red than green (about 0.4). Light and motion change both by the same factor (1).
    """
    return _ratio_to_green(trace, bpm, 0)


def blue_green_ratio(trace: RgbTrace, bpm: float) -> float:
    """Return the same ratio for blue: about 0.7 for blood, 1 for white light."""
    return _ratio_to_green(trace, bpm, 2)


def _ratio_to_green(trace: RgbTrace, bpm: float, channel: int) -> float:
    lines = _relative_phasors(trace, bpm)
    other = lines[channel : channel + 1]
    return _in_phase_ratio(other, lines[1:2], -1.0) if abs(lines[1]) > 0 else 1.0


def rate_change_bpm(wave: Waveform) -> float:
    """Return the difference between the rates with the most evidence in the two halves of a waveform."""
    half = len(wave.values) // 2
    found = []
    for part in (slice(0, half), slice(len(wave.values) - half, None)):
        if not wave.valid[part].any():
            return 0.0
        spec = rate.spectrum(wave.values[part], wave.fps, wave.valid[part])
        hz = spec.hz[spec.band]
        found.append(60 * float(hz[int(np.argmax(spec.evidence(hz)))]))
    return abs(found[1] - found[0])


@lru_cache(maxsize=2)  # several features of a window use those of its skin and its background
def _relative_phasors(trace: RgbTrace, bpm: float) -> ComplexArray:
    """Return the complex AC/DC (3,) of the channels at `bpm`."""
    if not trace.valid.any():
        return np.zeros(3, complex)
    level = np.maximum(trace.values[trace.valid].mean(0), 1.0)
    return rate.phasors(trace.values, trace.fps, bpm, trace.valid) / level


def _in_phase_ratio(other: ComplexArray, line: ComplexArray, least: float) -> float:
    """Return the part of `other` in phase with `line` as a multiple of it, limited to `least` … 2."""
    power = float((np.abs(line) ** 2).sum())
    share = float((other * line.conj()).real.sum()) / power if power > 0 else 0.0
    return min(max(share, least), 2.0)


def shared_line(
    other: FloatArray,
    fps: float,
    bpm: float,
    valid: BoolArray | None = None,
    *,
    full_scale: float | None = None,
    spec: rate.Spectrum | None = None,
) -> float:
    """Return how strongly another signal (T,) or (T,C) has the line at `bpm`, 0–1.

    The strength is the share of its band power within the line, above the share of white noise. `full_scale`
    is the amplitude that would explain the skin's line. With it, the strength is scaled down for lines of
    smaller amplitude. The contrast to the neighbourhood then counts too, so that a stronger signal elsewhere
    in the band, such as a drift of the light, does not hide the line. `spec` is the spectrum of a signal
    (T,), if the caller has it already.
    """
    other = np.asarray(other, float)
    if len(other) == 0 or (valid is not None and not valid.any()):
        return 0.0
    strongest = 0.0
    columns = other.reshape(len(other), -1)
    spectra = rate.spectra(columns, fps, valid) if spec is None else [spec]
    in_band = spectra[0].band  # all spectra have the same frequencies
    line = spectra[0].line_mask(bpm / 60) & in_band
    chance = float(line.sum()) / max(int(in_band.sum()), 1)
    for column, found in zip(columns.T, spectra, strict=True):
        in_all = found.power[in_band].sum()
        if in_all <= 1e-24 * (1e-12 + float(np.max(np.abs(column))) ** 2):
            continue
        share = float(found.power[line].sum() / in_all)
        strength = max(0.0, (share - chance) / max(1 - chance, 1e-9))
        if full_scale is not None and full_scale > 0:
            strength = max(strength, _contrast(found, bpm / 60))
            strength *= min(1.0, float(np.sqrt(found.at(bpm / 60))) / full_scale)
        strongest = max(strongest, strength)
    return min(strongest, 1.0)


def _contrast(spec: rate.Spectrum, hz: float) -> float:
    """Return the contrast of a line to its neighbourhood, 0–1; noise is rarely above 0."""
    power = float(spec.at(hz))
    return max(0.0, 1 - MIN_CONTRAST * _neighbourhood_power(spec, hz) / power) if power > 0 else 0.0


def _neighbourhood_power(spec: rate.Spectrum, hz: float) -> float:
    """Return the median power within the band on both sides of a line."""
    around = spec.band & ~spec.line_mask(hz) & (np.abs(spec.hz - hz) <= NEIGHBOURHOOD_HZ)
    return float(median(spec.power[around])) if around.any() else float(spec.at(hz))


def _decibel(power: float, over: float) -> float:
    """Return 10·log10 of a ratio of powers that may be zero, within ±40."""
    floor = 1e-4 * max(power, over) + 1e-30
    return float(10 * np.log10(max(power, floor) / max(over, floor)))


def colourfulness(rgb: FloatArray) -> float:
    """Return the range of the channels of a mean colour (3,) over their mean; 0 for grey."""
    mean = np.asarray(rgb, float)
    level = float(mean.mean())
    return float((mean.max() - mean.min()) / level) if level > 0 else 0.0
