"""Imported weights give the published numbers; tensors that do not fit are refused by name."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest
import torch

from phase_rppg import limits, nn
from phase_rppg.errors import UnknownNameError, WeightsError
from phase_rppg.nn import published_weights

from . import published
from .helpers import clip

NETWORKS = published_weights.networks()
SHAPES = {name: getattr(published, name.upper().replace("-", "_")) for name in NETWORKS}
# (frames, size) of a test clip: whole windows of a shift, and enough regions for the routed attention.
CLIPS = dict.fromkeys(NETWORKS, (8, 32)) | {
    "deepphys": (10, 72), "ts-can": (20, 72), "efficientphys": (20, 72), "factorizephys": (8, 72),
    "physformer": (8, 64), "rhythmformer": (32, 64), "bigsmall": (6, 144),
}  # fmt: skip
every_source = pytest.mark.parametrize("name", NETWORKS)


def test_every_network_with_a_published_layout_can_be_imported() -> None:
    # Nobody has published weights of the first three; the tensors of RhythmMamba are not ours renamed, and
    # those of ME-rPPG have no names.
    others = {"phasenet", "phasenet-stream", "phasenet-oscillators", "rhythmmamba", "me-rppg"}
    assert set(NETWORKS) == set(nn.names()) - others


@every_source
def test_the_published_names_and_shapes_are_ours_renamed(name: str) -> None:
    names, ours = published_weights.published_names(name), nn.build(name).state_dict()
    shapes = {theirs: tuple(ours[mine].shape) for theirs, mine in names.items()}
    layout = published_weights.layout_of(name)
    for optional in layout.optional:
        del shapes[optional]
    used = {k: v for k, v in SHAPES[name].items() if not any(fnmatch(k, p) for p in layout.ignored)}
    assert shapes == used
    assert sorted(names.values()) == sorted(ours)


@every_source
def test_published_weights_give_the_published_numbers(name: str) -> None:
    state, (frames, size) = published.draw(SHAPES[name]), CLIPS[name]
    network = nn.build(name, size=size).eval()
    network.load_state_dict(published_weights.convert(state, name))
    pixels = clip(2, frames, size=size)
    with torch.no_grad():
        wave = network(pixels).wave
        expected = getattr(published, name.replace("-", "_"))(state, pixels)
    assert expected.std() > 1e-3
    torch.testing.assert_close(wave, expected, rtol=1e-3, atol=1e-3 * float(expected.std()))


@every_source
def test_a_file_as_people_save_it_is_read(name: str, tmp_path: Path) -> None:
    state, file = published.draw(SHAPES[name]), tmp_path / f"PURE_{name}.pth"
    torch.save({f"module.{key}": value for key, value in state.items()}, file)  # as DataParallel names them
    assert published_weights.recognise(published_weights.read_published(file), file) == name
    if name != "physnet":
        return
    plain = published_weights.convert(state, name)
    for wrapped in ({"state_dict": state}, {"model_state_dict": state, "epoch": torch.tensor(3)}):
        torch.save(wrapped, file)
        again = published_weights.convert(published_weights.read_published(file), name)
        assert all(torch.equal(again[key], plain[key]) for key in plain)


def test_the_offset_that_gpu_files_lack_keeps_its_start_and_others_keep_theirs() -> None:
    state = published.draw(published.FACTORIZEPHYS)
    assert published_weights.convert(state, "factorizephys")["offset"] == 1
    assert (
        published_weights.convert({**state, "rppg_head.bias1": torch.tensor(0.4)}, "factorizephys")["offset"]
        == 0.4
    )


def test_networks_with_the_same_tensors_are_told_apart_by_the_file_name() -> None:
    state = published.draw(published.DEEPPHYS)
    assert published_weights.recognise(state, "there/PURE_TSCAN.pth") == "ts-can"
    assert published_weights.recognise(state, "there/SCAMPS_DeepPhys.pth") == "deepphys"
    with pytest.raises(WeightsError, match="fits deepphys and ts-can; state the network with --network"):
        published_weights.recognise(state, "there/best.pth")


@pytest.mark.parametrize(("size", "inputs"), [(36, 3136), (72, 16384), (96, 30976), (128, 57600)])
def test_the_size_is_that_of_the_dense_layer(size: int, inputs: int) -> None:
    state = published.draw(published.EFFICIENTPHYS | {"final_dense_1.weight": (128, inputs)})
    assert published_weights.published_size(state, "efficientphys") == size
    nn.build("efficientphys", size=size).load_state_dict(published_weights.convert(state, "efficientphys"))
    with pytest.raises(WeightsError, match=r"wrong shape: final_dense_1\.weight"):
        published_weights.convert(state, "efficientphys", size=48)
    assert published_weights.published_size(published.draw(published.PHYSNET), "physnet") is None


def test_counters_that_old_torch_did_not_save_may_be_missing() -> None:
    state = {
        key: value for key, value in published.draw(published.PHYSNET).items() if "num_batches" not in key
    }
    published_weights.convert(state, "physnet")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda s: s.pop("ConvBlock4.0.weight"), "missing: ConvBlock4.0.weight"),
        (lambda s: s.update(extra=torch.zeros(1)), "unexpected: extra"),
        (
            lambda s: s.update({"ConvBlock1.0.weight": torch.zeros(16, 1, 1, 5, 5)}),
            r"wrong shape: ConvBlock1.0.weight \(16, 1, 1, 5, 5\) instead of \(16, 3, 1, 5, 5\)",
        ),
        (lambda s: s["ConvBlock2.0.bias"].fill_(float("nan")), "not finite: ConvBlock2.0.bias"),
    ],
    ids=["missing", "unexpected", "wrong shape", "nan"],
)
def test_what_does_not_fit_is_refused_by_name(change: object, says: str) -> None:
    state = published.draw(published.PHYSNET)
    change(state)  # type: ignore[operator]
    with pytest.raises(WeightsError, match=says):
        published_weights.convert(state, "physnet", "there.pth")


def test_weights_of_another_network_are_refused() -> None:
    state = published.draw(published.PHYSMAMBA)
    with pytest.raises(WeightsError, match=r"and \d+ more"):
        published_weights.convert(state, "physnet")
    with pytest.raises(WeightsError, match="not a published state dict"):
        published_weights.recognise({"layer.weight": torch.zeros(3)})
    with pytest.raises(UnknownNameError, match="physnet"):
        published_weights.convert(state, "physnett")


class Whole(torch.nn.Linear):
    """A pickled network: loading it would run code."""


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b""), "damaged"),
        (lambda path: path.write_bytes(b"not a torch file at all"), "more than tensors|damaged"),
        (lambda path: torch.save(Whole(2, 2), path), "state_dict"),
        (lambda path: torch.save(torch.zeros(3), path), "not a state dict"),
        (lambda path: torch.save({}, path), "not a state dict"),
        (lambda path: torch.save({"a": 3}, path), "not tensors: a"),
        (lambda path: truncated(path), "damaged"),
    ],
    ids=["absent", "folder", "empty", "text", "object", "tensor", "nothing", "number", "truncated"],
)
def test_files_without_weights_are_refused(write: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    write(path)  # type: ignore[operator]
    with pytest.raises(WeightsError, match=says):
        published_weights.read_published(path)


def truncated(path: Path) -> None:
    torch.save(published.draw(published.FACTORIZEPHYS), path)
    path.write_bytes(path.read_bytes()[:5000])


def test_a_huge_file_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "weights.pth"
    with open(path, "wb") as file:
        file.truncate(int(limits.current().published_mb * 2**20) + 1)
    with pytest.raises(WeightsError, match="larger than"):
        published_weights.read_published(path)
