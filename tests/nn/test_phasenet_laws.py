"""Laws of PHASE-Net's configuration, initial weights and layers."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from phase_rppg import infer, nn
from phase_rppg.errors import ArgumentError
from phase_rppg.nn import complexity
from phase_rppg.nn.phasenet import initial_kernels
from phase_rppg.nn.phasenet.gtcn import GatedTCN
from phase_rppg.nn.phasenet.layers import CausalDepthwise, MeanPool, SqueezeExcite, tail
from phase_rppg.nn.phasenet.model import PhaseNet, PhaseNetConfig
from phase_rppg.nn.phasenet.phasenet_stream import StreamConfig

from .helpers import clip, small

# ---- configuration -----------------------------------------------------------------------------------------

LEAST: dict[str, object] = {
    "stem": 1, "stem_stride": 1, "channels": (1, 1, 1), "pools": (1, 1, 1), "expansion": 1, "est_kernel": 1,
    "reduction": 0, "zas_block": 1, "asf_hidden": 1, "hidden": 1, "tcn_kernel": 1, "tcn_dilations": (1,),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAST)
def test_the_least_value_of_a_size_is_accepted_and_a_smaller_one_is_refused(name: str) -> None:
    least = LEAST[name]
    assert getattr(PhaseNetConfig(**{name: least}), name) == least  # type: ignore[arg-type]
    less = tuple(n - 1 for n in least) if isinstance(least, tuple) else least - 1  # type: ignore[operator]
    with pytest.raises(ArgumentError, match=name):
        PhaseNetConfig(**{name: less})  # type: ignore[arg-type]


def test_four_pixels_are_the_least() -> None:
    assert PhaseNetConfig(size=4, pools=(1, 1, 1)).maps() == [4, 4, 4, 4]
    with pytest.raises(ArgumentError, match="size"):
        PhaseNetConfig(size=3, pools=(1, 1, 1))


@pytest.mark.parametrize("name", ["fps", "mean_s", "log_gain"])
def test_rates_and_times_are_positive(name: str) -> None:
    assert getattr(StreamConfig(**{name: 0.001}), name) == 0.001  # type: ignore[arg-type]
    for value in (0.0, -1.0, math.nan):
        with pytest.raises(ArgumentError, match=name):
            StreamConfig(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 1.1])
def test_the_fraction_of_swapped_channels_lies_between_zero_and_one(fraction: float) -> None:
    assert PhaseNetConfig(zas=False, zas_fraction=0.99).zas_fraction == 0.99
    with pytest.raises(ArgumentError, match="zas_fraction"):
        PhaseNetConfig(zas=False, zas_fraction=fraction)


@pytest.mark.parametrize(
    "options",
    [{"stem": True}, {"stem": 1.0}, {"zas": 1}, {"channels": 8}, {"channels": (8, 8, 8.0)}, {"fps": "30"},
     {"pools": (2, 2)}, {"channels": (), "pools": ()}, {"tcn_dilations": ()}, {"variance_channels": -1}],
)  # fmt: skip
def test_options_of_another_type_or_number_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        StreamConfig(**options)  # type: ignore[arg-type]


def test_options_of_the_right_type_are_accepted() -> None:
    assert StreamConfig(fps=25, variance_channels=0).fps == 25
    assert StreamConfig(gtcn=False, tcn_dilations=()).tcn_dilations == ()


def test_the_maps_are_the_sides_after_stem_and_pools() -> None:
    assert PhaseNetConfig().maps() == [128, 64, 32, 16]
    assert StreamConfig(size=36).maps() == [18, 9, 9, 9]
    assert PhaseNetConfig(size=37, stem_stride=2).maps() == [19, 9, 4, 2]
    with pytest.raises(ArgumentError, match="block 3 gets 3 px, less than b=4"):
        PhaseNetConfig(size=12, zas_block=4)
    assert PhaseNetConfig(size=12, zas_block=3).maps() == [12, 6, 3, 1]
    with pytest.raises(ArgumentError, match="no cell"):
        PhaseNetConfig(size=4, zas=False)
    assert PhaseNetConfig(size=8, zas=False).maps() == [8, 4, 2, 1]


# ---- states ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pools", [(2, 1, 1), (1, 1, 2), (1, 2, 2)])
def test_the_state_keeps_its_shapes_from_frame_to_frame(pools: tuple[int, ...]) -> None:
    network = small(pools=pools, stem_stride=1, smooth_mask=True, variance_channels=3)
    state = network.initial_state(2)
    shapes = {name: tuple(tensor.shape) for name, tensor in state.tensors().items()}
    for t in range(2):
        state, output = network.step(state, clip(2, 3)[:, t : t + 1])
        assert {name: tuple(tensor.shape) for name, tensor in state.tensors().items()} == shapes
        assert output.mask is not None
        assert output.mask.shape[-1] == network.config.maps()[-1]


def test_an_empty_batch_and_another_size_have_no_state() -> None:
    network = small()
    assert network.initial_state(1, network.size).batch == 1
    with pytest.raises(ArgumentError, match="batch"):
        network.initial_state(0)
    with pytest.raises(ArgumentError, match="size"):
        network.initial_state(1, network.size + 1)


# ---- layers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("side", "height", "width"), [(1, 5, 5), (2, 6, 4), (2, 7, 4), (2, 6, 5), (3, 8, 10)]
)
def test_pooling_and_its_gradient_are_those_of_torch(side: int, height: int, width: int) -> None:
    x = torch.randn(2, 3, height, width, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 3, height // side, width // side, dtype=torch.float64)
    found, expected = MeanPool(side)(x), F.avg_pool2d(x, side)
    assert torch.equal(found, expected)
    (gradient,) = torch.autograd.grad((found * weights).sum(), x)
    (truth,) = torch.autograd.grad((expected * weights).sum(), x)
    torch.testing.assert_close(gradient, truth)


@pytest.mark.parametrize("kernel", [1, 2, 5])
def test_shifted_additions_equal_the_convolution(kernel: int) -> None:
    torch.manual_seed(0)
    layer = CausalDepthwise(3, kernel).eval()
    layer.bias = torch.nn.Parameter(torch.randn(3))
    x, history = torch.randn(2 * 7, 3, 4, 5), torch.randn(2, kernel - 1, 3, 4, 5)
    with torch.no_grad():
        found, after = layer(x, history)
        shifted, shifted_after = layer._shifted(x, history)
    torch.testing.assert_close(found, layer.norm(shifted))
    torch.testing.assert_close(after, shifted_after)


@pytest.mark.parametrize("kernel", [1, 4])
def test_a_temporal_filter_starts_near_the_identity(kernel: int) -> None:
    torch.manual_seed(0)
    weight = CausalDepthwise(4000, kernel).weight.detach()[:, 0, :, 0]  # (C,k)
    assert weight[:, -1].mean() == pytest.approx(1, abs=0.02)
    assert (weight[:, -1] - 1).std() == pytest.approx(0.3 / math.sqrt(kernel), rel=0.05)
    if kernel > 1:
        assert weight[:, :-1].mean() == pytest.approx(0, abs=0.02)
        assert weight[:, :-1].std() == pytest.approx(0.3 / math.sqrt(kernel), rel=0.05)


@pytest.mark.parametrize(("channels", "reduction", "hidden"), [(32, 4, 8), (8, 4, 4), (12, 2, 6)])
def test_the_bottleneck_of_squeeze_excite_has_at_least_four_channels(
    channels: int, reduction: int, hidden: int
) -> None:
    assert SqueezeExcite(channels, reduction).down.out_features == hidden


def test_squeeze_excite_scales_each_channel_by_a_number_below_one() -> None:
    layer = SqueezeExcite(8, 4)
    x = torch.randn(3, 8, 4, 5)
    ratio = layer(x) / x
    torch.testing.assert_close(ratio, ratio[:, :, :1, :1].expand_as(ratio))
    assert ((ratio > 0) & (ratio < 1)).all()
    torch.testing.assert_close(layer(x)[1:2], layer(x[1:2]))


def test_the_tail_of_an_axis_may_be_empty() -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    assert torch.equal(tail(x, 2, 3), x[:, :, 1:])
    assert torch.equal(tail(x, 1, 1), x[:, 2:])
    assert tail(x, 1, 0).shape == (2, 0, 4)
    assert tail(x, 0, 2).shape == (2, 3, 4)


# ---- oscillators -------------------------------------------------------------------------------------------


def test_initial_kernels_are_damped_oscillators_of_the_cardiac_band() -> None:
    """The recurrence g[m+2] = tr·g[m+1] − det·g[m] gives the frequency and the damping of each kernel."""
    torch.manual_seed(0)
    fps = 30.0
    g = initial_kernels.sample_kernels(2000, 4, 1, fps).double()  # (K,4)
    trace, det = g[:, 1], g[:, 1] ** 2 - g[:, 2]
    torch.testing.assert_close(g[:, 3], trace * g[:, 2] - det * g[:, 1], atol=1e-4, rtol=0)
    hz = fps * torch.sqrt((1 + det - trace) / det) / (2 * math.pi)
    ratio = fps * (1 / det - 1) / (2 * math.pi * hz)
    assert torch.equal(g[:, 0], torch.ones(2000, dtype=torch.float64))
    low, high = initial_kernels.INITIAL_HZ
    assert low * 0.97 < hz.quantile(0.001) < low * 1.1
    assert high * 0.9 < hz.quantile(0.999) < high * 1.03
    assert ratio.quantile(0.01) == pytest.approx(0.2, abs=0.03)
    assert ratio.quantile(0.99) == pytest.approx(1.0, abs=0.03)
    assert torch.log(hz).mean() == pytest.approx(math.log(math.sqrt(low * high)), abs=0.05)


@pytest.mark.parametrize("dilation", [2, 4])
def test_a_dilated_kernel_has_every_nth_sample(dilation: int) -> None:
    torch.manual_seed(0)
    whole = initial_kernels.sample_kernels(5, 4 * dilation + 1, 1, 30.0)
    torch.manual_seed(0)
    torch.testing.assert_close(initial_kernels.sample_kernels(5, 5, dilation, 30.0), whole[:, ::dilation])


def test_oscillators_replace_the_signal_kernels_and_leave_the_gates() -> None:
    torch.manual_seed(0)
    tcn = GatedTCN(16, 9, (1, 2))
    before = [layer.conv.weight.detach().clone() for layer in tcn.gated_layers()]
    initial_kernels.start_from_oscillators(tcn, 30.0)
    for layer, old in zip(tcn.gated_layers(), before, strict=True):
        new = layer.conv.weight.detach()
        assert torch.equal(new[16:], old[16:])
        assert float(new[:16].std()) == pytest.approx(float(old[:16].std()), rel=1e-4)
        newest = new[:16, :, 0].abs()  # the response begins with the newest frame, where it is not small
        assert (newest[:, :, -1] > 0.05 * newest.amax(2)).all()


def test_an_overdamped_oscillator_is_bounded_by_critical_damping() -> None:
    """q[m] = m·r^(m−1) is the limit θ → 0; beyond it there is no angle."""
    det, count = torch.full((3,), 0.81, dtype=torch.float64), torch.arange(1.0, 6.0, dtype=torch.float64)
    trace = 2 * 0.9 * torch.tensor([1.0, 1.01, 1.5], dtype=torch.float64)
    found = initial_kernels.powers(trace, det, count)
    torch.testing.assert_close(found, (count * 0.9 ** (count - 1)).expand(3, 5), rtol=1e-4, atol=0)


def test_the_default_sizes_are_those_of_the_shipped_weights() -> None:
    manifest = infer.load().manifest
    network = nn.build(manifest.name)
    assert manifest.parameters == complexity.parameters(network)
    assert isinstance(network, PhaseNet)
    assert (manifest.size, manifest.fps) == (network.size, network.config.fps)
    assert manifest.receptive_frames == network.receptive_frames
