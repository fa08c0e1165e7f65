"""Laws of the contrastive loss: a video agrees with itself, two differ, references lead where they exist."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg import nn
from phase_rppg.errors import ArgumentError
from phase_rppg.train.losses import contrast
from phase_rppg.train.losses.contrast import contrast_loss, normalised_spectrum

FPS, FRAMES = 30.0, 180


def tone(hz: float, *, frames: int = FRAMES, phase: float = 0.0) -> torch.Tensor:
    return torch.sin(2 * torch.pi * hz * torch.arange(frames, dtype=torch.float64) / FPS + phase)


def blocks(*rates: float, places: int = 4) -> torch.Tensor:
    """One video per rate; at each place the same rhythm with its own phase: (B,T,S)."""
    return torch.stack([torch.stack([tone(hz, phase=place) for place in range(places)], -1) for hz in rates])


def random_block(videos: int, seed: int = 0, places: int = 3) -> torch.Tensor:
    return torch.randn(
        videos, FRAMES, places, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def fixed(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# --- spectra ---


def test_a_spectrum_sums_to_one_and_peaks_at_the_rhythm() -> None:
    spectrum = normalised_spectrum(tone(1.5), FPS)
    hz = torch.fft.rfftfreq(FRAMES, 1 / FPS)
    hz = hz[(hz >= contrast.CONTRAST_PHYS_BAND_HZ[0]) & (hz <= contrast.CONTRAST_PHYS_BAND_HZ[1])]
    assert float(spectrum.sum()) == pytest.approx(1)
    assert float(hz[spectrum.argmax()]) == pytest.approx(1.5)


@settings(max_examples=10, deadline=None)
@given(scale=st.floats(0.01, 100), offset=st.floats(-10, 10), lag=st.integers(0, 5))
def test_scale_level_and_lag_do_not_matter(scale: float, offset: float, lag: int) -> None:
    wave = tone(1.5) + 0.3 * tone(3.0)
    changed = torch.roll(scale * wave, lag) + offset
    torch.testing.assert_close(
        normalised_spectrum(changed, FPS), normalised_spectrum(wave, FPS), rtol=1e-5, atol=1e-8
    )


def test_a_flat_wave_has_a_finite_spectrum_and_gradient() -> None:
    wave = torch.zeros(60, requires_grad=True)
    normalised_spectrum(wave, FPS).sum().backward()
    assert wave.grad is not None
    assert torch.isfinite(wave.grad).all()


# --- the four forces ---


def test_the_forces_are_the_mean_distances_over_all_pairs() -> None:
    """Against two plain loops over the drawn pieces."""
    block, references = random_block(3), random_block(3, seed=1)[..., 0]
    labelled = torch.tensor([True, False, True])
    terms = contrast_loss(block, FPS, references=references, labelled=labelled, pieces=2, generator=fixed())
    generator = fixed()
    waves = torch.cat([block, block.mean(-1, keepdim=True)], -1).transpose(1, 2)
    x = contrast.piece_spectra(waves, FRAMES // 2, 2, FPS, contrast.CONTRAST_PHYS_BAND_HZ, generator)
    y = contrast.piece_spectra(
        references[labelled].unsqueeze(1).expand(-1, 4, -1),
        FRAMES // 2,
        2,
        FPS,
        contrast.CONTRAST_PHYS_BAND_HZ,
        generator,
    )

    def distance(one: torch.Tensor, two: torch.Tensor, *, same: bool = False) -> float:
        pairs = [(i, j) for i in range(len(one)) for j in range(len(two)) if not (same and i == j)]
        return sum(float(((one[i] - two[j]) ** 2).mean()) for i, j in pairs) / len(pairs)

    attract = sum(distance(x[v], x[v], same=True) for v in range(3)) / 3
    repel = -sum(distance(x[v], x[u]) for v in range(3) for u in range(3) if u != v) / 6
    own = (distance(x[0], y[0]) + distance(x[2], y[1])) / 2
    others = -(distance(x[1], y[0]) + distance(x[2], y[0]) + distance(x[0], y[1]) + distance(x[1], y[1])) / 4
    assert float(terms.attract) == pytest.approx(attract)
    assert float(terms.repel) == pytest.approx(repel)
    assert float(terms.attract_reference) == pytest.approx(own)
    assert float(terms.repel_reference) == pytest.approx(others)
    assert float(terms.total) == pytest.approx(attract + repel + own + others)


def test_two_rhythms_are_better_than_one_and_than_noise() -> None:
    different = contrast_loss(blocks(1.0, 2.0), FPS, generator=fixed()).total
    same = contrast_loss(blocks(1.0, 1.0), FPS, generator=fixed()).total
    noise = contrast_loss(random_block(2), FPS, generator=fixed()).total
    assert different < noise
    assert different < same


def test_places_that_disagree_are_pulled_together() -> None:
    mixed = torch.stack([blocks(1.0)[0], blocks(2.0)[0]])
    mixed[0, :, 0] = tone(3.0)
    assert contrast_loss(mixed, FPS, generator=fixed()).attract > contrast_loss(blocks(1.0, 2.0), FPS).attract


def test_references_decide_which_rhythm_is_right() -> None:
    references = torch.stack([tone(1.0, phase=1.0), tone(2.0, phase=2.0)])
    right = contrast_loss(blocks(1.0, 2.0), FPS, references=references, generator=fixed())
    swapped = contrast_loss(blocks(2.0, 1.0), FPS, references=references, generator=fixed())
    assert float(right.attract) == pytest.approx(
        float(swapped.attract), abs=1e-3
    )  # without them, no difference
    assert right.total < swapped.total


def test_without_labels_references_change_nothing() -> None:
    block, nothing = random_block(2), torch.zeros(2, dtype=torch.bool)
    plain = contrast_loss(block, FPS, generator=fixed())
    ignored = contrast_loss(
        block, FPS, references=random_block(2, 5)[..., 0], labelled=nothing, generator=fixed()
    )
    assert plain == ignored
    assert plain.attract_reference == plain.repel_reference == 0


def test_the_loss_is_random_only_through_its_generator() -> None:
    block = random_block(2)
    assert contrast_loss(block, FPS, generator=fixed(3)) == contrast_loss(block, FPS, generator=fixed(3))
    assert contrast_loss(block, FPS, generator=fixed(3)) != contrast_loss(block, FPS, generator=fixed(4))


def test_waves_alone_learn_to_be_periodic() -> None:
    """Descent on free waves, no labels: each video gathers its power at a frequency of its own."""
    block = random_block(2).requires_grad_()
    optimiser = torch.optim.Adam([block], lr=0.05)
    generator, losses = fixed(), []
    for _ in range(60):
        optimiser.zero_grad()
        loss = contrast_loss(block, FPS, generator=generator).total
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.01
    first, second = normalised_spectrum(block.detach().mean(-1), FPS)
    assert first.argmax() != second.argmax()
    assert first.max() > 0.2
    assert second.max() > 0.2


def test_the_network_learns_from_its_block_without_labels() -> None:
    torch.manual_seed(0)
    network = nn.build("contrast-phys", size=32)
    t = torch.arange(60) / FPS
    scene = torch.rand(2, 1, 32, 32, 3) * 200 + 20
    pulse = torch.sin(2 * torch.pi * torch.tensor([1.0, 2.0])[:, None] * t)
    pixels = scene * (1 + 0.03 * pulse[:, :, None, None, None])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    losses: list[float] = []
    while len(losses) < 15 and (not losses or losses[-1] > losses[0] - 0.02):
        optimiser.zero_grad()
        latent = network(pixels).latent
        assert latent is not None
        loss = contrast_loss(latent, FPS, generator=fixed()).total
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.02, losses


# --- bad input ---


@pytest.mark.parametrize(
    ("block", "options", "says"),
    [
        (torch.zeros(2, 60), {}, "shape"),
        (torch.zeros(1, 60, 4), {}, "two or more"),
        (torch.zeros(2, 60, 4), {"references": torch.zeros(2, 59)}, "references"),
        (torch.zeros(2, 60, 4), {"references": torch.zeros(2, 60), "labelled": torch.ones(3)}, "labelled"),
        (torch.zeros(2, 60, 4), {"piece_s": 3.0}, "piece_s"),
        (torch.zeros(2, 60, 4), {"piece_s": 0.1}, "long enough"),
        (torch.zeros(2, 60, 4), {"pieces": 0}, "pieces"),
    ],
)
def test_wrong_input_is_refused(block: torch.Tensor, options: dict[str, object], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        contrast_loss(block, FPS, **options)  # type: ignore[arg-type]
