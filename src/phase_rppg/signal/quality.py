"""How far a line in a waveform can be believed: strength, true colour change, and who else shows the line."""

from __future__ import annotations

import numpy as np

from ..types import BoolArray, ComplexArray, FloatArray, RgbTrace, Waveform
from . import rate

BESIDE_HZ = 0.6  # how far the surroundings of a line reach
STANDS_OUT = 4.0  # a line counts from so many times the median power beside it


def snr_db(values: FloatArray | Waveform, bpm: float, fps: float | None = None) -> float:
    """Power at the rate and its first harmonic over the rest of the band, in dB (±60 at most)."""
    return rate.line_share(rate.spectrum(values, fps), bpm / 60)[1]


def line_amplitude(values: FloatArray, fps: float, bpm: float, valid: BoolArray | None = None) -> FloatArray:
    """Amplitude (half of peak-to-peak) of the tone at `bpm` in each column of values (T,C); Hann-weighted."""
    values = np.asarray(values, float)
    columns = values.reshape(len(values), -1)
    return np.sqrt([float(rate.spectrum(c, fps, valid).at(bpm / 60)) for c in columns.T])


def pulsation(trace: RgbTrace, bpm: float) -> float:
    """Relative colour change of the raw skin at the rate: AC/DC of green, about 0.001–0.01 for a pulse."""
    if not trace.valid.any():
        return 0.0
    level = float(trace.values[trace.valid, 1].mean())
    if level <= 0:
        return 0.0
    return float(line_amplitude(trace.values[:, 1], trace.fps, bpm, trace.valid)[0]) / level


def visible_db(trace: RgbTrace, bpm: float) -> float:
    """How far the line at `bpm` stands out from what lies beside it in the raw green, in dB (±40 at most)."""
    if not trace.valid.any():
        return 0.0
    spec = rate.spectrum(trace.values[:, 1], trace.fps, trace.valid)
    return _decibel(float(spec.at(bpm / 60)), _beside(spec, bpm / 60))


def background_coherence(skin: RgbTrace, background: RgbTrace, bpm: float) -> float:
    """How much of the skin's line at `bpm` the background shows in step with it, 0 to 2.

    A lamp lights both alike, which gives about 1. Noise of the background is out of step with the skin and
    mostly gives nothing, however strong it is.
    """
    lit, seen = _relative_phasors(background, bpm), _relative_phasors(skin, bpm)
    return _in_step(lit, seen, 0.0)


def in_phase(skin: RgbTrace, background: RgbTrace, bpm: float) -> float:
    """0–1: how far the background's line at `bpm` goes up and down together with the skin's."""
    lit, seen = _relative_phasors(background, bpm), _relative_phasors(skin, bpm)
    size = float(np.linalg.norm(lit) * np.linalg.norm(seen))
    return max(float((lit * seen.conj()).real.sum()) / size, 0.0) if size > 0 else 0.0


def red(trace: RgbTrace, bpm: float) -> float:
    """Relative red over green at `bpm`, as far as it is in step with green: −1 to 2.

    Blood takes little red away (about 0.4). A change of light or of place takes the same share of both.
    """
    lines = _relative_phasors(trace, bpm)
    return _in_step(lines[:1], lines[1:2], -1.0) if abs(lines[1]) > 0 else 1.0


def _relative_phasors(trace: RgbTrace, bpm: float) -> ComplexArray:
    """AC/DC (3,) of the colours at `bpm`, with their phases."""
    if not trace.valid.any():
        return np.zeros(3, complex)
    level = np.maximum(trace.values[trace.valid].mean(0), 1.0)
    return np.array([rate.phasor(c, trace.fps, bpm, trace.valid) for c in trace.values.T]) / level


def _in_step(other: ComplexArray, line: ComplexArray, least: float) -> float:
    """The part of `other` that goes with `line`, as a multiple of it; `least` to 2."""
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
) -> float:
    """0–1: how much of a line at `bpm` another signal (T,) or (T,C) shows too.

    It is the share of the other's band power that sits in the line, above the share that noise would have
    there. With `full_scale` (the amplitude that would explain the skin's line) a line that is far too weak
    to matter counts for little, however clean it is, and one that stands out from its surroundings counts
    even if something stronger happens elsewhere in the band: a lamp may drift while it flickers.
    """
    other = np.asarray(other, float)
    if len(other) == 0 or (valid is not None and not valid.any()):
        return 0.0
    strongest = 0.0
    for column in other.reshape(len(other), -1).T:
        spec = rate.spectrum(column, fps, valid)
        in_band = spec.band
        if spec.power[in_band].sum() <= 1e-24 * (1e-12 + float(np.max(np.abs(column))) ** 2):
            continue
        line = spec.line_mask(bpm / 60) & in_band
        chance = float(line.sum()) / max(int(in_band.sum()), 1)
        share = float(spec.power[line].sum() / spec.power[in_band].sum())
        strength = max(0.0, (share - chance) / max(1 - chance, 1e-9))
        if full_scale is not None and full_scale > 0:
            strength = max(strength, _contrast(spec, bpm / 60))
            strength *= min(1.0, float(np.sqrt(spec.at(bpm / 60))) / full_scale)
        strongest = max(strongest, strength)
    return min(strongest, 1.0)


def _contrast(spec: rate.Spectrum, hz: float) -> float:
    """0–1: how far a line stands out from what lies beside it; noise seldom reaches above 0."""
    power = float(spec.at(hz))
    return max(0.0, 1 - STANDS_OUT * _beside(spec, hz) / power) if power > 0 else 0.0


def _beside(spec: rate.Spectrum, hz: float) -> float:
    """The median power within the band on both sides of a line."""
    beside = spec.band & ~spec.line_mask(hz) & (np.abs(spec.hz - hz) <= BESIDE_HZ)
    return float(np.median(spec.power[beside])) if beside.any() else float(spec.at(hz))


def _decibel(power: float, over: float) -> float:
    """10·log10 of a ratio of powers that may be zero, within ±40."""
    floor = 1e-4 * max(power, over) + 1e-30
    return float(10 * np.log10(max(power, floor) / max(over, floor)))


def colourfulness(rgb: FloatArray) -> float:
    """Spread between the channels of a mean colour (3,), relative to its brightness: 0 for grey."""
    mean = np.asarray(rgb, float)
    level = float(mean.mean())
    return float((mean.max() - mean.min()) / level) if level > 0 else 0.0
