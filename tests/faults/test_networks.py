"""Crafted arrays, calibrations, manifests of networks and weights: refused before they take memory."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks import crafted_files as crafted

from faults.crafted import is_refused, phase
from phase_rppg.datasets import cache
from phase_rppg.errors import InputError
from phase_rppg.infer import manifest
from phase_rppg.session import calibration

BUNDLED_CALIBRATION = Path(calibration.__file__).parent / "calibrations" / "pos.json"
BUNDLED_MANIFEST = Path(manifest.__file__).parent / "weights" / "phasenet-stream.json"


def entry_in(folder: Path) -> cache.Entry:
    return cache.Entry(folder, "d", "s", "n", {}, "k", 30.0, 8, 5, 0.0, 1.0)


@pytest.mark.parametrize("make", [crafted.npy_with_code, crafted.npy_many_values])
def test_npy_that_is_no_plain_array_is_refused(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHASE_ATTACK", str(tmp_path / "attacked"))
    make(tmp_path / "wave.npy")
    with pytest.raises(InputError, match=r"pickled|expected"):
        _ = entry_in(tmp_path).wave
    assert not (tmp_path / "attacked").exists()


def test_npy_of_the_right_kind_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "wave.npy", np.arange(5, dtype=np.float32))
    assert np.array_equal(entry_in(tmp_path).wave, np.arange(5))
    with open(tmp_path / "wave.npy", "ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="its header says"):
        _ = entry_in(tmp_path).wave


@pytest.mark.parametrize(
    "change",
    [
        {"thresholds": {"ok": -5}}, {"thresholds": {"ok": math.nan}}, {"thresholds": {"alive": 2}},
        {"thresholds": {"alive": "0.9"}}, {"thresholds": {"memory_s": -1}},
        {"thresholds": {"alive": 0.5, "kept_alive": 0.6}}, {"thresholds": {"other": 1}},
        {"limits": None}, {"alive": {"features": []}}, {"ok": {"bias": math.inf}}, {"ok": {"bias": 10**400}},
        {"interval": {"floor_bpm": True}}, {"interval": {"floor_bpm": -1.0}}, {"interval": {"scales": {}}},
        {"snr_db": {"std": 0}}, {"snr_db": {"std": math.nan}},
        {"snr_db": {"low": 1e9}}, {"snr_db": {"mean": None}},
    ],
    ids=str,
)  # fmt: skip
def test_calibration_with_a_wrong_value_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    values = json.loads(BUNDLED_CALIBRATION.read_text())
    if "snr_db" in change:
        values["ok"]["features"]["snr_db"] |= change["snr_db"]
    for key, changed in change.items():
        if key in values:
            values[key] = changed and values[key] | changed
    (tmp_path / "c.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match="not a calibration file"):
        calibration.read(tmp_path / "c.json")


def test_bundled_calibrations_and_manifests_are_accepted() -> None:
    for file in BUNDLED_CALIBRATION.parent.glob("*.json"):
        calibration.read(file)
    manifest.load_manifest(BUNDLED_MANIFEST)


@pytest.mark.parametrize(
    "change",
    [
        {"fps": "30"}, {"fps": math.nan}, {"fps": True}, {"parity": 10**400}, {"size": 1e300},
        {"size": 36.5}, {"size": None},
        {"states": {"a": [2**40]}}, {"states": {"a": [2**20, 2**20]}}, {"states": {"a": [-1]}},
        {"states": {"a": "xyz"}}, {"mask": [1, 2]}, {"mask": "123"}, {"name": 3}, {"file": ["x"]},
        {"file": ""}, {"sha256": 5}, {"training": []}, {"delay_frames": -1}, {"parity": "small"},
        {"calibration": {}},
    ],
    ids=lambda change: str(change)[:40],
)  # fmt: skip
def test_network_manifest_with_a_wrong_type_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    values = json.loads(BUNDLED_MANIFEST.read_text()) | change
    (tmp_path / "m.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"wrong type|more than|not in the folder"):
        manifest.load_manifest(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (crafted.onnx_loop(), "Loop|inside operators"),
        (crafted.onnx_custom_operator(), "custom operator"),
        (crafted.onnx_external_data(), "another file"),
        (crafted.onnx_huge_tensor(), "not a usable ONNX file"),
        (b"\xff" * 100, "damaged"),
        (b"", "no graph"),
    ],
    ids=["loop", "custom_operator", "external_data", "huge_tensor", "noise", "empty"],
)
def test_unsafe_network_is_refused(model: bytes, says: str, tmp_path: Path) -> None:
    from phase_rppg.errors import WeightsError
    from phase_rppg.infer import load

    path = crafted.onnx_network(tmp_path, model)
    with pytest.raises(WeightsError, match=says):
        load(path)


# ---- weights


@pytest.mark.parametrize("make", [crafted.pth_deflated, crafted.pth_expanded, crafted.pth_with_code])
def test_published_weights_with_a_bomb_or_code_are_refused(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from phase_rppg.nn.published_weights import read_published

    monkeypatch.setenv("PHASE_ATTACK", str(tmp_path / "attacked"))
    path = make(tmp_path / "w.pth")
    assert path.stat().st_size < 4e6
    with pytest.raises(InputError, match=r"unpacks to 2048 MB|declares 11444 MB of values|more than tensors"):
        read_published(path)
    assert not (tmp_path / "attacked").exists()


@pytest.mark.parametrize("size", ["0", "-1", "40000"])
def test_import_for_a_huge_picture_is_refused(size: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = phase("import-weights", tmp_path / "w.pth", "--network", "deepphys", "--size", size)
    assert is_refused(done, code=2)
    assert "--size" in done.stderr


def test_checkpoint_that_asks_for_a_huge_network_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from phase_rppg.errors import WeightsError
    from phase_rppg.train import checkpoint

    spec = checkpoint.NetworkSpec("phasenet", {"width": 10**6}, 128, 30.0, 160)
    checkpoint.save_checkpoint(tmp_path / "x.safetensors", spec, {"a": torch.zeros(1)})
    with pytest.raises(WeightsError):
        checkpoint.load_checkpoint(tmp_path / "x.safetensors").build_network()
