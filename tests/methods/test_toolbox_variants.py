"""The variants of rPPG-Toolbox equal direct computations with scipy, and find the rate of skin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import signal

from phase_rppg.errors import UnknownNameError
from phase_rppg.methods import toolbox_variants
from phase_rppg.signal import rate
from phase_rppg.types import RgbTrace

TraceMaker = Callable[..., RgbTrace]


def detrended(values: np.ndarray) -> np.ndarray:
    second = np.diff(np.eye(len(values)), 2, axis=0)
    return values - np.linalg.solve(np.eye(len(values)) + 100**2 * second.T @ second, values)


@pytest.mark.parametrize("name", toolbox_variants.VARIANTS)
@pytest.mark.parametrize("bpm", [54.0, 72.0, 120.0])
def test_it_finds_the_rate_of_synthetic_skin(name: str, bpm: float, make_trace: TraceMaker) -> None:
    wave = toolbox_variants.extract(name, make_trace(bpm=bpm))
    assert abs(rate.toolbox_bpm(wave) - bpm) < 1.8  # a bin of the periodogram


def test_chrom_filters_each_window(make_trace: TraceMaker) -> None:
    trace = make_trace(seconds=7.0, light=0.02)
    b, a = signal.butter(3, [0.7 / 15, 2.5 / 15], "bandpass")
    expected = np.zeros(210)
    for first in (0, 24, 48, 72, 96, 120, 144):  # the last complete window of 48 frames begins at 144
        c = trace.values[first : first + 48]
        c = c / c.mean(0)
        x = signal.filtfilt(b, a, c @ [3, -2, 0])
        y = signal.filtfilt(b, a, c @ [1.5, 1, -1.5])
        expected[first : first + 48] += (x - np.std(x) / np.std(y) * y) * signal.windows.hann(48)
    np.testing.assert_allclose(toolbox_variants.extract("chrom", trace).values, expected, atol=1e-12)


def test_pos_leaves_out_the_last_window_and_filters(make_trace: TraceMaker) -> None:
    trace = make_trace(seconds=6.0)
    h = np.zeros(180)
    for end in range(48, 180):
        c = trace.values[end - 48 : end] / trace.values[end - 48 : end].mean(0)
        s1, s2 = c[:, 1] - c[:, 2], c[:, 1] + c[:, 2] - 2 * c[:, 0]
        one = s1 + s1.std() / s2.std() * s2
        h[end - 48 : end] += one - one.mean()
    b, a = signal.butter(1, [0.75 / 15, 3.0 / 15], "bandpass")
    expected = signal.filtfilt(b, a, detrended(h))
    np.testing.assert_allclose(toolbox_variants.extract("pos", trace).values, expected, atol=1e-9)


def test_ica_is_a_filtered_mixture_of_detrended_channels(make_trace: TraceMaker) -> None:
    trace = make_trace(light=0.02)
    b, a = signal.butter(3, [0.7 / 15, 2.5 / 15], "bandpass")
    channels = np.stack([signal.filtfilt(b, a, detrended(c)) for c in trace.values.T], 1)
    wave = toolbox_variants.extract("ica", trace).values
    weights = np.linalg.lstsq(channels, wave, rcond=None)[0]
    # The sources have mean zero; a filter removes a constant, up to its ends.
    assert np.corrcoef(channels @ weights, wave)[0, 1] > 0.9999


def test_pbv_is_computed_in_single_precision(make_trace: TraceMaker) -> None:
    """Its equations are ill-conditioned: in double precision, a weak pulse gets another rate."""
    values = toolbox_variants.extract("pbv", make_trace(seconds=6.0)).values
    np.testing.assert_array_equal(values, values.astype(np.float32))


def test_a_method_without_a_variant_is_refused(make_trace: TraceMaker) -> None:
    with pytest.raises(UnknownNameError, match="choices: chrom, green"):
        toolbox_variants.extract("2sr", make_trace())
