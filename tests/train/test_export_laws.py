"""An exported graph is kept only when it computes what the network computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from phase_rppg import nn
from phase_rppg.errors import UsageError, WeightsError
from phase_rppg.infer import load
from phase_rppg.infer.manifest import INPUT, MASK
from phase_rppg.infer.manifest import WAVE as WAVE_NAME
from phase_rppg.nn.output import Output
from phase_rppg.nn.phasenet.fold_batchnorm import fold
from phase_rppg.nn.phasenet.model import PhaseNet
from phase_rppg.nn.phasenet.phasenet_stream import build
from phase_rppg.train import export
from phase_rppg.train.checkpoint import describe, save_checkpoint
from phase_rppg.train.export import PARITY, export_network, parity

from .helpers import tiny

SMALL = {"size": 12, "stem": 4, "stem_stride": 2, "channels": (6, 8), "pools": (2, 1), "expansion": 2,
         "asf_hidden": 4, "hidden": 8}  # fmt: skip


def network(seed: int = 0) -> PhaseNet:
    torch.manual_seed(seed)
    made = build(**SMALL)
    made(torch.randint(0, 256, (2, 40, made.size, made.size, 3), dtype=torch.uint8))  # BatchNorm statistics
    return made.eval()


def scaled(factor: float) -> Callable[[PhaseNet], PhaseNet]:
    """A faulty fold: the last layer is multiplied by `factor`."""

    def faulty(net: PhaseNet) -> PhaseNet:
        made = fold(net)
        with torch.no_grad():
            *_, (_, last) = made.named_parameters()
            last.mul_(factor)
        return made

    return faulty


@pytest.mark.parametrize("factor", [1.01, float("nan")])
def test_a_graph_that_differs_from_the_network_is_refused_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    monkeypatch.setattr(export, "fold", scaled(factor))
    with pytest.raises(WeightsError, match="differs from torch"):
        export_network(network(), tmp_path / "x.onnx", name="x")
    assert list(tmp_path.iterdir()) == []


def test_a_difference_at_its_limit_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "parity", lambda *_: PARITY)
    assert export_network(network(), tmp_path / "x.onnx", name="x").parity == PARITY


def test_parity_tells_another_network_apart(tmp_path: Path) -> None:
    export_network(network(), tmp_path / "x.onnx", name="x")
    model = load(tmp_path / "x.onnx")
    assert parity(network(), model, 40) <= PARITY
    assert parity(network(1), model, 40) > 100 * PARITY


# ---- the comparison itself ---------------------------------------------------------------------------------


class Whole:
    """A network whose wave for a whole clip is given."""

    size = 4

    def __init__(self, wave: np.ndarray) -> None:
        self.config, self.wave = SimpleNamespace(fps=30.0), wave
        self.clips: list[torch.Tensor] = []

    def eval(self) -> Whole:
        return self

    def __call__(self, pixels: torch.Tensor) -> Output:
        self.clips.append(pixels)
        return Output(torch.from_numpy(self.wave[None]))


class Stepped:
    """A graph that returns `wave`, plus `error` at frame 17 if frames come singly (or, else, in groups)."""

    def __init__(self, wave: np.ndarray, error: float = 0.0, singly: bool = True) -> None:
        self.wave, self.error, self.singly, self.count = wave, error, singly, 0

    def fresh(self) -> Stepped:
        return Stepped(self.wave, self.error, self.singly)

    def step(self, crops: np.ndarray) -> np.ndarray:
        assert crops.dtype == np.uint8
        first, self.count = self.count, self.count + len(crops)
        answer = self.wave[first : self.count].copy()
        if first <= 17 < self.count and (len(crops) == 1) == self.singly:
            answer[17 - first] += self.error
        return answer


WAVE = np.sin(np.arange(50) / 3)


@pytest.mark.parametrize("singly", [True, False])
@pytest.mark.parametrize("error", [0.0, 0.2, -0.2])
def test_parity_is_the_largest_error_of_one_frame_in_standard_deviations(error: float, singly: bool) -> None:
    found = parity(Whole(WAVE), Stepped(WAVE, error, singly), 50)  # type: ignore[arg-type]
    assert found == pytest.approx(abs(error) / WAVE.std())


def test_parity_with_a_flat_wave_is_the_plain_difference() -> None:
    flat = np.zeros(50)
    assert parity(Whole(flat), Stepped(flat, 0.2), 50) == pytest.approx(0.2)  # type: ignore[arg-type]


def test_parity_is_measured_on_pictures_that_change() -> None:
    net = Whole(WAVE)
    parity(net, Stepped(WAVE), 50)  # type: ignore[arg-type]
    (clip,) = net.clips
    assert clip.shape == (1, 50, 4, 4, 3)
    assert clip.dtype == torch.uint8
    pixels = clip[0].float()
    assert pixels.std(0).min() > 1  # over time
    assert pixels.mean(0).std() > 20  # over the frame


def test_the_clip_of_the_comparison_is_a_scene_with_a_pulse_of_72_bpm_and_noise() -> None:
    """300 frames: a scene between 30 and 220, a sine of 3 grey levels at 1.2 Hz, noise of 2 grey levels."""
    net = Whole(np.sin(np.arange(300) / 3))
    net.size = 16
    parity(net, Stepped(net.wave))  # type: ignore[arg-type]
    pixels = net.clips[0][0].double().numpy()
    assert len(pixels) == 300
    scene = pixels.mean(0)
    assert (round(scene.min()), round(scene.max())) == (30, 219)
    phasor = 2 * (pixels.mean((1, 2, 3)) @ np.exp(-2j * np.pi * 1.2 * np.arange(300) / 30)) / 300
    assert phasor == pytest.approx(-3j, abs=0.05)  # a sine that begins at zero
    beat = 3 * np.sin(2 * np.pi * 1.2 * np.arange(300) / 30)[:, None, None, None]
    assert (pixels - scene - beat).std() == pytest.approx(np.sqrt(2**2 + 1 / 12), rel=0.02)


# ---- what is written ---------------------------------------------------------------------------------------


def test_an_export_leaves_two_files_and_the_difference_it_found(tmp_path: Path) -> None:
    net = network()
    manifest = export_network(net, tmp_path / "x.onnx", name="x", delay_frames=2, training={"a": 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.json", "x.onnx"]
    assert 0 < manifest.parity <= PARITY
    assert manifest.parity == pytest.approx(parity(net, load(tmp_path / "x.onnx")))
    kept = load(tmp_path / "x.onnx").manifest
    assert (kept.name, kept.delay_frames, kept.training, kept.parity) == ("x", 2, {"a": 1}, manifest.parity)
    assert export_network(net, tmp_path / "y.onnx", name="y").delay_frames == 0


@pytest.mark.parametrize("pools", [(2, 2, 1), (1, 2, 2)])
def test_the_masks_of_a_network_with_three_stages_have_the_declared_shape(
    tmp_path: Path, pools: tuple[int, ...]
) -> None:
    options = {"size": 24, "channels": (6, 8, 8), "pools": pools, "stem_stride": 1}
    torch.manual_seed(0)
    net = build(**{**SMALL, **options})
    net(torch.randint(0, 256, (2, 40, 24, 24, 3), dtype=torch.uint8))
    manifest = export_network(net.eval(), tmp_path / "x.onnx", name="x")
    _, masks = load(tmp_path / "x.onnx").step_with_masks(np.zeros((3, 24, 24, 3), np.uint8))
    assert masks.shape == (3, *manifest.mask)


def test_the_graph_has_operator_set_17_and_time_is_its_only_free_axis(tmp_path: Path) -> None:
    export_network(network(), tmp_path / "x.onnx", name="x")
    model = onnx.load(str(tmp_path / "x.onnx"))
    assert [(item.domain, item.version) for item in model.opset_import] == [("", 17)]
    graph = model.graph
    for item in [*graph.input, *graph.output]:
        sizes = [axis.dim_param or axis.dim_value for axis in item.type.tensor_type.shape.dim]
        if item.name in (INPUT, WAVE_NAME, MASK):
            assert sizes[0] == "t"
            sizes = sizes[1:]
        if item in graph.input:
            assert all(isinstance(size, int) and size > 0 for size in sizes)


def graph_with(operator: str, weight_axes: int, constant: bool = True) -> onnx.ModelProto:
    """A graph of one node, whose second input has so many axes."""
    weight = numpy_helper.from_array(np.zeros((1,) * weight_axes, np.float32), "w")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1] * weight_axes)]
    if not constant:
        inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1] * weight_axes))
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node(operator, ["x", "w"], ["y"])
    return helper.make_model(helper.make_graph([node], "g", inputs, [output], [weight] if constant else []))


@pytest.mark.parametrize(
    ("operator", "weight_axes", "constant"),
    [("Conv", 5, True), ("Loop", 4, True), ("Scan", 4, True), ("If", 4, True)],
)
def test_operators_that_browsers_lack_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str, weight_axes: int, constant: bool
) -> None:
    made = graph_with(operator, weight_axes, constant)
    monkeypatch.setattr(export, "_write", lambda _, path: onnx.save(made, str(path)))
    with pytest.raises(WeightsError, match=f"uses {operator}"):
        export_network(network(), tmp_path / "x.onnx", name="x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("operator", "weight_axes", "constant"),
    [("Conv", 4, True), ("Conv", 3, True), ("Conv", 5, False), ("Add", 5, True)],
)
def test_operators_that_browsers_have_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operator: str, weight_axes: int, constant: bool
) -> None:
    """The graph passes the check of operators and fails only where it is loaded."""
    made = graph_with(operator, weight_axes, constant)
    monkeypatch.setattr(export, "_write", lambda _, path: onnx.save(made, str(path)))
    with pytest.raises(WeightsError) as caught:
        export_network(network(), tmp_path / "x.onnx", name="x")
    assert "uses" not in str(caught.value)


# ---- checkpoints -------------------------------------------------------------------------------------------


def checkpoint_of(folder: Path, only: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A checkpoint of an untrained network, without a training run; `only` replaces the network's table."""
    recipe = tiny(**changes)
    recipe = recipe if only is None else dataclasses.replace(recipe, network=only)
    name, options = recipe.network_options()
    torch.manual_seed(0)
    net = nn.build(name, **options)
    facts = {"recipe": dataclasses.asdict(recipe), "clips_seen": 7, "score": 0.5, "version": "1"}
    spec = describe(name, options, net, delay_frames=recipe.delay_frames, target=recipe.loss.target)
    save_checkpoint(folder / "net.safetensors", spec, net.state_dict(), provenance=facts)
    return folder / "net.safetensors"


def test_a_checkpoint_is_exported_with_its_facts(tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path, delay_frames=3)
    manifest = export.export(path, tmp_path / "out.onnx")
    assert manifest.name == "phasenet-stream"
    assert manifest.delay_frames == 3
    facts = manifest.training
    assert (facts["clips_seen"], facts["score"], facts["version"]) == (7, 0.5, "1")
    assert facts["recipe"]["network"]["name"] == "phasenet-stream"
    assert export.export(path, tmp_path / "out.onnx", name="mine").name == "mine"
    net, _ = export.load_streaming(path)
    assert not net.training
    assert parity(net, load(tmp_path / "out.onnx"), 40) <= PARITY


@pytest.mark.parametrize(
    ("answer", "commit"),
    [(SimpleNamespace(stdout="0123abc\n"), "0123abc"), (OSError("no git"), None)],
    ids=["repository", "no-git"],
)
def test_an_export_names_the_commit_of_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, commit: str | None
) -> None:
    def run(*_: object, **__: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(export.subprocess, "run", run)
    assert export.export(checkpoint_of(tmp_path), tmp_path / "out.onnx").training["commit"] == commit


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"only": {"name": "physnet"}, "loss": {"auxiliary": "none"}}, "no streaming form"),
        ({"loss": {"target": "difference"}}, "slope of the pulse"),
    ],
)
def test_what_has_no_wave_in_a_stream_is_refused(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        export.load_streaming(checkpoint_of(tmp_path, **changes))
