"""Classical methods with the preprocessing of rPPG-Toolbox, for comparison with published tables.

They take the mean colour of the whole crop. The differences from the methods of this package are the filters
and, for ICA, the selection of the source. The sign of the pulse is arbitrary.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import UnknownNameError
from ..signal import filters
from ..types import FloatArray, RgbTrace, Waveform
from . import common
from .ica import jade
from .pos import PROJECTION

WINDOW_S = 1.6
BAND_HZ = (0.7, 2.5)  # third order, of CHROM and ICA
POS_BAND_HZ = (0.75, 3.0)  # first order
DETREND = 100.0


def extract(name: str, trace: RgbTrace) -> Waveform:
    """Return the waveform of a method in the variant of rPPG-Toolbox."""
    if name not in VARIANTS:
        raise UnknownNameError("method with a toolbox variant", name, VARIANTS)
    values = VARIANTS[name](common.checked_colours(trace), trace.fps)
    missing = len(trace.values) - len(values)
    valid = np.append(trace.valid[: len(values)], np.zeros(missing, bool))
    return Waveform(np.append(values, np.zeros(missing)), trace.fps, trace.start_s, valid)


def _green(values: FloatArray, fps: float) -> FloatArray:
    del fps
    return values[:, 1]


def _ica(values: FloatArray, fps: float) -> FloatArray:
    """Return the JADE source with the largest share of its power in one bin; Poh 2010: detrend, z-score."""
    smooth = np.stack([filters.detrend(channel, DETREND) for channel in values.T], 1)
    scaled = (smooth - smooth.mean(0)) / smooth.std(0)
    # The three most significant eigenmatrices, and an end at 1 % of the uncertainty of a rotation.
    sources = jade(scaled, eigenmatrices=3, least_angle=0.01 / math.sqrt(len(scaled)))  # (T,3)
    power = np.abs(np.fft.fft(sources, axis=0)[1:]) ** 2  # without the mean
    power = power[: len(power) // 2]
    best = int(np.argmax((power / power.sum(0)).max(0)))
    return filters.butterworth(sources[:, best], fps, *BAND_HZ, order=3)


def _chrom(values: FloatArray, fps: float) -> FloatArray:
    """Normalise and filter each Hann window on its own; frames after the last window have no value."""
    length = math.ceil(WINDOW_S * fps)
    length += length % 2
    half = length // 2
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / (length - 1))
    wave, end = np.zeros(len(values)), len(values)
    for start in range(0, len(values) - length + 1, half):
        part = values[start : start + length]
        r, g, b = (part / part.mean(0)).T
        x = filters.butterworth(3 * r - 2 * g, fps, *BAND_HZ, order=3)
        y = filters.butterworth(1.5 * r + g - 1.5 * b, fps, *BAND_HZ, order=3)
        wave[start : start + length] += window * (x - x.std() / y.std() * y)
        end = start + length
    return wave[:end]


def _pos(values: FloatArray, fps: float) -> FloatArray:
    """Overlap-add all windows but the one that ends with the last frame, then detrend and filter."""
    length = math.ceil(WINDOW_S * fps)
    wave = np.zeros(len(values))
    for start in range(len(values) - length):
        part = values[start : start + length]
        s1, s2 = PROJECTION @ (part / part.mean(0)).T
        h = s1 + s1.std() / s2.std() * s2
        wave[start : start + length] += h - h.mean()
    return filters.butterworth(filters.detrend(wave, DETREND), fps, *POS_BAND_HZ, order=1)


def _pbv(values: FloatArray, fps: float) -> FloatArray:
    """Use the standard deviations of the channels as the signature, over the whole recording.

    rPPG-Toolbox computes in single precision. The equations are so ill-conditioned that double precision
    moves the rate of a weak pulse to another bin.
    """
    del fps
    single = values.astype(np.float32)
    relative = np.ascontiguousarray((single / single.mean(0)).T)  # (3,T)
    signature = relative.std(1) / np.sqrt(relative.var(1).sum())
    weights = np.linalg.solve(relative @ relative.T, signature)
    return (relative.T @ weights / (signature @ weights)).astype(float)


def _lgi(values: FloatArray, fps: float) -> FloatArray:
    del fps
    direction = np.linalg.svd(values.T, full_matrices=False)[0][:, 0]
    return _green_orthogonal_to(direction, values)


def _omit(values: FloatArray, fps: float) -> FloatArray:
    del fps
    return _green_orthogonal_to(np.linalg.qr(values.T)[0][:, 0], values)


def _green_orthogonal_to(direction: FloatArray, values: FloatArray) -> FloatArray:
    rest = values - np.outer(values @ direction, direction)
    return rest[:, 1]


VARIANTS: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "green": _green, "ica": _ica, "chrom": _chrom, "pos": _pos, "pbv": _pbv, "lgi": _lgi, "omit": _omit,
}  # fmt: skip
