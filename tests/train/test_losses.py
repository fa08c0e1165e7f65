"""Losses against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from phase_rppg.errors import ArgumentError, UnknownNameError
from phase_rppg.nn.output import Output
from phase_rppg.train.losses import (
    LatentDecoder,
    Objective,
    correlation,
    coverage_loss,
    negative_pearson,
    off_skin_loss,
    oscillator_residual,
    spectral_distance,
)
from phase_rppg.train.recipe import Loss

T = torch.arange(300) / 30


def tone(hz: float) -> torch.Tensor:
    return torch.sin(2 * math.pi * hz * T)[None]


def test_pearson_is_numpys() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 50))
    ours = correlation(torch.from_numpy(a), torch.from_numpy(b))
    assert np.allclose(ours, [np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])


def test_pearson_ignores_scale_and_offset() -> None:
    wave = tone(1.2)
    assert negative_pearson(3 * wave + 7, wave).item() == pytest.approx(-1, abs=1e-5)
    assert negative_pearson(-wave, wave).item() == pytest.approx(1, abs=1e-5)


def test_a_clip_without_pulse_pulls_nowhere() -> None:
    wave = torch.randn(1, 50, requires_grad=True)
    loss = negative_pearson(wave, torch.zeros(1, 50))
    loss.backward()
    assert loss.item() == 0
    assert torch.isfinite(wave.grad).all()


def test_equal_spectra_cost_nothing_and_disjoint_ones_cost_one() -> None:
    wave = tone(1.2)
    assert spectral_distance(-2 * wave, wave, 30.0).item() == pytest.approx(0, abs=1e-5)
    assert spectral_distance(tone(2.4), wave, 30.0).item() == pytest.approx(1, abs=1e-2)


def test_damped_oscillators_have_no_residual_and_noise_has() -> None:
    decaying = tone(1.3) * torch.exp(-0.2 * T)
    assert oscillator_residual(tone(1.3)).item() < 1e-3
    # The clip's mean is taken off first, which leaves a decaying wave nearly free of residual.
    assert oscillator_residual(decaying).item() < 1e-2
    torch.manual_seed(0)
    assert oscillator_residual(torch.randn(8, 300)).item() > 0.9


def test_a_decoder_that_knows_the_answer_costs_nothing() -> None:
    raw = torch.randn(2, 40, 6)
    wanted = (raw - raw.mean(1, keepdim=True)) / (raw.std(1, keepdim=True) + 1e-5)
    decoder = LatentDecoder(6, 6)
    decoder.layers = torch.nn.Sequential(torch.nn.Identity())
    assert decoder(wanted, raw).item() == pytest.approx(0, abs=1e-5)
    # Opposite everywhere: MSE is 4 (unit variance, T−1 of T), cosine −1.
    assert decoder(-wanted, raw).item() == pytest.approx(4 * 39 / 40 + 0.2, abs=1e-3)


def test_a_mask_on_skin_costs_nothing_and_one_that_is_spread_costs_its_logarithm() -> None:
    skin = torch.zeros(1, 8, 8)
    skin[:, 2:4, 4:6] = 1  # one of 16 cells of a 4×4 mask
    on = torch.zeros(1, 5, 1, 4, 4)
    on[..., 1, 2] = 1
    assert off_skin_loss(on, skin).item() == pytest.approx(0, abs=1e-6)
    assert off_skin_loss(torch.full_like(on, 1 / 16), skin).item() == pytest.approx(math.log(16), abs=1e-5)
    # The second mask is free, and a clip whose skin is not known says nothing.
    both = torch.cat([on, on.flip(-1)], 2)
    assert off_skin_loss(both, skin).item() == pytest.approx(0, abs=1e-6)
    unknown = torch.cat([skin, torch.zeros_like(skin)])
    assert off_skin_loss(torch.cat([on, on.flip(-1)]), unknown).item() == pytest.approx(0, abs=1e-6)
    assert off_skin_loss(on, torch.zeros_like(skin)).item() == 0


def test_a_mask_on_all_skin_costs_nothing_and_one_on_a_part_of_it_does() -> None:
    skin = torch.zeros(1, 8, 8)
    skin[:, 2:6, 4:6] = 1  # two of 16 cells of a 4×4 mask
    mask = torch.zeros(1, 5, 1, 4, 4)
    mask[..., 1, 2] = mask[..., 2, 2] = 0.5
    assert coverage_loss(mask, skin).item() == pytest.approx(0, abs=1e-6)
    # An even look at everything: its distance from an even look at an eighth.
    assert coverage_loss(torch.full_like(mask, 1 / 16), skin).item() == pytest.approx(math.log(8), abs=1e-5)
    uneven = mask.clone()
    uneven[..., 1, 2], uneven[..., 2, 2] = 0.9, 0.1
    assert coverage_loss(uneven, skin).item() == pytest.approx(-0.5 * math.log(4 * 0.9 * 0.1), abs=1e-5)
    assert off_skin_loss(uneven, skin).item() == pytest.approx(0, abs=1e-6)  # all of it is on skin
    both = torch.cat([mask, mask.flip(-1)], 2)
    assert coverage_loss(both, skin).item() == pytest.approx(0, abs=1e-6)  # the second mask is free
    unknown = torch.cat([skin, torch.zeros_like(skin)])
    assert coverage_loss(torch.cat([mask, mask.flip(-1)]), unknown).item() == pytest.approx(0, abs=1e-6)
    assert coverage_loss(mask, torch.zeros_like(skin)).item() == 0


@pytest.mark.parametrize("kind", ["skin", "cover"])
def test_masks_are_judged_after_the_warm_up(kind: str) -> None:
    example = Output(torch.zeros(1, 30), mask=torch.full((1, 30, 1, 4, 4), 1 / 16))
    objective = Objective(
        Loss(auxiliary=kind, weight=0.5, warmup_frames=10), 30.0, delay_frames=0, example=example
    )
    skin = torch.zeros(1, 8, 8)
    skin[:, 2:4, 4:6] = 1
    on = torch.zeros(1, 30, 1, 4, 4)
    on[..., 1, 2] = 1
    on[:, :10] = 1 / 16  # warm-up: without loss
    wave = torch.randn(1, 30)
    assert objective(Output(wave, mask=on), wave, skin=skin).auxiliary.item() == pytest.approx(0, abs=1e-6)
    elsewhere = objective(Output(wave, mask=on.flip(-1)), wave, skin=skin)
    assert elsewhere.auxiliary.item() > 1
    assert elsewhere.total.item() == pytest.approx(-1 + 0.5 * elsewhere.auxiliary.item(), abs=1e-4)


@pytest.mark.parametrize("kind", ["skin", "cover"])
def test_a_mask_loss_needs_a_network_with_masks(kind: str) -> None:
    with pytest.raises(ArgumentError, match="mask"):
        objective(kind)


def objective(kind: str, *, weight: float = 0.5, delay: int = 0, warmup: int = 10) -> Objective:
    example = Output(torch.zeros(1, 300), torch.zeros(1, 300, 4), None, torch.zeros(1, 300, 6))
    loss = Loss(auxiliary=kind, weight=weight, warmup_frames=warmup)
    return Objective(loss, 30.0, delay_frames=delay, example=example)


def test_the_target_may_be_delayed() -> None:
    wave = torch.randn(1, 300)
    late = torch.roll(wave, 7, 1)
    terms = objective("none", delay=7)(Output(late), wave)
    assert terms.pearson.item() == pytest.approx(1, abs=1e-5)
    assert objective("none")(Output(late), wave).pearson.item() < 0.5


def test_the_first_frames_are_not_judged() -> None:
    wave = torch.randn(1, 300)
    spoiled = wave.clone()
    spoiled[:, :10] = 100
    assert objective("none", warmup=10)(Output(spoiled), wave).pearson.item() == pytest.approx(1, abs=1e-5)


def test_the_total_is_the_sum_of_its_parts() -> None:
    wave, target = torch.randn(2, 300), torch.randn(2, 300)
    output = Output(wave, torch.randn(2, 300, 4), None, torch.randn(2, 300, 6))
    for kind in ("latent", "spectral", "oscillator", "none"):
        terms = objective(kind)(output, target)
        assert terms.total.item() == pytest.approx(
            -terms.pearson.item() + 0.5 * terms.auxiliary.item(), abs=1e-5
        )
        assert (terms.auxiliary > 0) == (kind != "none")


def test_an_unknown_auxiliary_loss_is_named() -> None:
    with pytest.raises(UnknownNameError, match="'spectral'"):
        objective("spektral")
