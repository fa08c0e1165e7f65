"""A saved network is loaded unchanged, and unusable checkpoints are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from phase_rppg import nn
from phase_rppg.errors import OutputError, WeightsError
from phase_rppg.infer import load as load_graph
from phase_rppg.nn.phasenet.impulse_response import still_face
from phase_rppg.nn.phasenet.model import PhaseNet
from phase_rppg.train.checkpoint import FORMAT, describe, load_checkpoint, save_checkpoint
from phase_rppg.train.export import export, parity


def clip(count: int, frames: int, size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, frames, size, size, 3), generator=generator).float()


def save(path: Path, network: torch.nn.Module, target: str = "wave", **provenance: str) -> None:
    spec = describe("physnet", {"size": 16}, network, target=target)
    save_checkpoint(path, spec, network.state_dict(), provenance=provenance)


def test_a_saved_network_is_loaded_unchanged(tmp_path: Path) -> None:
    network, file = nn.build("physnet", size=16).eval(), tmp_path / "a" / "net.safetensors"
    save(file, network, made="here")
    saved = load_checkpoint(file)
    again = saved.build_network()
    assert saved.provenance == {"made": "here"}
    assert saved.resume == {}
    assert (saved.spec.name, saved.spec.size, saved.spec.frames) == ("physnet", 16, 128)
    assert not again.training
    pixels = clip(1, 8, size=16)
    with torch.no_grad():
        assert torch.equal(again(pixels).wave, network(pixels).wave)


def written(path: Path, text: str | None = None, **changes: object) -> None:
    """A file with one tensor that no network has, and a header with some values changed."""
    spec = {"name": "physnet", "options": {}, "size": 72, "fps": 30.0, "frames": 128}
    header = {"format": FORMAT, "network": spec | changes, "provenance": {}}
    metadata = {"phase": json.dumps(header) if text is None else text}
    save_file({"weights/a": torch.zeros(1)}, path, metadata=metadata)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b"junk"), "damaged"),
        (lambda path: save_file({"a": torch.zeros(1)}, path), "phase import-weights"),
        (lambda path: written(path, "{"), "header cannot be read"),
        (lambda path: written(path, '{"format": 1}'), "format 1; this version reads format 2"),
        (lambda path: written(path, depth=3), "header cannot be read"),
        (lambda path: written(path, size=0), "header cannot be read"),
        (lambda path: written(path, name="nonet"), "header cannot be used"),
        (lambda path: written(path, options={"depth": 3}), "header cannot be used"),
        (lambda path: written(path, size=64), "64 px, but its network takes 72 px"),
        (lambda path: written(path), "missing: blocks.0.0.bias, .* more; unexpected: a"),
    ],
    ids=[
        "absent", "junk", "foreign", "not JSON", "format", "field", "value", "network", "option", "size",
        "tensors",
    ],
)  # fmt: skip
def test_files_that_do_not_fit_are_refused(write: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    write(path)  # type: ignore[operator]
    with pytest.raises(WeightsError, match=says):
        load_checkpoint(path).build_network()


def test_the_output_of_a_slope_network_is_integrated(tmp_path: Path) -> None:
    network, file = nn.build("physnet", size=16).eval(), tmp_path / "net.safetensors"
    save(file, network, target="difference")
    integrated = load_checkpoint(file).build_pulse_network()
    pixels = clip(2, 8, size=16)
    with torch.no_grad():
        slope, wave = network(pixels).wave, integrated(pixels).wave
        assert torch.equal(load_checkpoint(file).build_network()(pixels).wave, slope)
    slope = slope - slope.mean(1, keepdim=True)
    torch.testing.assert_close(wave.diff(dim=1), slope[:, 1:], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(wave.mean(1), torch.zeros(2), rtol=0, atol=1e-5)


# --- the bundled checkpoint ---


def test_the_bundled_checkpoint_computes_the_wave_of_the_bundled_graph() -> None:
    graph, saved = load_graph("phasenet-stream"), load_checkpoint("phasenet-stream")
    network = saved.build_network()
    assert isinstance(network, PhaseNet)
    assert parity(network, graph) <= 1e-5  # of the wave's standard deviation, over 300 frames
    assert (saved.spec.size, saved.spec.fps) == (graph.size, graph.fps)
    assert saved.spec.delay_frames == graph.delay_frames
    assert saved.provenance["clips_seen"] == graph.manifest.training["clips_seen"]


def test_an_export_of_the_bundled_checkpoint_computes_the_wave_of_the_bundled_graph(tmp_path: Path) -> None:
    manifest = export("phasenet-stream", tmp_path / "again.onnx")
    shipped, again = load_graph("phasenet-stream"), load_graph(tmp_path / "again.onnx")
    assert dict(manifest.states) == dict(shipped.manifest.states)
    assert (manifest.name, manifest.delay_frames) == (shipped.name, shipped.delay_frames)
    pixels = still_face(36)[:150]
    want = shipped.step(pixels)
    assert abs(again.step(pixels) - want).max() <= 1e-5 * want.std()


def test_a_full_disk_is_an_output_error_and_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    network = nn.build("physnet", size=16)
    save(tmp_path / "net.safetensors", network)
    before = (tmp_path / "net.safetensors").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OutputError, match=r"cannot write .*net\.safetensors"):
            save(tmp_path / "net.safetensors", network)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [file.name for file in tmp_path.iterdir()] == ["net.safetensors"]
    assert (tmp_path / "net.safetensors").read_bytes() == before
