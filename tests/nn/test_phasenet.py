"""Laws of the network: causal, streaming equals whole, nothing dead, nothing leaks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg import nn
from phase_rppg.errors import ArgumentError, UnknownNameError
from phase_rppg.nn.phasenet.fold_batchnorm import fold
from phase_rppg.nn.phasenet.model import PhaseNet

from .helpers import clip, small

VARIANTS: dict[str, dict[str, object]] = {
    "default": {},
    "the paper": {"name": "phasenet"},
    "without ZAS": {"zas": False},
    "ZAS b=3": {"zas_block": 3, "zas_fraction": 0.5},
    "without ASF": {"asf": False},
    "a mask that sees variances": {"variance_channels": 3},
    "a smoothed mask": {"smooth_mask": True},
    "without derivative": {"derivative": False},
    "without GTCN": {"gtcn": False},
    "one TCN layer": {"tcn_dilations": (1,)},
    "four TCN layers": {"tcn_dilations": (1, 2, 4, 8)},
    "no time in EST": {"est_kernel": 1},
    "longer EST": {"est_kernel": 5},
    "no squeeze-excite": {"reduction": 0},
    "stem stride 1": {"stem_stride": 1, "pools": (2, 2, 2)},
}
variants = pytest.mark.parametrize("overrides", VARIANTS.values(), ids=VARIANTS.keys())


def streamed(network: PhaseNet, pixels: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    state, waves = network.initial_state(pixels.shape[0]), []
    for part in pixels.split(sizes, 1):
        state, output = network.step(state, part)
        waves.append(output.wave)
    return torch.cat(waves, 1)


@variants
def test_the_future_never_changes_the_past(overrides: dict[str, object]) -> None:
    network, pixels = small(**overrides), clip(2, 20)
    with torch.no_grad():
        before = network(pixels).wave
        for t in (1, 7, 19):
            changed = pixels.clone()
            changed[:, t:] = 255 - changed[:, t:]
            after = network(changed).wave
            assert torch.allclose(after[:, :t], before[:, :t], rtol=0, atol=1e-6)
            assert (after[:, t] - before[:, t]).abs().max() > 1e-3  # but the present counts


@variants
def test_frame_by_frame_equals_the_whole_clip(overrides: dict[str, object]) -> None:
    network, pixels = small(**overrides), clip(2, 20)
    with torch.no_grad():
        whole = network(pixels).wave
    assert torch.allclose(streamed(network, pixels, [1] * 20), whole, rtol=0, atol=1e-5)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
@settings(deadline=None, max_examples=15)
def test_chunks_of_any_sizes_equal_the_whole_clip(sizes: list[int]) -> None:
    network, pixels = (
        small(variance_channels=3, smooth_mask=True),
        clip(1, sum(sizes)),
    )
    with torch.no_grad():
        whole = network(pixels).wave
    assert torch.allclose(streamed(network, pixels, sizes), whole, rtol=0, atol=1e-5)


def test_the_state_is_a_value_that_can_be_copied_and_reset() -> None:
    network, pixels = small(variance_channels=3, smooth_mask=True), clip(1, 12)
    start = network.initial_state()
    middle, _ = network.step(start, pixels[:, :5])
    copy = middle.clone()
    _, a = network.step(middle, pixels[:, 5:])
    _, b = network.step(middle, pixels[:, 5:])  # stepping leaves the state as it was
    _, c = network.step(copy, pixels[:, 5:])
    _, d = network.step(middle.replace(copy.tensors()), pixels[:, 5:])
    assert torch.equal(a.wave, b.wave)
    assert torch.equal(a.wave, c.wave)
    assert torch.equal(a.wave, d.wave)
    assert all((tensor == 0).all() for tensor in start.tensors().values())
    with pytest.raises(ArgumentError, match="tensors"):
        middle.replace({"filter.z": copy["filter"].z})


def test_the_state_does_not_grow() -> None:
    network = small(variance_channels=3, smooth_mask=True)
    one, _ = network.step(network.initial_state(), clip(1, 1))
    many, _ = network.step(network.initial_state(), clip(1, 60))
    assert one.nbytes == many.nbytes == network.initial_state().nbytes
    held = sum(tensor.untyped_storage().nbytes() for tensor in many.tensors().values())
    assert held == many.nbytes  # no view holds a chunk in memory


@variants
def test_every_parameter_learns_and_no_channel_is_dead(overrides: dict[str, object]) -> None:
    network = small(**overrides).train()
    seen: dict[str, torch.Tensor] = {}

    def watch(name: str) -> object:
        def hook(_module: object, _inputs: object, output: object) -> None:
            value = output[0] if isinstance(output, tuple) else output
            assert isinstance(value, torch.Tensor)
            seen[name] = value.detach().transpose(0, 1).flatten(1).std(1)

        return hook

    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Conv2d) or name.endswith("temporal"):
            module.register_forward_hook(watch(name))  # type: ignore[arg-type]
    wave = network(clip(2, 24)).wave
    (wave * torch.randn_like(wave)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name
    for name, spread in seen.items():
        assert (spread > 0).all(), f"a channel of {name} is dead"


@variants
def test_folding_batch_norm_changes_nothing(overrides: dict[str, object]) -> None:
    network, pixels = small(**overrides), clip(1, 16)
    folded = fold(network)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in folded.modules())
    with torch.no_grad():
        assert torch.allclose(folded(pixels).wave, network(pixels).wave, rtol=0, atol=1e-5)


def test_batch_items_do_not_see_each_other() -> None:
    network, pixels = small(variance_channels=3, smooth_mask=True), clip(3, 12)
    with torch.no_grad():
        together = network(pixels)
        for index in range(3):
            alone = network(pixels[index : index + 1])
            assert torch.allclose(alone.wave[0], together.wave[index], rtol=0, atol=1e-5)


def test_one_seed_gives_one_network() -> None:
    for name in ("phasenet", "phasenet-stream"):
        weights = []
        for _ in range(2):
            torch.manual_seed(7)
            weights.append(nn.build(name).state_dict())
        assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])


def test_bytes_and_floats_are_read_alike() -> None:
    network, pixels = small(), clip(1, 8)
    with torch.no_grad():
        assert torch.equal(network(pixels).wave, network(pixels.float()).wave)


def test_the_output_shows_its_reasons() -> None:
    network = small()
    with torch.no_grad():
        output = network(clip(2, 8))
    assert output.wave.shape == (2, 8)
    assert output.latent.shape == (2, 8, 8)
    assert output.raw.shape == (2, 8, 12)
    assert output.mask.shape == (2, 8, 1, 4, 4)
    assert torch.allclose(output.mask.sum((3, 4)), torch.ones(2, 8, 1), atol=1e-5)


def test_the_receptive_field_is_what_a_frame_really_reaches() -> None:
    network = small(name="phasenet", tcn_dilations=(1, 2))
    reach = network.receptive_frames
    pixels = clip(1, reach + 4)
    changed = pixels.clone()
    changed[:, 0] = 255 - changed[:, 0]
    with torch.no_grad():
        moved = (network(changed).wave - network(pixels).wave).abs()[0]
    assert (moved[:reach] > 0).all()
    assert (moved[reach:] == 0).all()


BAD_PIXELS = [
    (torch.zeros(1, 4, 18, 18), "shape"),
    (torch.zeros(1, 4, 3, 18, 18), "shape"),
    (torch.zeros(1, 4, 20, 20, 3), "20×20"),
    (torch.zeros(1, 0, 18, 18, 3), "0 frames"),
    (torch.zeros(0, 4, 18, 18, 3), "shape"),
    (torch.zeros(1, 4, 18, 18, 3, dtype=torch.int64), "int64"),
]


@pytest.mark.parametrize(("pixels", "says"), BAD_PIXELS)
def test_wrong_pixels_are_refused(pixels: torch.Tensor, says: str) -> None:
    network = small()
    with pytest.raises(ArgumentError, match=says):
        network(pixels)
    with pytest.raises(ArgumentError, match=says):
        network.step(network.initial_state(), pixels)


BAD_CONFIG: list[dict[str, object]] = [
    {"size": 3}, {"size": 8, "zas_block": 4}, {"channels": ()}, {"pools": (2, 2)},
    {"zas_fraction": 1.5}, {"tcn_dilations": ()}, {"fps": float("nan")},
    {"size": 4, "zas": False}, {"stem_stride": 0}, {"hidden": -1}, {"size": "64"}, {"zas": 1},
    {"channels": (8.5, 8, 8)},
]  # fmt: skip


@pytest.mark.parametrize("overrides", BAD_CONFIG, ids=str)
def test_impossible_sizes_are_refused(overrides: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        nn.build("phasenet", **overrides)


@pytest.mark.parametrize(
    "overrides", [{"variance_channels": -1}, {"mean_s": 0.0}, {"log_gain": 0.0}], ids=str
)
def test_impossible_options_of_the_streaming_network_are_refused(overrides: dict[str, object]) -> None:
    with pytest.raises(ArgumentError):
        nn.build("phasenet-stream", **overrides)


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'phasenet-stream'"):
        nn.build("phasenet-steam")
    with pytest.raises(UnknownNameError, match="'zas_block'"):
        nn.build("phasenet", zas_blok=2)
    with pytest.raises(UnknownNameError, match="'gtcn'"):
        nn.build("phasenet", gtnc=False)


def test_a_state_of_another_batch_is_refused() -> None:
    network = small()
    with pytest.raises(ArgumentError, match="batch 2"):
        network.step(network.initial_state(1), clip(2, 1))
    with pytest.raises(ArgumentError):
        network.initial_state(0)
    with pytest.raises(ArgumentError, match="size=64"):
        network.initial_state(1, 64)
