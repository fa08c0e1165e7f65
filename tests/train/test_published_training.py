"""Every published network can be trained as its authors did, and the losses that this needs are theirs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.signal import get_window

from phase_rppg import cli, registry
from phase_rppg.errors import ArgumentError, RecipeError, UsageError
from phase_rppg.nn.published_training import PublishedTraining
from phase_rppg.train import loop
from phase_rppg.train.losses import physformer_loss, rhythmformer_loss, sinc_loss, standardised_error
from phase_rppg.train.losses.frequency import bpm_spectrum, reference_bpm
from phase_rppg.train.published import published_tables, published_training, with_published_training
from phase_rppg.train.recipe import MAIN_LOSSES, OPTIMISERS, SCHEDULES, Optimise, load_stages
from phase_rppg.train.training_state import beta1, learning_rate

from .helpers import Toy, tiny

OWN = {"phasenet-stream", "phasenet-oscillators"}  # networks of this package, without a publication
UNKNOWN = {"me-rppg"}  # published without the settings of its training
PUBLISHED = [name for name in registry.names("nn") if name not in OWN | UNKNOWN]
T = torch.arange(300) / 30


def tone(bpm: float, phase: float = 0.0) -> torch.Tensor:
    return torch.sin(2 * math.pi * bpm / 60 * T + phase)[None]


# --- the facts ---


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_network_states_how_it_was_trained_and_where_this_is_written(name: str) -> None:
    module, facts = registry.load("nn", name), published_training(name)
    assert facts.source
    assert (facts.size, facts.frames) == (module.SIZE, module.FRAMES)
    assert facts.loss in MAIN_LOSSES
    assert facts.optimiser in OPTIMISERS
    assert facts.schedule in SCHEDULES
    assert facts.target == module.TARGET or facts.options  # another target needs another input
    module.build(size=facts.size, **facts.options)


@pytest.mark.parametrize("name", sorted(OWN | UNKNOWN))
def test_a_network_without_published_settings_has_no_published_training(name: str) -> None:
    with pytest.raises(UsageError, match=r"networks with one: .*physnet"):
        published_training(name)


def test_published_settings_replace_those_of_a_recipe_but_not_its_clips() -> None:
    paper = load_stages("paper", ["network.name=physmamba"])[0].recipe
    recipe = with_published_training(paper)
    assert recipe.data.train == paper.data.train
    assert recipe.data.test == paper.data.test
    assert recipe.seed == paper.seed
    assert (recipe.optimise.optimiser, recipe.optimise.weight_decay) == ("adam", 5e-4)
    assert (recipe.optimise.epochs, recipe.optimise.schedule, recipe.loss.main) == (
        20,
        "one-cycle",
        "pearson",
    )
    assert recipe.augment.flip == 0
    kept = with_published_training(paper, ["optimise.epochs", "data.frames"])
    assert (kept.optimise.epochs, kept.data.frames) == (15, 128)
    assert kept.optimise.lr == 3e-3


def test_physformer_is_trained_on_the_wave_of_centred_pixels() -> None:
    tables = published_tables("physformer")
    assert tables["loss"]["target"] == "wave"
    assert tables["network"] == {"size": 128, "pixels": "centred"}
    # The authors enlarge a clip by up to 15 pixels and take the 128 in the middle.
    assert tables["augment"]["scale"] == pytest.approx([128 / (128 + 15), 1])
    assert (tables["augment"]["shift"], tables["augment"]["flip"]) == (0, 0.5)
    with pytest.raises(ArgumentError, match="difference or centred"):
        registry.load("nn", "physformer").build(size=32, pixels="raw")


# --- the losses ---


def by_hand(wave: np.ndarray, low: int, high: int) -> np.ndarray:
    """The normalised power of one wave at each beat per minute, term by term."""
    wave = (wave - wave.mean()) / wave.std(ddof=1) * get_window("hann", len(wave), fftbins=False)
    n = np.arange(len(wave))
    power = np.array(
        [abs((wave * np.exp(-2j * np.pi * bpm / 60 / 30 * n)).sum()) ** 2 for bpm in range(low, high)]
    )
    return power / power.sum()


def test_physformers_terms_are_those_of_its_equations() -> None:
    rng = np.random.default_rng(0)
    wave = tone(95)[0].numpy() + rng.normal(0, 0.5, 300)
    spectrum = torch.from_numpy(by_hand(wave, 40, 180))
    terms = physformer_loss(torch.from_numpy(wave)[None], tone(72).double(), 30.0, progress=0.4)
    assert terms.cross_entropy.item() == pytest.approx(-F.log_softmax(spectrum, -1)[72 - 40].item(), abs=1e-6)
    label = np.maximum(np.exp(-((np.arange(40, 180) - 72.0) ** 2) / 2) / math.sqrt(2 * math.pi), 1e-15)
    divergence = (label * (np.log(label) - F.log_softmax(spectrum, -1).numpy())).sum()
    assert terms.divergence.item() == pytest.approx(divergence, abs=1e-6)
    expected = 0.1 * terms.correlation + 5**0.4 * (terms.cross_entropy + terms.divergence)
    assert terms.total.item() == pytest.approx(expected.item(), abs=1e-6)


def test_the_rate_counts_more_in_later_epochs() -> None:
    wave, target = tone(95), tone(72)
    first, last = (physformer_loss(wave, target, 30.0, progress=p).total.item() for p in (0.0, 0.96))
    assert last > 4 * first


@pytest.mark.parametrize("loss", [physformer_loss, rhythmformer_loss])
def test_a_wave_at_the_reference_rate_costs_least(loss: Any) -> None:
    target = tone(72)
    costs = {bpm: loss(tone(bpm), target, 30.0).total.item() for bpm in (60, 66, 72, 78, 100)}
    assert min(costs, key=lambda bpm: costs[bpm]) == 72
    wave = tone(80).clone().requires_grad_()
    loss(wave, target, 30.0).total.backward()
    assert wave.grad is not None
    assert wave.grad.abs().max() > 0


def test_rhythmformer_weighs_correlation_and_cross_entropy() -> None:
    wave, target = tone(95, 0.4), tone(72)
    terms = rhythmformer_loss(wave, target, 30.0)
    entropy = -F.log_softmax(torch.from_numpy(by_hand(wave[0].double().numpy(), 45, 150)), -1)[72 - 45].item()
    assert terms.total.item() == pytest.approx(0.2 * terms.correlation.item() + entropy, abs=1e-5)


@pytest.mark.parametrize("bpm", [47, 72, 149])
def test_the_rate_of_a_reference_does_not_depend_on_its_phase(bpm: int) -> None:
    references = torch.cat([tone(bpm, phase) + 3 for phase in (0.0, 1.0, 2.0)])
    assert (reference_bpm(references, 30.0, (40, 180)) - bpm).abs().max() <= 1
    assert bpm_spectrum(references, 30.0, torch.arange(40, 180)).sum(-1).tolist() == pytest.approx([1.0] * 3)


def test_waves_of_unlike_shapes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="like the target"):
        physformer_loss(torch.zeros(2, 30), torch.zeros(2, 31), 30.0)
    with pytest.raises(ArgumentError, match="waves"):
        sinc_loss(torch.zeros(30), 30.0)


def test_the_squared_error_is_to_a_target_of_unit_variance() -> None:
    target = 7 * tone(72) + 2
    assert standardised_error(torch.zeros(1, 300), target).item() == pytest.approx(1, abs=1e-4)
    standard = (target - target.mean()) / target.std(correction=0)
    assert standardised_error(standard, target).item() == pytest.approx(0, abs=1e-10)


def test_sinc_wants_power_in_the_band_at_one_rate_and_many_rates_in_a_batch() -> None:
    pure, slow = sinc_loss(tone(72), 30.0), sinc_loss(tone(20), 30.0)
    assert pure.bandwidth.item() < 0.05 < 0.9 < slow.bandwidth.item()
    torch.manual_seed(0)
    noise = sinc_loss(torch.randn(4, 300), 30.0)
    assert pure.sparsity.item() < 0.2 < 0.7 < noise.sparsity.item()
    rates = torch.cat([tone(bpm) for bpm in range(44, 180, 4)])
    assert sinc_loss(rates, 30.0).variance < 0.1 * pure.variance
    assert sinc_loss(1e-6 * tone(72), 30.0).total.item() == pytest.approx(pure.total.item(), abs=1e-3)


# --- optimiser and schedule ---


@pytest.mark.parametrize("steps", [4, 10, 97])
def test_the_one_cycle_schedule_is_that_of_torch(steps: int) -> None:
    options = Optimise(lr=9e-3, schedule="one-cycle", optimiser="adam")
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.Adam([weight], lr=9e-3)
    theirs = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=9e-3, total_steps=steps)
    for step in range(steps):
        assert learning_rate(options, step, steps) == pytest.approx(theirs.get_last_lr()[0], rel=1e-6)
        beta = optimiser.param_groups[0]["betas"][0]
        assert beta1(options, step, steps) == pytest.approx(beta, rel=1e-6)
        optimiser.step()
        if step < steps - 1:
            theirs.step()


def test_other_schedules_keep_their_momentum() -> None:
    assert beta1(Optimise(betas=(0.8, 0.9)), 3, 10) == 0.8
    with pytest.raises(RecipeError, match=r"optimise\.optimiser: got 'sgd', accepted: 'adamw' or 'adam'"):
        Optimise(optimiser="sgd")


# --- training ---

SMALL: dict[str, dict[str, Any]] = {
    "phasenet": {"stem": 4, "channels": [6], "pools": [2], "expansion": 2, "asf_hidden": 4, "hidden": 8},
    "physformer": {"width": 16, "hidden": 16, "depth": 1},
    "rhythmformer": {"width": 16, "depth": 1},
    "contrast-phys": {"places": 1},
    "rhythmmamba": {"width": 16, "depth": 2},
}
SIZES = {"factorizephys": 71, "physformer": 32, "rhythmformer": 32, "bigsmall": 32}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_network_trains_with_its_published_settings(name: str, tmp_path: Path) -> None:
    """Two tiny epochs of two clips: loss, target, optimiser and schedule are the published ones."""
    network = {"name": name, "size": SIZES.get(name, 16), **SMALL.get(name, {})}
    recipe = tiny(optimise={"epochs": 2, "batch": 2}, data={"frames": 48}, watch={"validate_every": 2})
    recipe = loop.from_dict({**recipe.to_dict(), "network": network})
    published = with_published_training(
        recipe, ["network.size", "data.frames", "optimise.epochs", "optimise.batch"]
    )
    assert published.optimise.lr == published_training(name).lr
    best = loop.train(published, tmp_path, sources=([Toy(2, frames=60)], [Toy(1, frames=60, seed=1)]))
    saved = loop.load_checkpoint(best)
    assert saved.spec.target == published_training(name).target
    assert all(torch.isfinite(tensor).all() for tensor in saved.weights.values())


def test_training_without_references_uses_none(tmp_path: Path) -> None:
    """SiNC: other references leave the same weights."""

    class Wrong(Toy):
        def clip(self, index: int) -> Any:
            pixels, wave, fps, meta = super().clip(index)
            return pixels, wave[::-1].copy(), fps, meta

    recipe = tiny(loss={"main": "sinc", "auxiliary": "none"}, optimise={"epochs": 1})
    saved = [
        loop.load_checkpoint(loop.train(recipe, tmp_path / kind.__name__, sources=([kind(8)], []))).weights
        for kind in (Toy, Wrong)
    ]
    assert all(torch.equal(saved[0][name], saved[1][name]) for name in saved[0])


def test_the_command_trains_as_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["network={name='physnet', size=16}", "optimise.epochs=1", "optimise.batch=2", "data.frames=48"]
    sets += ["data.train.0.count=2", "data.train.0.seconds=2", "data.validate=[]", "network.size=16"]
    options = [part for setting in sets for part in ("--set", setting)]
    out = tmp_path / "run"
    assert cli.run(["train", "smoke", "-q", "--training", "published", *options, "-o", str(out)]) == 0
    recipe = loop.load_checkpoint(out / "last.safetensors").provenance["recipe"]
    assert (recipe["optimise"]["schedule"], recipe["loss"]["target"]) == ("one-cycle", "difference")
    assert recipe["optimise"]["epochs"] == 1
    assert cli.run(["train", "smoke", "--training", "alike", "-o", str(tmp_path / "b")]) == 2
    assert "alike" in capsys.readouterr().err


def test_facts_are_plain_values() -> None:
    facts = PublishedTraining("s", "mse", "wave", 1e-3, 1, 1, 8, 8, "Raw", options={"a": 1}).facts()
    assert facts["options"] == {"a": 1}
    assert facts["weight_decay"] == 0.0
