"""Laws of the parts: ZAS, ASF, the front end, the temporal layers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.nn.phasenet.asf import (
    VARIANCE_FLOOR,
    AdaptiveSpatialFilter,
    RecurrentSpatialFilter,
    RunningLogVariance,
)
from phase_rppg.nn.phasenet.front_end import LOG_CENTRE, LOG_FLOOR, LogFrontEnd, PixelFrontEnd
from phase_rppg.nn.phasenet.gtcn import GatedTCN
from phase_rppg.nn.phasenet.initial_kernels import powers, start_from_oscillators
from phase_rppg.nn.phasenet.layers import CausalDepthwise
from phase_rppg.nn.phasenet.zas import ZAS, swapped_by_index

from .helpers import clip

shapes = st.tuples(st.integers(1, 3), st.integers(4, 9), st.integers(4, 11), st.integers(4, 11))
blocks = st.integers(2, 4)
fractions = st.sampled_from([0.125, 0.25, 0.3, 0.5, 0.75])


@given(shapes, blocks, fractions)
@settings(deadline=None, max_examples=25)
def test_zas_is_a_self_inverse_permutation(shape: tuple[int, ...], b: int, p: float) -> None:
    x = torch.arange(math.prod(shape), dtype=torch.float64).reshape(shape)
    swap = ZAS(b, p)
    y = swap(x)
    assert torch.equal(swap(y), x)
    assert torch.equal(y.flatten().sort().values, x.flatten())  # a permutation keeps the norm too
    kept = shape[1] - int(p * shape[1])
    assert torch.equal(y[:, :kept], x[:, :kept])
    assert torch.equal(y[0], swap(x[:1])[0])  # frames are independent
    assert not list(swap.parameters())


@given(shapes, blocks, fractions)
@settings(deadline=None, max_examples=25)
def test_zas_transposes_whole_blocks_and_leaves_the_rim(shape: tuple[int, ...], b: int, p: float) -> None:
    x = torch.randn(shape)
    y = ZAS(b, p)(x)
    h, w = shape[2] // b * b, shape[3] // b * b
    first = shape[1] - int(p * shape[1])
    for i in range(0, h, b):
        for j in range(0, w, b):
            block = x[:, first:, i : i + b, j : j + b]
            assert torch.equal(y[:, first:, i : i + b, j : j + b], block.transpose(2, 3))
    assert torch.equal(y[:, :, h:], x[:, :, h:])
    assert torch.equal(y[:, :, :, w:], x[:, :, :, w:])
    if first < shape[1]:
        assert torch.equal(y, swapped_by_index(x, b, shape[1] - first))


def test_the_gradient_of_zas_is_the_same_swap() -> None:
    x = torch.randn(2, 8, 5, 6, requires_grad=True)
    grad = torch.randn(2, 8, 5, 6)
    swap = ZAS(2, 0.5)
    swap(x).backward(grad)
    assert torch.equal(x.grad, swap(grad))


@pytest.mark.parametrize(("b", "p"), [(0, 0.25), (2, 0.0), (2, 1.0), (2, -1.0)])
def test_zas_refuses_bad_sizes(b: int, p: float) -> None:
    with pytest.raises(ArgumentError):
        ZAS(b, p)


def test_zas_refuses_pictures_smaller_than_a_block() -> None:
    with pytest.raises(ArgumentError, match="block size 4"):
        ZAS(4, 0.5)(torch.zeros(1, 4, 3, 8))
    with pytest.raises(ArgumentError, match="frame-major"):
        ZAS()(torch.zeros(4, 3, 8))


def test_asf_masks_are_weights_and_v_is_the_difference_of_z() -> None:
    torch.manual_seed(1)
    asf = AdaptiveSpatialFilter(6, 4).eval()
    x = torch.randn(2 * 5, 6, 7, 7)
    running = (torch.zeros(5, 5), torch.zeros(5))
    out, mask, state = asf(x, asf.initial_state(x, 2, 7), torch.zeros(1), running, 2)
    assert mask.shape == (10, 1, 7, 7)
    assert (mask >= 0).all()
    assert torch.allclose(mask.sum((2, 3)), torch.ones(10, 1), atol=1e-6)
    z, v = out.chunk(2, 2)
    expected = torch.einsum("nchw,nmhw->nmc", x, mask).reshape(2, 5, -1)
    assert torch.allclose(z, expected, atol=1e-5)
    assert torch.equal(v[:, 1:], z[:, 1:] - z[:, :-1])
    assert (v[:, 0] == 0).all()
    assert torch.equal(state.z, z[:, -1])
    # Later chunks take their first difference from the frame before.
    more, _, _ = asf(x, state, torch.ones(1), running, 2)
    assert torch.allclose(more[:, 0, 6:], z[:, 0] - state.z, atol=1e-6)


def test_the_level_is_the_log_of_the_running_variance_of_each_cell() -> None:
    torch.manual_seed(2)
    front, variance = PixelFrontEnd(fps=30, mean_s=0.5), RunningLogVariance(6, 3)
    x = torch.randn(2 * 12, 6, 4, 4)
    state = front.initial_state(torch.zeros(1), 2, 4)
    level, _ = variance(x, variance.initial_state(x, 2, 4), front.running_weights(12, state))
    seen = variance.project(x).reshape(2, 12, 3, 4, 4).double()
    mean = variance = torch.zeros(2, 3, 4, 4, dtype=torch.float64)
    held = 0.0
    for t in range(12):
        held = front.decay * held + 1
        mean = mean + (seen[:, t] - mean) / held
        variance = variance + ((seen[:, t] - mean) ** 2 - variance) / held
        expected = torch.log(variance + VARIANCE_FLOOR)
        assert torch.allclose(level.reshape(2, 12, 3, 4, 4)[:, t].double(), expected, atol=1e-4)


def test_a_variable_cell_has_a_high_level_that_decays() -> None:
    front, variance = PixelFrontEnd(fps=30, mean_s=0.5), RunningLogVariance(1, 1)
    torch.nn.init.ones_(variance.project.weight)
    x = torch.zeros(120, 1, 3, 3)
    x[:30, 0, 1, 1] = torch.randn(30, generator=torch.Generator().manual_seed(0))
    running = front.running_weights(120, front.initial_state(torch.zeros(1), 1, 3))
    level, _ = variance(x, variance.initial_state(x, 1, 3), running)
    excess = level[:, 0, 1, 1] - level[:, 0, 0, 0]
    assert excess[29] > 5
    assert 0 < excess[119] < excess[29] - 3


def test_a_smoothed_mask_is_the_mean_of_the_masks_so_far() -> None:
    torch.manual_seed(3)
    front = PixelFrontEnd(fps=30, mean_s=0.5)
    asf = RecurrentSpatialFilter(
        6, 4, learned=True, derivative=True, variance_channels=0, smooth_mask=True
    ).eval()
    x = torch.randn(2 * 9, 6, 5, 5)
    running = front.running_weights(9, front.initial_state(torch.zeros(1), 2, 5))
    mask, _ = asf.update_mask(x, asf.initial_state(x, 2, 5), running)
    single = asf.mask(x).reshape(2, 9, 1, 5, 5)
    weights = front.decay ** torch.arange(8, -1, -1.0)
    expected = torch.einsum("t,btmhw->bmhw", weights / weights.sum(), single)
    assert torch.allclose(mask.reshape(2, 9, 1, 5, 5)[:, -1], expected, atol=1e-6)
    assert torch.allclose(mask.sum((2, 3)), torch.ones(18, 1), atol=1e-5)


def test_without_asf_the_features_are_the_plain_mean() -> None:
    asf = AdaptiveSpatialFilter(6, 4, learned=False, derivative=False)
    x = torch.randn(5, 6, 7, 7)
    running = (torch.zeros(5, 5), torch.zeros(5))
    out, _, _ = asf(x, asf.initial_state(x, 1, 7), torch.zeros(1), running, 1)
    assert torch.allclose(out[0], x.mean((2, 3)), atol=1e-6)


def test_the_front_end_takes_the_running_mean_from_log_intensity() -> None:
    front = LogFrontEnd(fps=30, mean_s=0.5, gain=1.0)
    pixels = clip(2, 40, size=5)
    x, _ = front(pixels, front.initial_state(torch.zeros(1), 2, 5))
    log = torch.log((pixels.double() + LOG_FLOOR) / LOG_CENTRE)
    decay = math.exp(-1 / 15)
    for t in (0, 1, 7, 39):
        weight = decay ** torch.arange(t, -1, -1, dtype=torch.float64)
        mean = torch.einsum("t,bthwc->bhwc", weight, log[:, : t + 1]) / weight.sum()
        high = x.reshape(2, 40, 6, 5, 5)[:, t, :3].permute(0, 2, 3, 1)
        assert torch.allclose(high.double(), log[:, t] - mean, atol=1e-5)
    assert (x.reshape(2, 40, 6, 5, 5)[:, 0, :3] == 0).all()


def test_brightness_does_not_change_the_high_passed_channels_of_bright_pixels() -> None:
    front = LogFrontEnd(fps=30, mean_s=1.0, gain=1.0)
    pixels = clip(1, 30, size=5).float() + 20
    state = front.initial_state(torch.zeros(1), 1, 5)
    a, _ = front(pixels, state)
    b, _ = front((pixels + LOG_FLOOR) * 0.7 - LOG_FLOOR, state)
    assert torch.allclose(a[:, :3], b[:, :3], atol=1e-4)


def test_a_causal_depthwise_layer_is_a_filter_over_time() -> None:
    torch.manual_seed(0)
    layer = CausalDepthwise(3, 4)
    layer.norm = torch.nn.Identity()
    x = torch.randn(2 * 6, 3, 5, 5)
    history = torch.randn(2, 3, 3, 5, 5)
    y, new = layer(x, history)
    joined = torch.cat([history, x.reshape(2, 6, 3, 5, 5)], 1)
    w = layer.weight[:, 0, :, 0]
    expected = sum(joined[:, j : j + 6] * w[:, j, None, None] for j in range(4))
    assert torch.allclose(y.reshape(2, 6, 3, 5, 5), expected, atol=1e-5)
    assert torch.equal(new, joined[:, -3:])
    shifted, newer = layer._shifted(x, history)
    assert torch.allclose(shifted, y, atol=1e-5)
    assert torch.equal(newer, new)


@given(st.floats(0.2, 8.0), st.floats(0.5, 5.0))
@settings(deadline=None, max_examples=25)
def test_the_closed_form_is_the_impulse_response_of_the_recurrence(alpha: float, hz: float) -> None:
    """Proposition 1, for the semi-implicit Euler matrices of the paper."""
    dt, omega = 1 / 30, 2 * math.pi * hz
    alpha = min(alpha, 1.6 * omega)
    d = 1 + alpha * dt
    a = torch.tensor([[1 - omega**2 * dt**2 / d, dt / d], [-(omega**2) * dt / d, 1 / d]], dtype=torch.float64)
    x = torch.tensor([dt**2 / d, dt / d], dtype=torch.float64)
    expected = []
    for _ in range(40):
        expected.append(x[0])
        x = a @ x
    trace, det = a.trace()[None], torch.linalg.det(a)[None]
    found = dt**2 / d * powers(trace, det, torch.arange(40, dtype=torch.float64) + 1)[0]
    assert torch.allclose(found, torch.stack(expected), rtol=1e-7, atol=1e-9)


def test_tcn_kernels_can_start_as_damped_oscillators() -> None:
    torch.manual_seed(0)
    tcn = GatedTCN(16, 9, (1, 2))
    spread = tcn.layers[0].conv.weight.std()
    start_from_oscillators(tcn, 30.0)
    weight = tcn.layers[0].conv.weight[:16, :, 0].detach()  # (out,in,k)
    assert torch.allclose(weight.std(), spread, rtol=0.2)
    for kernel in weight:  # one time course per output channel
        assert torch.linalg.matrix_rank(kernel, rtol=1e-4) == 1
