"""What every registered network owes: whoever adds a file to nn/ gets these tests with it."""

from __future__ import annotations

import functools
import re

import pytest
import torch

from phase_rppg import nn, registry
from phase_rppg.errors import ArgumentError, PhaseError, UnknownNameError
from phase_rppg.nn.output import Output

from .helpers import clip

NETWORKS = registry.names("nn")
FRAMES = 16  # every network takes it
SIZES = (16, 32, 36, 48, 64, 72, 128)
every_network = pytest.mark.parametrize("name", NETWORKS)
FEWER_LAYERS = {"rhythmmamba": {"depth": 3}}  # of 24 equal ones, to save time
# The public code of PHASE-Net sets channels to zero; `test_phasenet_release.py` counts them.
ZERO_CHANNELS = {"phasenet-release"}


@functools.cache
def smallest_size(name: str) -> int:
    """The first size the network can be built for and run at."""
    for size in SIZES:
        try:
            nn.build(name, size=size)
        except ArgumentError:
            continue
        return size
    raise AssertionError(f"{name} cannot be built at any of {SIZES}")


def make(name: str, seed: int = 0) -> torch.nn.Module:
    size = smallest_size(name)  # builds networks, and so must come before the seed
    torch.manual_seed(seed)
    return nn.build(name, size=size, **FEWER_LAYERS.get(name, {}))


def trained_like(name: str) -> torch.nn.Module:
    """Return a network in evaluation mode whose BatchNorm statistics come from clips."""
    network = make(name)
    with torch.no_grad():
        network(clip(2, FRAMES, seed=1, size=smallest_size(name)))
    return network.eval()


@every_network
def test_a_network_says_what_it_is(name: str) -> None:
    module = registry.load("nn", name)
    assert name == module.NAME
    assert re.search(r"\b(19|20)\d\d\b", module.CITATION), "a citation has a year"
    assert isinstance(module.CAUSAL, bool)
    assert smallest_size(name) <= module.SIZE
    assert module.FRAMES > 0
    assert module.TARGET in ("wave", "difference")
    assert make(name).size == smallest_size(name)


@every_network
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_pixels_go_in_and_one_number_per_frame_comes_out(name: str, dtype: torch.dtype) -> None:
    pixels = clip(2, FRAMES, size=smallest_size(name)).to(dtype)
    before = pixels.clone()
    with torch.no_grad():
        out = trained_like(name)(pixels)
    assert isinstance(out, Output)
    assert out.wave.shape == (2, FRAMES)
    assert out.wave.dtype == torch.float32
    assert torch.isfinite(out.wave).all()
    assert out.wave.std(dim=1).min() > 0, "the wave moves"
    assert torch.equal(pixels, before), "the caller's pixels are left alone"
    if out.latent is not None:
        assert out.latent.shape[:2] == (2, FRAMES)
    if out.mask is not None:
        torch.testing.assert_close(out.mask.sum((-1, -2)), torch.ones(out.mask.shape[:3]))


@every_network
def test_declared_causality_is_true(name: str) -> None:
    network, pixels = trained_like(name), clip(1, FRAMES, size=smallest_size(name))
    changed = pixels.clone()
    changed[:, FRAMES // 2 :] = clip(1, FRAMES // 2, seed=9, size=smallest_size(name))
    with torch.no_grad():
        difference = (network(pixels).wave - network(changed).wave).abs()
    past = difference[:, : FRAMES // 2].max()
    if registry.load("nn", name).CAUSAL:
        assert past == 0, "the future changed the past"
    else:
        assert past > 0, "it is causal: say so"
    assert difference[:, FRAMES // 2 :].max() > 0, "the present matters"


@every_network
def test_gradients_reach_every_parameter(name: str) -> None:
    network = make(name).train()
    pixels = clip(2, FRAMES, seed=3, size=smallest_size(name))
    out = network(pixels)
    target = torch.randn(out.wave.shape, generator=torch.Generator().manual_seed(4))
    ((out.wave - target) ** 2).sum().backward()
    for label, parameter in network.named_parameters():
        assert parameter.grad is not None, f"{label} is not used"
        assert torch.isfinite(parameter.grad).all(), label
        assert parameter.grad.abs().max() > 0, f"nothing reaches {label}"


@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in ZERO_CHANNELS])
def test_no_channel_is_constant(name: str) -> None:
    """Every output channel of a layer varies between clips, frames or cells."""
    network = make(name).train()
    still: list[str] = []

    def watch(label: str, x: torch.Tensor, channel: int) -> None:
        spread = x.movedim(channel, 0).flatten(1).std(1)
        if not (spread > 0).all():
            still.append(f"{label}: {(spread == 0).nonzero().flatten().tolist()}")

    for label, module in network.named_modules():
        if isinstance(module, torch.nn.Conv1d | torch.nn.Conv2d | torch.nn.Conv3d):
            module.register_forward_hook(lambda _m, _i, out, label=label: watch(label, out, 1))
        elif isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda _m, _i, out, label=label: watch(label, out, -1))
    with torch.no_grad():
        network(clip(3, FRAMES, seed=5, size=smallest_size(name)))
    assert not still


@every_network
def test_clips_of_a_batch_do_not_see_each_other(name: str) -> None:
    network, pixels = trained_like(name), clip(3, FRAMES, size=smallest_size(name))
    with torch.no_grad():
        together = network(pixels).wave
        alone = torch.cat([network(one[None]).wave for one in pixels])
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4 * float(together.std()) + 1e-6)


@every_network
def test_one_seed_gives_one_network(name: str) -> None:
    first, second, other = make(name, 1).state_dict(), make(name, 1).state_dict(), make(name, 2).state_dict()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)


@every_network
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x[0], "shape"),
        (lambda x: x[..., :2], "shape"),
        (lambda x: x[:0], "shape"),
        (lambda x: x.movedim(-1, 2), "shape"),
        (lambda x: x[:, :0], "frames"),
        (lambda x: x[:, :, :-1], "×"),
        (lambda x: x.to(torch.int64), "dtype"),
        (lambda x: x.numpy(), "tensor"),
    ],
    ids=[
        "no batch",
        "two colours",
        "no clips",
        "channels first",
        "no frames",
        "not square",
        "int64",
        "numpy",
    ],
)
def test_wrong_pixels_are_refused(name: str, change: object, says: str) -> None:
    network = make(name)
    with pytest.raises(ArgumentError, match=says):
        network(change(clip(1, FRAMES, size=smallest_size(name))))  # type: ignore[operator]


@every_network
@pytest.mark.parametrize("size", [0, -1, 3])
def test_impossible_sizes_are_refused_in_our_words(name: str, size: int) -> None:
    with pytest.raises(PhaseError, match="size"):
        nn.build(name, size=size)


@every_network
def test_an_unknown_option_is_answered_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'size'"):
        nn.build(name, sizee=32)


@every_network
def test_training_on_a_few_clips_makes_the_loss_fall(name: str) -> None:
    """Clips whose brightness pulses; the target is the slope, which frame-wise networks can predict too."""
    size, frames = smallest_size(name), 2 * FRAMES
    t = torch.arange(frames) / 30.0
    phase = 2 * torch.pi * torch.tensor([1.1, 2.3])[:, None] * t  # (2,T)
    scene = clip(2, 1, seed=6, size=size).float()
    pixels = scene * (1 + 0.05 * torch.sin(phase)[:, :, None, None, None])  # (2,T,S,S,3)
    network = make(name).train()
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout | torch.nn.Dropout3d):
            module.p = 0.0  # one loss can be compared with the next
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    losses: list[float] = []
    while len(losses) < 25 and (not losses or losses[-1] > losses[0] - 0.1):
        optimiser.zero_grad()
        wave = network(pixels).wave
        wave = wave - wave.mean(1, keepdim=True)
        loss = 1 - torch.nn.functional.cosine_similarity(wave, torch.cos(phase)).mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.1, losses
