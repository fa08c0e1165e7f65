"""Laws of the published networks: their sizes, and the parts they are made of."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg import nn, registry
from phase_rppg.errors import ArgumentError
from phase_rppg.nn import complexity, preprocessing
from phase_rppg.nn.baselines import bigsmall, can, factorizephys, me_rppg, rhythmformer
from phase_rppg.nn.baselines.scan import selective_scan
from phase_rppg.nn.baselines.tdc import TemporalDifferenceConv

from .helpers import clip

BASELINES = [name for name in registry.names("nn") if not name.startswith("phasenet")]
few = settings(max_examples=12, deadline=None)


@pytest.mark.parametrize("name", BASELINES)
def test_parameters_are_those_of_the_release(name: str) -> None:
    module = registry.load("nn", name)
    assert complexity.parameters(module.build()) == module.REFERENCE_PARAMETERS


def test_targets_are_those_of_the_published_settings() -> None:
    slope = {"deepphys", "ts-can", "efficientphys", "physnet", "physformer", "physmamba", "bigsmall"}
    found = {name for name in BASELINES if registry.load("nn", name).TARGET == "difference"}
    assert found == slope


# (parameters in millions, MACs in billions) of the efficiency table of the PHASE-Net paper at 128×128, 128
# frames, and how far the exact count may be from it.
EFFICIENCY = {
    "physnet": (0.77, 56.1, 0.01, 0.02),
    "deepphys": (7.50, 96.0, 0.01, 0.01),
    "efficientphys": (7.40, 45.6, 0.01, 0.07),
    "physformer": (7.38, 40.5, 0.01, 0.01),
    # The table prints more parameters than RhythmFormer's own paper and release, which have 3.25 M.
    "rhythmformer": (4.21, 28.8, 0.25, 0.08),
    "contrast-phys": (0.85, 145.7, 0.02, 0.26),
    # Counters that watch layers miss the 0.16 M of the Mamba layers, and their products.
    "physmamba": (0.56, 47.3, 0.31, 0.06),
}


@pytest.mark.parametrize("name", EFFICIENCY)
def test_size_and_work_agree_with_the_efficiency_table(name: str) -> None:
    millions, billions, off_millions, off_billions = EFFICIENCY[name]
    network = nn.build(name, size=128)
    assert complexity.parameters(network) / 1e6 == pytest.approx(millions, rel=off_millions)
    assert complexity.clip_macs(network, frames=32, size=128) * 4 / 1e9 == pytest.approx(
        billions, rel=off_billions
    )


@pytest.mark.parametrize(("size", "parameters"), [(36, 532_899), (72, 2_228_643), (128, 7_504_291)])
def test_the_dense_layer_of_deepphys_grows_with_the_picture(size: int, parameters: int) -> None:
    assert complexity.parameters(nn.build("deepphys", size=size)) == parameters


# --- what happens to the pixels ---


def test_difference_is_relative_change_over_its_spread() -> None:
    frames = clip(2, 6, size=8).movedim(-1, 2).double()
    by_hand = (frames[:, 1:] - frames[:, :-1]) / (frames[:, 1:] + frames[:, :-1])
    by_hand = by_hand / by_hand.flatten(1).std(1, correction=0).view(-1, 1, 1, 1, 1)
    got = preprocessing.difference(frames)
    torch.testing.assert_close(got[:, :-1], by_hand, rtol=1e-5, atol=1e-5)
    assert (got[:, -1] == 0).all()


def test_brightness_cancels_in_both_normalisations() -> None:
    frames = clip(1, 6, size=8).movedim(-1, 2).double()
    for normalise in (preprocessing.difference, preprocessing.standardise):
        torch.testing.assert_close(normalise(frames * 0.4), normalise(frames), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", BASELINES)
def test_a_clip_without_any_change_gives_numbers(name: str) -> None:
    module = registry.load("nn", name)
    size = 72 if name == "factorizephys" else 32
    with torch.no_grad():
        wave = module.build(size=size).eval()(torch.full((1, 8, size, size, 3), 128.0)).wave
    assert torch.isfinite(wave).all()


@pytest.mark.parametrize("name", ["physnet", "physformer", "physmamba", "contrast-phys", "rhythmformer"])
def test_lengths_that_do_not_divide_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="steps of"):
        nn.build(name, size=32)(clip(1, 13, size=32))


# --- convolutional attention ---


@few
@given(frames=st.integers(2, 14), depth=st.integers(2, 6), channels=st.integers(3, 8))
def test_a_shifted_frame_sees_its_neighbours_inside_its_window(
    frames: int, depth: int, channels: int
) -> None:
    x = torch.randn(2 * frames, channels, 1, 1)
    got = can.temporal_shift(x, frames, depth).view(2, frames, channels)
    x, fold = x.view(2, frames, channels), channels // 3
    for t in range(frames):
        window = t // depth
        after = x[:, t + 1] if t + 1 < frames and (t + 1) // depth == window else torch.zeros(2, channels)
        before = x[:, t - 1] if t > 0 and (t - 1) // depth == window else torch.zeros(2, channels)
        assert torch.equal(got[:, t, :fold], after[:, :fold])
        assert torch.equal(got[:, t, fold : 2 * fold], before[:, fold : 2 * fold])
        assert torch.equal(got[:, t, 2 * fold :], x[:, t, 2 * fold :])


def test_a_soft_mask_sums_to_half_its_area() -> None:
    mask = can.soft_mask(torch.rand(3, 1, 5, 7))
    torch.testing.assert_close(mask.sum((-1, -2)), torch.full((3, 1), 17.5))


# --- temporal differences ---


@pytest.mark.parametrize("theta", [0.0, 0.2, 0.7])
def test_the_difference_convolution_is_a_convolution_minus_its_outer_frames(theta: float) -> None:
    layer, x = TemporalDifferenceConv(4, theta), torch.randn(2, 4, 5, 3, 3)
    weight = layer.conv.weight
    outer = (weight[:, :, 0] + weight[:, :, 2]).sum((-1, -2))[..., None, None, None]
    torch.testing.assert_close(layer(x), layer.conv(x) - theta * F.conv3d(x, outer), rtol=1e-4, atol=1e-5)


# --- the selective scan ---


def by_loop(
    x: torch.Tensor, step: torch.Tensor, decay: torch.Tensor, into: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    state, answers = torch.zeros(x.shape[0], *decay.shape, dtype=x.dtype), []
    for place in range(x.shape[1]):
        keep = torch.exp(step[:, place, :, None] * decay)
        state = keep * state + (step * x)[:, place, :, None] * into[:, place, None]
        answers.append((state * out[:, place, None]).sum(-1))
    return torch.stack(answers, 1)


@few
@given(tokens=st.integers(1, 40), batch=st.integers(1, 2), seed=st.integers(0, 99))
def test_the_scan_in_chunks_equals_the_loop_and_so_do_its_gradients(
    tokens: int, batch: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    x, step, decay = draw(batch, tokens, 3), draw(batch, tokens, 3), draw(3, 2)
    into, out = draw(batch, tokens, 2), draw(batch, tokens, 2)
    inputs = (x, F.softplus(step), -decay.exp(), into, out)
    chunked, looped = selective_scan(*inputs), by_loop(*inputs)
    torch.testing.assert_close(chunked, looped)
    leaves = (x, step, decay, into, out)
    weight = torch.randn(looped.shape, generator=generator, dtype=torch.float64)
    for got, expected in zip(
        torch.autograd.grad((chunked * weight).sum(), leaves, retain_graph=True),
        torch.autograd.grad((looped * weight).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(got, expected)


# --- the parts of ME-rPPG and BigSmall ---


@few
@given(frames=st.integers(1, 12), cut=st.integers(0, 12), seed=st.integers(0, 99))
def test_the_dual_scan_equals_the_loop_also_in_two_parts(frames: int, cut: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    value, decay, into, out = (
        draw(2, frames, 2, 3),
        -draw(2, frames, 2).exp(),
        draw(2, frames, 4),
        draw(2, frames, 4),
    )
    start = state = draw(2, 2, 3, 4)
    looped = []
    for t in range(frames):
        state = decay[:, t].exp()[..., None, None] * state + value[:, t, ..., None] * into[:, t, None, None]
        looped.append((state * out[:, t, None, None]).sum(-1))
    expected = torch.stack(looped, 1)
    found, last = me_rppg.dual_scan(value, decay, into, out, start)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(last, state)
    if 0 < cut < frames:
        parts = [
            [part[:, where] for part in (value, decay, into, out)] for where in (slice(cut), slice(cut, None))
        ]
        first, between = me_rppg.dual_scan(*parts[0], start)
        second, last = me_rppg.dual_scan(*parts[1], between)
        torch.testing.assert_close(torch.cat([first, second], 1), expected)
        torch.testing.assert_close(last, state)


def test_a_stream_of_me_rppg_equals_the_whole_clip() -> None:
    """In double precision: the first frames divide by a small variance, which magnifies rounding."""
    torch.manual_seed(0)
    network = nn.build("me-rppg", size=16).eval().double()
    frames = clip(2, 18, size=16).movedim(-1, 2).double()
    with torch.no_grad():
        _, whole = network._run(network.initial_state(2), frames)
        state, parts = network.initial_state(2), []
        for part in frames.split([1, 4, 13], 1):
            state, out = network._run(state, part)
            parts.append(out.wave)
    torch.testing.assert_close(torch.cat(parts, 1), whole.wave)


def test_the_state_of_me_rppg_does_not_grow() -> None:
    network = nn.build("me-rppg", size=16).eval()

    def numbers(state: object) -> int:
        return state.numel() if isinstance(state, torch.Tensor) else sum(numbers(one) for one in state)  # type: ignore[attr-defined]

    before = network.initial_state(1)
    with torch.no_grad():
        after, _ = network.step(before, clip(1, 9, size=16))
    assert numbers(after) == numbers(before)
    # 36×36 pixels, as published: two moments of every feature, and the states of ten Mamba-2 layers.
    sides, units, heads = (36, 18, 9, 5), 8, 2
    moments = 2 * 2 * 32 * sum(side**2 for side in sides)
    memories = units * (4 * 32 * 128 + 11 * 384) + heads * (2 * 32 * 128 + 3 * 320)
    assert numbers(nn.build("me-rppg").initial_state(1)) == moments + memories


def test_a_clip_is_normalised_without_its_trend_and_a_stream_with_a_half_life() -> None:
    t = torch.arange(40.0).view(1, 40, 1)
    wave = torch.sin(t)
    torch.testing.assert_close(
        me_rppg.clip_normalised(5 * wave + 3 * t + 7), me_rppg.clip_normalised(wave), atol=1e-3, rtol=1e-3
    )
    assert float(me_rppg.clip_normalised(wave).square().mean()) == pytest.approx(1, abs=1e-4)
    zero = torch.zeros(1, 1)
    _, moments = me_rppg.running_normalised(torch.ones(1, 80, 1), me_rppg.Moments(zero, zero))
    assert float(moments.mean) == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("frames", [1, 2, 3, 7])
def test_channels_are_shifted_in_a_circle_within_three_frames(frames: int) -> None:
    x = torch.arange(frames).view(1, -1, 1, 1, 1).expand(1, frames, 3, 1, 1)
    shifted = bigsmall.Segments(frames, x.device).shift(x)[0, :, :, 0, 0].tolist()
    for t, channels in enumerate(shifted):
        segment = [n for n in range(frames) if n // 3 == t // 3]
        at = segment.index(t)
        assert channels == [segment[(at + 1) % len(segment)], segment[at - 1], t]


def test_the_large_picture_of_bigsmall_is_the_first_of_three() -> None:
    torch.manual_seed(0)
    network, pixels = nn.build("bigsmall", size=32).eval(), clip(1, 6, size=32).float()
    # A checkerboard vanishes in the mean of 16×16 whole numbers, so only the large picture sees it.
    board = ((torch.arange(32)[:, None] + torch.arange(32)) % 2 * 2 - 1)[..., None] * 60.0
    statistics = preprocessing.VideoStatistics(float(pixels.mean()), float(pixels.std()), 1.0)
    with torch.no_grad(), preprocessing.part_of(statistics):
        plain = network(pixels).wave[0]
        for changed, differs in ((3, [False] * 3 + [True] * 3), (4, [False] * 6)):
            other = pixels.clone()
            other[0, changed] += board
            assert (network(other).wave[0] != plain).tolist() == differs


def test_the_scan_does_not_overflow_where_everything_is_forgotten() -> None:
    tokens = 500
    step = torch.full((1, tokens, 2), 50.0)
    y = selective_scan(
        torch.ones(1, tokens, 2), step, -torch.ones(2, 4), torch.ones(1, tokens, 4), torch.ones(1, tokens, 4)
    )
    torch.testing.assert_close(
        y, torch.full_like(y, 200.0)
    )  # only the present is left: Δ·B·x over four states


# --- regions and factors ---


@few
@given(counts=st.tuples(*[st.integers(1, 3)] * 3), cells=st.tuples(*[st.integers(1, 3)] * 3))
def test_cutting_into_regions_and_back_changes_nothing(
    counts: tuple[int, int, int], cells: tuple[int, int, int]
) -> None:
    sides = [n * c for n, c in zip(counts, cells, strict=True)]
    x = torch.randn(2, 5, *sides)
    regions = rhythmformer._regions(x, counts, cells)
    assert regions.shape == (2, counts[0] * counts[1] * counts[2], cells[0] * cells[1] * cells[2], 5)
    assert torch.equal(rhythmformer._grid(regions, counts, cells), x)
    torch.testing.assert_close(
        regions[:, 0].mean(1), x[:, :, : cells[0], : cells[1], : cells[2]].mean((2, 3, 4))
    )


def test_one_time_course_is_found_again() -> None:
    generator = torch.Generator().manual_seed(0)
    course, weights = torch.rand(2, 20, 1, generator=generator), torch.rand(2, 30, 1, generator=generator)
    series = course @ weights.transpose(1, 2)
    torch.testing.assert_close(factorizephys.factorise(series), series, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("at_inference", [True, False])
def test_the_factorisation_is_used_at_inference_as_the_option_says(at_inference: bool) -> None:
    network = nn.build("factorizephys", dropout=0.0, factorise_inference=at_inference)
    pixels = clip(1, 8, size=72)
    with torch.no_grad():
        plain = network.eval()(pixels).wave
        network.factorisation.after.weight.mul_(-3)
        assert torch.equal(network(pixels).wave, plain) != at_inference
        assert not torch.allclose(network.train()(pixels).wave, plain)


@pytest.mark.parametrize("places", [1, 2])
def test_the_wave_of_contrast_phys_is_the_mean_of_its_block(places: int) -> None:
    out = nn.build("contrast-phys", size=32, places=places).eval()(clip(2, 8, size=32))
    assert out.latent is not None
    assert out.latent.shape == (2, 8, places * places)
    torch.testing.assert_close(out.wave, out.latent.mean(-1))


@pytest.mark.parametrize(
    ("name", "overrides", "says"),
    [
        ("ts-can", {"depth": 1}, "depth"),
        ("physformer", {"width": 30}, "width"),
        ("rhythmformer", {"width": 30}, "width"),
        ("rhythmformer", {"size": 160}, "steps of 64"),
        ("contrast-phys", {"size": 32, "places": 3}, "places"),
    ],
)
def test_impossible_builds_are_refused(name: str, overrides: dict[str, int], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        nn.build(name, **overrides)


# --- RhythmMamba ---


@pytest.mark.parametrize(("name", "options"), [("physmamba", {}), ("rhythmmamba", {"depth": 2})])
def test_the_steps_of_mamba_layers_begin_as_in_the_releases(name: str, options: dict[str, int]) -> None:
    """Both releases initialise every linear layer alike, also the one that gives the step."""
    network = nn.build(name, size=16, **options)
    layers = [layer for layer in network.modules() if isinstance(layer, torch.nn.Linear)]
    steps = [layer for layer in layers if layer.bias is not None]
    assert steps
    for layer in steps:
        assert not layer.bias.any()
    for layer in layers:
        assert float(layer.weight.detach().std()) == pytest.approx(0.02, rel=0.2)


def test_a_start_of_rhythmmamba_counts_from_its_segment_on() -> None:
    """Segment i is the mean of the outputs of the starts 0 … i; a start has not seen what precedes it."""
    torch.manual_seed(0)
    block = nn.build("rhythmmamba", size=16, width=16, depth=1).eval().blocks[0]
    x = torch.randn(2, 12, 16)
    with torch.no_grad():
        got = block.from_several_starts(x)
        for segment in range(4):
            part = slice(3 * segment, 3 * segment + 3)
            starts = [block.mamba(x[:, 3 * start :]) for start in range(segment + 1)]
            outputs = [out[:, 3 * (segment - start) :][:, :3] for start, out in enumerate(starts)]
            torch.testing.assert_close(got[:, part], torch.stack(outputs).mean(0), rtol=1e-4, atol=1e-6)


def test_the_frequency_mixer_scales_each_channel_by_a_complex_number() -> None:
    """The products of the release, with its matrices of which only the diagonals count."""
    mixer = nn.build("rhythmmamba", size=16, width=16, depth=1).eval().blocks[0].mixer
    x, noise = torch.randn(2, 12, 16), torch.triu(torch.ones(32, 32), 1)

    def scaled(values: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bnc,cc->bnc", values, torch.diag(by[:, 0]) + noise)

    with torch.no_grad():
        old = torch.fft.fft(mixer.before(x.transpose(1, 2)).transpose(1, 2), dim=1, norm="ortho")
        real = scaled(old.real, mixer.real) - scaled(old.imag, mixer.imag) + mixer.real_bias[:, 0]
        imag = scaled(old.imag, mixer.real) + scaled(old.real, mixer.imag) + mixer.imag_bias[:, 0]
        new = torch.fft.ifft(torch.complex(real.relu(), imag.relu()), dim=1, norm="ortho").real
        expected = mixer.after(new.transpose(1, 2)).transpose(1, 2)
        torch.testing.assert_close(mixer(x), expected, rtol=1e-4, atol=1e-5)
