"""Trained networks process recordings of any length, alone and in a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from phase_rppg.errors import RecipeError, WeightsError
from phase_rppg.nn import build
from phase_rppg.nn.output import IntegratedNetwork, Output
from phase_rppg.train import loop, predict
from phase_rppg.train.checkpoint import describe, load_checkpoint, save_checkpoint
from phase_rppg.train.compute import Compute
from phase_rppg.train.loader import TrainingClips
from phase_rppg.train.losses import Objective, slope
from phase_rppg.train.recipe import Loss

from .helpers import FPS, Toy, tiny


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = tiny(optimise={"epochs": 1}, loss={"auxiliary": "none"}, delay_frames=4)
    return loop.train(recipe, tmp_path_factory.mktemp("run"), sources=([Toy(8)], []))


class Mean(nn.Module):
    """A network that does not stream: the mean green value of each frame."""

    size = 8

    def forward(self, pixels: Tensor) -> Output:
        return Output(pixels[..., 1].float().mean((-1, -2)))


def test_chunks_of_a_streaming_network_equal_the_whole_clip(checkpoint: Path) -> None:
    model = predict.load(checkpoint)
    pixels = Toy(1, frames=150, size=8).clip(0)[0]
    with torch.no_grad():
        whole = model.network(torch.from_numpy(pixels[None])).wave[0, 4:].numpy()
    assert np.allclose(predict.predict_wave(model, pixels), whole, atol=1e-5)


@pytest.mark.parametrize("count", [16, 40, 64, 150])
def test_a_network_that_does_not_stream_covers_every_frame(count: int) -> None:
    model = predict.TrainedNetwork("mean", Mean(), size=8, frames=64)
    pixels = Toy(1, frames=count, size=12).clip(0)[0]
    wave = predict.predict_wave(model, pixels)
    green = pixels[..., 1].mean((1, 2))
    assert len(wave) == count
    assert np.corrcoef(wave, green)[0, 1] > 0.9


def test_clips_run_through_the_compiled_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording stub stands for torch.compile; the inner network of a predicted slope is compiled, too."""
    calls: list[int] = []

    def stub(module: nn.Module) -> Callable[[Tensor], Output]:
        def forward(pixels: Tensor) -> Output:
            calls.append(pixels.shape[1])
            return module(pixels)

        return forward

    monkeypatch.setattr(torch, "compile", stub)
    pixels = Toy(1, frames=64, size=8).clip(0)[0]
    waves = []
    for compiled in (True, False):
        compute = Compute(compile=compiled)
        model = predict.TrainedNetwork("mean", IntegratedNetwork(Mean()), size=8, frames=32, compute=compute)
        waves.append((predict.predict_wave(model, pixels), predict.predict_clips(model, pixels).values))
    assert calls == [32, 32, 32, 32]
    assert all(np.array_equal(one, other) for one, other in zip(*waves, strict=True))


@pytest.mark.parametrize("network", ["streaming", "clips"])
def test_in_a_session_the_chunk_size_does_not_change_the_wave(network: str, checkpoint: Path) -> None:
    clips = predict.TrainedNetwork("mean", Mean(), size=8, frames=24)
    model = predict.TorchModel(predict.load(checkpoint) if network == "streaming" else clips)
    pixels = Toy(1, frames=96, size=8).clip(0)[0]
    whole = model.fresh().step(pixels)
    some = model.fresh()
    parts = [some.step(part) for part in np.split(pixels, [1, 7, 30, 31, 60])]
    assert np.allclose(np.concatenate(parts), whole, atol=1e-5)
    assert model.delay_frames == (4 if network == "streaming" else 23)
    if network == "clips":
        green = pixels[..., 1].mean((1, 2))
        assert np.corrcoef(whole[23:], green[:-23])[0, 1] > 0.9


def test_imported_weights_are_loaded_too(tmp_path: Path) -> None:
    network = build("physnet", size=16)
    path = tmp_path / "p.safetensors"
    spec = describe("physnet", {"size": 16}, network, target="difference")
    save_checkpoint(path, spec, network.state_dict())
    model = predict.load(path)
    assert (model.name, model.size, model.frames) == ("physnet", 16, 128)
    assert isinstance(model.network, IntegratedNetwork)


def test_weights_of_another_network_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    other = describe("efficientphys", {"size": 16}, build("efficientphys", size=16))
    save_checkpoint(tmp_path / "mixed.safetensors", other, load_checkpoint(checkpoint).weights)
    with pytest.raises(WeightsError, match="does not fit efficientphys: missing"):
        predict.load(tmp_path / "mixed.safetensors")
    with pytest.raises(WeightsError, match="no such file"):
        predict.load(tmp_path / "none.safetensors")


def test_the_target_of_a_difference_network_is_the_slope() -> None:
    wave = torch.randn(2, 64)
    loss = Loss(auxiliary="none", warmup_frames=0, target="difference")
    objective = Objective(loss, FPS, delay_frames=0, example=Output(wave))
    assert objective(Output(3 * slope(wave)), wave).total == pytest.approx(-1, abs=1e-5)
    assert objective(Output(wave), wave).total > -0.9


CONTRAST = {
    "network": {"name": "contrast-phys", "size": 16, "places": 1},
    "loss": {"main": "contrast", "auxiliary": "none", "labelled": 0.5, "warmup_frames": 0},
    "optimise": {"epochs": 1, "batch": 2, "warmup_steps": 0, "ema": 0.0},
}


def test_a_recipe_can_choose_the_contrastive_loss(tmp_path: Path) -> None:
    values = tiny().to_dict() | {"network": CONTRAST["network"]}
    values["loss"] = CONTRAST["loss"]
    values["optimise"] = {**values["optimise"], **CONTRAST["optimise"]}
    values["data"] = {**values["data"], "clips_per_epoch": 4}
    from phase_rppg.train.recipe import from_dict

    recipe = from_dict(values)
    path = loop.train(recipe, tmp_path, sources=([Toy(6, size=16)], []))
    assert predict.load(path).name == "contrast-phys"
    labelled = [TrainingClips(recipe, [Toy(6, size=16)], 16, FPS)[(0, i)][2] for i in range(4)]
    assert labelled == [TrainingClips(recipe, [Toy(6, size=16)], 16, FPS)[(0, i)][2] for i in range(4)]
    with pytest.raises(RecipeError, match="2 or more in a forward pass"):
        from_dict({**values, "optimise": {**values["optimise"], "micro": 1}})
    with pytest.raises(RecipeError, match=r"accepted: 'pearson' or 'mse' or .* or 'contrast'"):
        from_dict({**values, "loss": {"main": "contrasts"}})


def test_the_contrastive_loss_needs_a_block() -> None:
    wave = torch.randn(2, 64)
    loss = Loss(main="contrast", auxiliary="none", warmup_frames=0)
    with pytest.raises(ValueError, match="contrast-phys"):
        Objective(loss, FPS, delay_frames=0, example=Output(wave, torch.randn(2, 64, 3)))
