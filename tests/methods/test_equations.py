"""Each method equals a direct implementation of the equations of its paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from phase_rppg.face.skin_mask import clip_skin_weights
from phase_rppg.methods import chrom, common, green, ica, lgi, omit, pbv, pca, pos, ssr
from phase_rppg.signal import filters, rate
from phase_rppg.types import Clip, RgbTrace

TraceMaker = Callable[..., RgbTrace]


def same_shape(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def test_pos_is_algorithm_1(make_trace: TraceMaker) -> None:
    trace = make_trace(seconds=6, light=0.02, specular=0.01)
    c, length = trace.values, 48
    h = np.zeros(len(c))
    for end in range(length, len(c) + 1):
        part = slice(end - length, end)
        cn = c[part] / c[part].mean(0)
        s1, s2 = cn[:, 1] - cn[:, 2], -2 * cn[:, 0] + cn[:, 1] + cn[:, 2]
        p = s1 + s1.std() / s2.std() * s2
        h[part] += p - p.mean()
    np.testing.assert_allclose(-pos.extract(trace).values, h, atol=1e-9)


def test_pos_and_chrom_cancel_light_and_green_does_not(make_trace: TraceMaker) -> None:
    trace = make_trace(light=0.03)
    for method in (pos, chrom):
        assert abs(rate.spectral_bpm(method.extract(trace)) - 72) < 0.5
    assert abs(rate.spectral_bpm(green.extract(trace)) - 72) > 5


def test_chrom_cancels_specular_light_within_a_window(make_trace: TraceMaker) -> None:
    still, moving = make_trace(noise=0.0), make_trace(noise=0.0, specular=0.02)
    kept = {m: same_shape(m.extract(still).values, m.extract(moving).values) for m in (chrom, green)}
    assert kept[chrom] > 0.8 > kept[green]


def test_chrom_is_x_minus_alpha_y_with_equal_spread(make_trace: TraceMaker) -> None:
    # With one ratio for the whole signal the windows add up to the plain formula.
    trace = make_trace(noise=0.0)
    relative = trace.values / common.running_mean(trace.values, 48)
    x, y = 3 * relative[:, 0] - 2 * relative[:, 1], relative @ (1.5, 1.0, -1.5)
    xf, yf = filters.pulse_band(np.stack([x, y], 1), 30.0).T
    plain = xf - xf.std() / yf.std() * yf
    assert same_shape(chrom.extract(trace).values[48:-48], plain[48:-48]) > 0.999


def test_green_is_the_relative_change_of_green_alone(make_trace: TraceMaker) -> None:
    trace = make_trace(noise=0.3)
    g = trace.values[:, 1]
    plain = -filters.pulse_band(g / g.mean() - 1, 30.0)
    np.testing.assert_allclose(green.extract(trace).values, plain, atol=1e-12)
    other = dataclasses.replace(trace, values=trace.values[:, [2, 1, 0]] ** [1.3, 1.0, 0.7])
    np.testing.assert_allclose(green.extract(other).values, plain, atol=1e-12)


@pytest.mark.parametrize("method", [lgi, omit])
def test_projection_methods_remove_their_direction(method, make_trace: TraceMaker) -> None:
    trace = make_trace(strength=0.0, noise=0.0, light=0.05)
    assert np.abs(method.extract(trace).values).max() < 1e-6


def test_lgi_is_green_after_the_first_singular_vector(make_trace: TraceMaker) -> None:
    c = make_trace().values
    u = np.linalg.svd(c.T, full_matrices=False)[0][:, 0]
    y = (np.eye(3) - np.outer(u, u)) @ c.T
    np.testing.assert_allclose(lgi.extract(make_trace()).values, -filters.pulse_band(y[1], 30.0), atol=1e-9)


def test_omit_is_green_after_the_first_column_of_q(make_trace: TraceMaker) -> None:
    c = make_trace().values.T  # (3,T)
    q = c[:, 0] / np.linalg.norm(c[:, 0])  # Gram–Schmidt begins with the first column
    y = (np.eye(3) - np.outer(q, q)) @ c
    np.testing.assert_allclose(omit.extract(make_trace()).values, -filters.pulse_band(y[1], 30.0), atol=1e-9)


def test_pbv_weights_have_the_signature(make_trace: TraceMaker) -> None:
    # W·Q ∝ P_bv: what the output shares with each channel is the blood volume signature.
    changes = filters.pulse_band(common.normalised(make_trace(noise=0.3).values), 30.0)
    w = pbv._weights(changes)
    shared = changes.T @ (changes @ w)
    shared /= np.linalg.norm(shared)
    np.testing.assert_allclose(shared, pbv.SIGNATURE / np.linalg.norm(pbv.SIGNATURE), atol=1e-3)
    assert np.linalg.norm(w) == pytest.approx(1)


def test_jade_separates_mixed_sources() -> None:
    rng = np.random.default_rng(0)
    t = np.arange(3000) / 30
    sources = np.stack(
        [np.sin(2 * np.pi * 1.2 * t), np.sign(np.sin(2 * np.pi * 0.31 * t)), rng.laplace(size=3000)], 1
    )
    found = ica.jade(sources @ rng.normal(size=(3, 3)).T)
    match = np.abs(np.corrcoef(sources.T, found.T)[:3, 3:])
    assert match.max(1).min() > 0.98
    np.testing.assert_allclose(found.T @ found / len(found), np.eye(3), atol=1e-6)


def test_pca_is_the_component_with_the_highest_snr(make_trace: TraceMaker) -> None:
    trace = make_trace(noise=0.3, light=0.01)
    x = filters.pulse_band(trace.values / trace.values.mean(0) - 1, 30.0)
    x -= x.mean(0)
    u, s, _ = np.linalg.svd(x, full_matrices=False)  # u·s are the components of the eigenvectors of xᵀx
    snr_db = [peak.snr_db for peak in (rate.spectral_peak(c, 30.0) for c in u.T) if peak is not None]
    best = int(np.argmax(snr_db))
    assert best > 0  # the strongest component is the light
    found = pca.extract(trace).values
    np.testing.assert_allclose(np.abs(found), np.abs(u[:, best] * s[best]), atol=1e-9)
    assert abs(rate.spectral_bpm(found, 30.0) - 72) < 0.5


def test_2sr_is_the_rotation_of_its_paper(make_clip: Callable[..., Clip]) -> None:
    pixels = make_clip(seconds=3.0, size=12).pixels
    moments = ssr.second_moments(pixels, clip_skin_weights(pixels).reshape(-1))
    count, length = len(moments), 30
    lam, u = [], []
    for m in moments:
        w, v = np.linalg.eigh(m)
        v = v[:, ::-1] * np.where(v[:, -1].sum() < 0, -1, 1)
        lam.append(w[::-1])
        u.append(v)
    p = np.zeros(count)
    for tau in range(count - length + 1):
        rows = []
        for t in range(tau, tau + length):
            row = np.zeros(3)
            for i in (1, 2):
                row += np.sqrt(lam[t][0] / lam[tau][i]) * (u[t][:, 0] @ u[tau][:, i]) * u[tau][:, i]
            rows.append(row)
        sr = np.array(rows)
        s = sr[:, 0] - sr[:, 0].std() / sr[:, 1].std() * sr[:, 1]
        p[tau : tau + length] += s - s.mean()
    np.testing.assert_allclose(ssr.rotation(moments, 30.0), p, atol=1e-9)
