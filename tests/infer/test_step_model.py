"""An exported network is the network, and only it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from phase_rppg.errors import ArgumentError, UnknownNameError, WeightsError
from phase_rppg.infer import load
from phase_rppg.nn import build
from phase_rppg.nn.phasenet.model import PhaseNet
from phase_rppg.train.export import PARITY, export_network, parity

SMALL = {"size": 12, "stem": 4, "stem_stride": 2, "channels": (6, 8), "pools": (2, 1), "expansion": 2,
         "asf_hidden": 4, "hidden": 8}  # fmt: skip


def network(name: str = "phasenet-stream", **options: object) -> PhaseNet:
    torch.manual_seed(0)
    made = build(name, **{**SMALL, **options})
    assert isinstance(made, PhaseNet)
    made(
        torch.randint(0, 256, (2, 40, made.size, made.size, 3), dtype=torch.uint8)
    )  # BatchNorm sees something
    return made.eval()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "small.onnx"
    export_network(network(), path, name="small", delay_frames=4)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"name": "phasenet"},
        {"variance_channels": 0, "smooth_mask": False},
        {"zas": False, "asf": False, "derivative": False},
    ],
    ids=str,
)
def test_the_graph_computes_what_torch_does(options: dict[str, object], tmp_path: Path) -> None:
    net = network(**options)
    manifest = export_network(net, tmp_path / "x.onnx", name="x")
    assert manifest.parity <= PARITY
    assert parity(net, load(tmp_path / "x.onnx"), 60) <= PARITY


def test_any_grouping_gives_the_same_numbers(exported: Path) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (90, 12, 12, 3)).astype(np.uint8)
    model = load(exported)
    whole = model.step(frames)
    for cuts in ([1, 2, 3], [30, 60], [89]):
        again = model.fresh()
        parts = [again.step(part) for part in np.split(frames, cuts)]
        assert np.allclose(np.concatenate(parts), whole, atol=1e-5)


def test_the_state_can_be_seen_copied_and_reset(exported: Path) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (40, 12, 12, 3)).astype(np.uint8)
    model = load(exported)
    first = model.step(frames[:20])
    held = model.state
    second = model.step(frames[20:])
    model.state = held
    assert np.array_equal(model.step(frames[20:]), second)
    model.reset()
    assert np.array_equal(model.step(frames[:20]), first)
    assert {name: value.shape for name, value in model.state.items()} == dict(model.manifest.states)
    with pytest.raises(ArgumentError):
        model.state = {"z": np.zeros(3)}


def test_masks_are_weights(exported: Path) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (5, 12, 12, 3)).astype(np.uint8)
    wave, masks = load(exported).step_with_masks(frames)
    assert wave.shape == (5,)
    assert masks.shape == (5, *load(exported).manifest.mask)
    assert (masks >= 0).all()
    assert np.allclose(masks.sum((2, 3)), 1, atol=1e-5)


def test_the_manifest_says_what_a_caller_needs(exported: Path) -> None:
    model = load(exported)
    assert (model.name, model.fps, model.size, model.delay_frames) == ("small", 30.0, 12, 4)


@pytest.mark.parametrize(
    "crops",
    [np.zeros((2, 12, 12, 3)), np.zeros((12, 12, 3), np.uint8), np.zeros((0, 12, 12, 3), np.uint8),
     np.zeros((2, 10, 12, 3), np.uint8)],
    ids=lambda c: f"{c.dtype}{c.shape}",
)  # fmt: skip
def test_wrong_pictures_are_refused(exported: Path, crops: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="crops"):
        load(exported).step(crops)


def copied(exported: Path, folder: Path) -> tuple[Path, Path]:
    for suffix in (".onnx", ".json"):
        (folder / f"small{suffix}").write_bytes(exported.with_suffix(suffix).read_bytes())
    return folder / "small.onnx", folder / "small.json"


def test_a_changed_file_is_refused(exported: Path, tmp_path: Path) -> None:
    onnx, _ = copied(exported, tmp_path)
    data = bytearray(onnx.read_bytes())
    data[len(data) // 2] ^= 1
    onnx.write_bytes(data)
    with pytest.raises(WeightsError, match="checksum"):
        load(onnx)
    onnx.unlink()
    with pytest.raises(WeightsError, match="no such file"):
        load(onnx)


CHANGES = [
    ({"format": 99}, "format"),
    ({"extra": 1}, "unknown"),
    ({"sha256": None}, "missing"),
    ({"states": 3}, "wrong type"),
    ({"size": 13}, "its inputs are"),
    ({"fps": 0}, "above 0"),
    ({"file": "../small.onnx"}, "not in the folder"),
]


@pytest.mark.parametrize(("change", "says"), CHANGES, ids=lambda v: str(v))
def test_a_manifest_that_does_not_fit_is_refused(
    exported: Path, tmp_path: Path, change: dict[str, object], says: str
) -> None:
    _, manifest = copied(exported, tmp_path)
    values = {**json.loads(manifest.read_text()), **change}
    manifest.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
    with pytest.raises(WeightsError, match=says):
        load(manifest)


def test_a_foreign_onnx_file_is_refused(exported: Path, tmp_path: Path) -> None:
    from phase_rppg.fileio import sha256

    onnx, manifest = copied(exported, tmp_path)
    onnx.write_bytes(b"not a graph")
    values = {**json.loads(manifest.read_text()), "sha256": sha256(onnx)}
    manifest.write_text(json.dumps(values))
    with pytest.raises(WeightsError, match="usable ONNX"):
        load(onnx)


def test_unknown_names_are_answered_with_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="exported network"):
        load("no-such-network")


def test_running_needs_no_torch(exported: Path) -> None:
    script = (
        "import sys, numpy as np; from phase_rppg.infer import load;"
        f"load({str(exported)!r}).step(np.zeros((3, 12, 12, 3), np.uint8)); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
