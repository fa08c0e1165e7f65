"""Devices, mixed precision and memory layouts, as far as a CPU can test them.

CUDA and MPS are not run. The device `meta` refuses to mix its tensors with those of a CPU, so a network that
creates a tensor on the wrong device fails here.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phase_rppg import nn
from phase_rppg.errors import ArgumentError, RecipeError, UsageError
from phase_rppg.train import loop, predict
from phase_rppg.train.checkpoint import load_checkpoint
from phase_rppg.train.compute import Compute
from phase_rppg.train.loader import Batch
from phase_rppg.train.loop import train
from phase_rppg.train.losses import Objective
from phase_rppg.train.recipe import Loss
from phase_rppg.train.training_state import TrainState

from .helpers import Toy, tiny
from .test_loop import SOURCES, weights

CPU = torch.device("cpu")


def present(monkeypatch: pytest.MonkeyPatch, *, cuda: bool, mps: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(("cuda", "mps", "chosen"), [(1, 1, "cuda"), (0, 1, "mps"), (0, 0, "cpu")])
def test_auto_takes_the_fastest_device(
    cuda: bool, mps: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    present(monkeypatch, cuda=bool(cuda), mps=bool(mps))
    assert Compute("auto").resolve().type == chosen
    assert Compute("auto").backend == ("nccl" if chosen == "cuda" else "gloo")
    assert Compute("auto").pins_memory == (chosen == "cuda")
    assert Compute("cpu").resolve() == CPU


def test_each_process_of_torchrun_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    present(monkeypatch, cuda=True, mps=False)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert Compute("cuda").resolve() == torch.device("cuda", 3)


def test_what_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    present(monkeypatch, cuda=False, mps=False)
    with pytest.raises(UsageError, match="--device cuda: this installation of torch finds no such device"):
        Compute("cuda").resolve()
    with pytest.raises(ArgumentError, match="auto, cpu, cuda, mps"):
        Compute("gpu")
    with pytest.raises(ArgumentError, match="bf16 or fp32 on a CPU"):
        Compute("cpu", "fp16")
    with pytest.raises(ArgumentError, match="fp32, bf16, fp16"):
        Compute("cpu", "fp8")


SMALL: dict[str, dict[str, Any]] = {
    "physformer": {"size": 32, "width": 16, "hidden": 16, "depth": 1},
    "rhythmformer": {"size": 32, "width": 16, "depth": 1},
    "rhythmmamba": {"size": 16, "width": 16, "depth": 2},
    "factorizephys": {"size": 71},
    "contrast-phys": {"size": 16, "places": 1},
}


@pytest.mark.parametrize("name", nn.names())
def test_a_training_step_stays_on_its_device(name: str) -> None:
    """Forward, loss and backward on the device `meta`; a tensor of the CPU in between is an error."""
    network = nn.build(name, **SMALL.get(name, {"size": 32}))
    size = int(network.size)  # type: ignore[arg-type]
    with torch.no_grad():
        example = network.eval()(torch.zeros(1, 64, size, size, 3))
    auxiliary = "none" if example.raw is None else "latent"
    objective = Objective(Loss(auxiliary=auxiliary), 30.0, delay_frames=0, example=example).to("meta")
    network = network.train().to("meta")
    batch = Batch(
        torch.zeros(2, 64, size, size, 3, dtype=torch.uint8), torch.zeros(2, 64), torch.ones(2).bool(),
        torch.zeros(2, size, size),
    ).to(torch.device("meta"))  # fmt: skip
    terms = objective(network(batch.pixels), batch.wave, batch.labelled, batch.skin)
    terms.total.backward()
    assert terms.total.device.type == "meta"
    assert all(p.grad is None or p.grad.device.type == "meta" for p in network.parameters())


def test_a_batch_moves_with_all_its_parts() -> None:
    batch = Batch(torch.zeros(1, 2, 4, 4, 3), torch.zeros(1, 2), torch.ones(1), torch.zeros(1, 4, 4))
    moved = batch.to(torch.device("meta"))
    assert {t.device.type for t in (moved.pixels, moved.wave, moved.labelled, moved.skin)} == {"meta"}
    assert batch.to(CPU).pixels is batch.pixels  # the CPU path copies nothing


def test_mixed_precision_trains_and_resumes_exactly(tmp_path: Path) -> None:
    mixed, recipe = Compute("cpu", "bf16"), tiny(optimise={"epochs": 2})
    train(recipe, tmp_path / "whole", sources=SOURCES, compute=mixed)
    train(recipe, tmp_path / "full", sources=SOURCES)
    assert weights(tmp_path / "whole") != weights(tmp_path / "full")
    saved = load_checkpoint(tmp_path / "whole" / "last.safetensors")
    assert saved.provenance["compute"] == {"device": "cpu", "precision": "bf16"}
    assert all(t.dtype != torch.bfloat16 for t in saved.weights.values())

    class Stopped(Exception):
        pass

    def stop(event: Any) -> None:
        if event.step == 2:
            raise Stopped

    with pytest.raises(Stopped):
        train(recipe, tmp_path / "cut", sources=SOURCES, on_step=stop, compute=mixed)
    with pytest.raises(RecipeError, match="was made with --precision bf16"):
        train(recipe, tmp_path / "cut", resume=True, sources=SOURCES)
    train(recipe, tmp_path / "cut", resume=True, sources=SOURCES, compute=mixed)
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_the_layout_changes_only_the_rounding(tmp_path: Path) -> None:
    for name, compute in (("plain", Compute()), ("last", Compute(channels_last=True))):
        train(tiny(optimise={"epochs": 1}), tmp_path / name, sources=SOURCES, compute=compute)
    plain, last = (load_checkpoint(tmp_path / n / "last.safetensors").weights for n in ("plain", "last"))
    for name, tensor in plain.items():
        assert torch.allclose(tensor.float(), last[name].float(), atol=1e-2), name


def test_compilation_wraps_the_network_that_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording stub stands for torch.compile, which takes minutes on a CPU."""
    calls: list[int] = []

    def stub(module: torch.nn.Module) -> Any:
        def forward(pixels: torch.Tensor) -> Any:
            calls.append(len(pixels))
            return module(pixels)

        return forward

    monkeypatch.setattr(torch, "compile", stub)
    train(tiny(), tmp_path / "compiled", sources=SOURCES, compute=Compute(compile=True))
    train(tiny(), tmp_path / "plain", sources=SOURCES)
    assert calls == [4, 4, 4, 4]
    assert weights(tmp_path / "compiled") == weights(tmp_path / "plain")


def test_a_loss_scaler_skips_overflows_and_is_saved(tmp_path: Path) -> None:
    """The scaler of float16 runs on a CPU too; it halves its scale after an overflow."""
    network = nn.build("phasenet-stream", **{k: v for k, v in tiny().network.items() if k != "name"})
    state = TrainState(network, torch.nn.Identity(), tiny().optimise)
    state.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    before = [p.detach().clone() for p in state.parameters]
    for factor, scale in ((float("inf"), 512.0), (1.0, 512.0)):
        state.optimiser.zero_grad()
        loss = sum((p.sum() for p in state.parameters), torch.zeros(()))
        state.scaled(loss * factor).backward()
        state.scaler.unscale_(state.optimiser)
        state.update_weights()
        assert state.scaler.get_scale() == scale
        changed = any(not torch.equal(a, b) for a, b in zip(before, state.parameters, strict=True))
        assert changed == (factor == 1.0)
    spec = load_checkpoint("phasenet-stream").spec
    state.save(tmp_path / "last.safetensors", spec, {})
    fresh = TrainState(network, torch.nn.Identity(), tiny().optimise)
    fresh.scaler = torch.amp.GradScaler("cpu")
    fresh.load(load_checkpoint(tmp_path / "last.safetensors"))
    assert fresh.scaler.state_dict()["scale"] == 512.0


def test_predictions_in_mixed_precision_are_close() -> None:
    pixels = Toy(1, frames=300, size=36).clip(0)[0]
    loaded = (predict.load("phasenet-stream", Compute("cpu", name)) for name in ("fp32", "bf16"))
    full, mixed = (predict.predict_wave(model, pixels) for model in loaded)
    assert not np.array_equal(full, mixed)
    assert np.corrcoef(full[60:], mixed[60:])[0, 1] > 0.999


def test_processes_wait_for_hours_while_the_first_one_generates_clips(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The default of torch is 10 minutes for NCCL, after which it stops all processes."""
    joined: dict[str, object] = {}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
    monkeypatch.setattr(
        torch.distributed, "init_process_group", lambda backend, **more: joined.update(more, backend=backend)
    )
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    assert loop.join_processes(Compute()) == (1, 2)
    assert joined["backend"] == "gloo"
    assert isinstance(joined["timeout"], timedelta)
    assert joined["timeout"] >= timedelta(days=1)


def test_the_first_process_works_before_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for rank, order in ((0, ["work", "barrier"]), (1, ["barrier", "work"])):
        seen: list[str] = []
        monkeypatch.setattr(torch.distributed, "barrier", lambda seen=seen: seen.append("barrier"))
        with loop.first_process_first(rank, 2):
            seen.append("work")
        assert seen == order
    with loop.first_process_first(0, 1):  # no other process: no barrier
        pass
