"""A run that is interrupted, killed, resumed or distributed ends with the same weights."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phase_rppg import nn
from phase_rppg.errors import InputError, Interrupted, OutputError, RecipeError, WeightsError
from phase_rppg.train.checkpoint import add_prefix, load_checkpoint, save_checkpoint, strip_prefix
from phase_rppg.train.loop import Event, train, train_stages
from phase_rppg.train.recipe import Recipe, Stage, from_dict
from phase_rppg.train.training_state import learning_rate

from .helpers import Toy, tiny

SOURCES: Any = ([Toy(8)], [Toy(2, seed=1)])


def weights(folder: Path) -> str:
    """One hash of all tensors of a run, those for resuming included."""
    saved, total = load_checkpoint(folder / "last.safetensors"), hashlib.sha256()
    for name, tensor in sorted({**add_prefix("weights", saved.weights), **saved.resume}.items()):
        total.update(name.encode() + tensor.numpy().tobytes())
    return total.hexdigest()


def rows_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "log.csv").read_text().splitlines()))


def test_the_loss_falls_and_the_rate_is_found(tmp_path: Path) -> None:
    recipe = tiny(optimise={"epochs": 12}, watch={"validate_every": 24, "save_every": 24})
    train(recipe, tmp_path, sources=SOURCES)
    rows = rows_of(tmp_path)
    losses = [float(row["loss"]) for row in rows if row["loss"]]
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.3
    assert float(rows[-1]["valid_mae_bpm"]) < 3
    assert (tmp_path / "best.safetensors").exists()


def test_one_seed_gives_one_result(tmp_path: Path) -> None:
    for name in ("a", "b"):
        train(tiny(), tmp_path / name, sources=SOURCES)
    train(tiny(seed=9), tmp_path / "c", sources=SOURCES)
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


def program(recipe: Recipe, out: Path, *, resume: bool = False, sleep_s: float = 0.0) -> str:
    """A script that trains on toy clips."""
    return textwrap.dedent(f"""
        import sys, time; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
        from train.helpers import Toy
        from phase_rppg.train.loop import train
        from phase_rppg.train.recipe import from_dict
        train(from_dict({recipe.to_dict()!r}), {str(out)!r}, resume={resume},
              sources=([Toy(8)], [Toy(2, seed=1)]), on_step=lambda event: time.sleep({sleep_s}))
    """)


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def test_killed_and_resumed_is_the_same_as_never_killed(tmp_path: Path) -> None:
    recipe = tiny(optimise={"epochs": 4}, watch={"save_every": 2})
    train(recipe, tmp_path / "whole", sources=SOURCES)
    folder = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", program(recipe, folder, sleep_s=0.2)], env=environment()
    )
    deadline = time.monotonic() + 120
    while not (folder / "last.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)  # into the middle of a later step
    process.kill()
    process.wait()
    saved = load_checkpoint(folder / "last.safetensors")
    assert 0 < saved.provenance["progress"]["step"] < 8
    train(recipe, folder, resume=True, sources=SOURCES)
    assert weights(folder) == weights(tmp_path / "whole")
    steps = [row["step"] for row in rows_of(folder) if row["loss"]]
    assert steps == [str(i) for i in range(1, 9)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_the_run_goes_on_later(tmp_path: Path, number: signal.Signals) -> None:
    def interrupt(event: Event) -> None:
        if event.step == 1:
            os.kill(os.getpid(), number)

    recipe = tiny(watch={"save_every": 100})
    before = signal.getsignal(number)
    with pytest.raises(Interrupted, match="--resume") as stopped:
        train(recipe, tmp_path / "cut", sources=SOURCES, on_step=interrupt)
    assert stopped.value.exit_code == 130
    assert signal.getsignal(number) == before
    train(recipe, tmp_path / "cut", resume=True, sources=SOURCES)
    train(recipe, tmp_path / "whole", sources=SOURCES)
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_a_loss_that_is_not_a_number_stops_and_keeps_the_evidence(tmp_path: Path) -> None:
    class Poisoned(Toy):
        def clip(self, index: int) -> Any:
            pixels, wave, fps, meta = super().clip(index)
            return pixels, wave * (np.nan if index == 5 else 1), fps, meta

    with pytest.raises(InputError, match="bad-batch"):
        train(tiny(optimise={"epochs": 3}), tmp_path, sources=([Poisoned(8)], []))
    with np.load(tmp_path / "bad-batch.npz") as bad:
        assert np.isnan(bad["wave"]).any()
        assert bad["pixels"].dtype == np.uint8
    if (tmp_path / "last.safetensors").exists():
        saved = load_checkpoint(tmp_path / "last.safetensors")
        tensors = [*saved.weights.values(), *saved.resume.values()]
        assert all(torch.isfinite(tensor).all() for tensor in tensors)


def test_patience_ends_a_run_that_does_not_improve(tmp_path: Path) -> None:
    recipe = tiny(optimise={"epochs": 20, "lr": 1e-9, "ema": 0.0}, watch={"validate_every": 1, "patience": 2})
    seen: list[int] = []
    train(recipe, tmp_path, sources=SOURCES, on_step=lambda event: seen.append(event.step))
    assert seen[-1] < 40


@pytest.mark.slow
def test_two_processes_equal_one_with_the_doubled_batch(tmp_path: Path) -> None:
    recipe = tiny(optimise={"batch": 4, "micro": 2})
    train(recipe, tmp_path / "one", sources=SOURCES)
    script = tmp_path / "two.py"
    script.write_text(program(recipe, tmp_path / "two"))
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        str(script),
    ]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    torch.manual_seed(recipe.seed)
    every = nn.build(**recipe.network).state_dict()
    start = {name: value for name, value in every.items() if value.is_floating_point()}
    ends = [
        strip_prefix("network", load_checkpoint(tmp_path / n / "last.safetensors").resume)
        for n in ("one", "two")
    ]
    flat = [torch.cat([w[name].double().flatten() for name in start]) for w in (start, *ends)]
    apart, moved = (flat[1] - flat[2]).norm(), (flat[1] - flat[0]).norm()
    assert apart < 0.01 * moved  # rounding, which Adam amplifies where gradients vanish


def test_a_batch_that_cannot_be_shared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="does not divide"):
        tiny(optimise={"batch": 4, "micro": 3})


def test_a_folder_with_a_run_is_not_overwritten(tmp_path: Path) -> None:
    train(tiny(optimise={"epochs": 1}), tmp_path, sources=SOURCES)
    with pytest.raises(OutputError, match="--resume"):
        train(tiny(optimise={"epochs": 1}), tmp_path, sources=SOURCES)
    with pytest.raises(RecipeError, match="another recipe"):
        train(tiny(optimise={"epochs": 2}), tmp_path, resume=True, sources=SOURCES)


def test_a_later_stage_starts_from_an_earlier_one(tmp_path: Path) -> None:
    first = train(tiny(optimise={"epochs": 1}), tmp_path / "a", sources=SOURCES)
    later = tiny(optimise={"epochs": 1, "lr": 1e-12, "ema": 0.0}, init=str(first))
    train(later, tmp_path / "b", sources=SOURCES)
    before, after = (load_checkpoint(path).weights for path in (first, tmp_path / "b" / "last.safetensors"))
    assert torch.allclose(before["head.weight"], after["head.weight"], atol=1e-6)


def test_training_starts_from_a_bundled_checkpoint(tmp_path: Path) -> None:
    still = {"epochs": 1, "lr": 1e-12, "ema": 0.0, "norm_momentum": 1e-9}
    values = tiny(optimise=still, init="phasenet-stream").to_dict()
    values["network"] = {"name": "phasenet-stream"}
    last = train(from_dict(values), tmp_path, sources=([Toy(4, size=36)], []))
    before, after = (load_checkpoint(which).build_network() for which in ("phasenet-stream", last))
    pixels = torch.from_numpy(Toy(1, size=36).clip(0)[0][None])
    with torch.no_grad():
        was, now = before(pixels).wave, after(pixels).wave
    assert (now - was).abs().max() < 1e-3 * was.std()


STAGES = [Stage("start", tiny(seed=5)), Stage("last", tiny())]


def test_stages_up_to_a_finished_one_are_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tiny(seed=5), tmp_path / "run/start", sources=SOURCES)
    opened: list[int] = []
    monkeypatch.setattr(
        "phase_rppg.train.loop._open", lambda recipe, *_: opened.append(recipe.seed) or SOURCES
    )
    train_stages([Stage("missing", tiny(seed=8)), *STAGES], tmp_path / "run")
    assert opened == [tiny().seed]


def test_a_folder_with_a_run_is_refused_before_any_stage_is_trained(tmp_path: Path) -> None:
    train(tiny(optimise={"epochs": 1}), tmp_path, sources=SOURCES)
    with pytest.raises(OutputError, match="--resume"):
        train_stages(STAGES, tmp_path, sources=SOURCES)
    assert not (tmp_path / "start").exists()


def test_stages_are_trained_in_order_and_can_be_interrupted(tmp_path: Path) -> None:
    train(tiny(seed=5), tmp_path / "first", sources=SOURCES)
    train(tiny(init=str(tmp_path / "first/last.safetensors")), tmp_path / "second", sources=SOURCES)
    at_once, stopped = tmp_path / "at_once", tmp_path / "stopped"
    train_stages(STAGES, at_once, sources=SOURCES)
    assert weights(at_once / "start") == weights(tmp_path / "first")
    assert weights(at_once) == weights(tmp_path / "second")

    def interrupt(event: Event) -> None:
        if event.step == 1:
            os.kill(os.getpid(), signal.SIGINT)

    for _ in range(2):  # once in each of the two
        with pytest.raises(Interrupted):
            train_stages(STAGES, stopped, resume=True, sources=SOURCES, on_step=interrupt)
    train_stages(STAGES, stopped, resume=True, sources=SOURCES)
    assert weights(stopped) == weights(at_once)


def test_learning_rates_warm_up_and_cool_down() -> None:
    options = tiny(optimise={"lr": 1.0, "warmup_steps": 10}).optimise
    rates = [learning_rate(options, step, 100) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) <= 1
    assert rates[-1] == pytest.approx(0.01)
    assert all(a >= b for a, b in itertools.pairwise(rates[10:]))


BAD = {
    "missing": (lambda t: t.pop("head.weight"), "missing: head.weight"),
    "foreign": (lambda t: t.update({"x": torch.zeros(1)}), "unexpected: x"),
    "shape": (lambda t: t.update({"head.bias": torch.zeros(2)}), r"wrong shape: head.bias \(2,\) instead of"),
    "nan": (lambda t: t["head.weight"].fill_(float("nan")), "not finite: head.weight"),
}


@pytest.mark.parametrize("kind", BAD)
def test_weights_that_do_not_fit_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    from phase_rppg.train.export import export

    best = train(tiny(optimise={"epochs": 1}), tmp_path, sources=SOURCES)
    saved = load_checkpoint(best)
    spoil, says = BAD[kind]
    spoil(saved.weights)  # type: ignore[operator]
    save_checkpoint(best, saved.spec, saved.weights)
    with pytest.raises(WeightsError, match=says):
        export(best, tmp_path / "x.onnx")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    best = train(tiny(optimise={"epochs": 1}), tmp_path, sources=SOURCES)
    data = best.read_bytes()
    best.write_bytes(data[: len(data) // 2])
    with pytest.raises(WeightsError, match="damaged"):
        load_checkpoint(best)
    best.write_bytes(b"\x80\x04not a checkpoint")
    with pytest.raises(WeightsError, match="damaged"):
        load_checkpoint(best)
    with pytest.raises(WeightsError, match="no such file"):
        load_checkpoint(tmp_path / "nothing.safetensors")


def test_trained_then_exported_then_run(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from phase_rppg.cli import build
    from phase_rppg.infer import load

    best = train(tiny(optimise={"epochs": 1}, delay_frames=3), tmp_path, sources=SOURCES)
    done = CliRunner().invoke(
        build(), ["export", str(best), "--out", str(tmp_path / "net.onnx"), "--name", "mine", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["name"] == "mine"
    model = load(tmp_path / "net.onnx")
    assert (model.name, model.delay_frames, model.size) == ("mine", 3, 8)
    assert model.manifest.training["clips_seen"] == 8
    assert model.step(np.zeros((4, 8, 8, 3), np.uint8)).shape == (4,)


def test_networks_that_do_not_stream_are_trained_too(tmp_path: Path) -> None:
    recipe = tiny(network={"name": "physnet"}, loss={"auxiliary": "none"}, optimise={"epochs": 1, "batch": 2})
    plain = recipe.to_dict() | {"network": {"name": "physnet"}}
    train(from_dict(plain), tmp_path, sources=([Toy(2, size=16)], [Toy(1, size=16)]))
    assert (tmp_path / "last.safetensors").exists()


@pytest.mark.slow
def test_the_smoke_recipe_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from phase_rppg.cli import run

    monkeypatch.chdir(tmp_path)
    assert run(["train", "smoke", "--out", "run", "--quiet"]) == 0
    losses = [float(row["loss"]) for row in rows_of(tmp_path / "run") if row["loss"]]
    assert np.mean(losses[-3:]) < np.mean(losses[:3]) - 0.2
