"""Published weights come in whole and give the published numbers, or are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from phase_rppg import nn
from phase_rppg.errors import UnknownNameError, WeightsError
from phase_rppg.nn import published_weights

from . import published
from .helpers import clip

SHAPES = {
    "physnet": published.PHYSNET,
    "factorizephys": published.FACTORIZEPHYS,
    "physmamba": published.PHYSMAMBA,
}
every_source = pytest.mark.parametrize("name", sorted(published_weights.SOURCES))


@every_source
def test_the_published_names_and_shapes_are_ours_renamed(name: str) -> None:
    names, ours = published_weights.published_names(name), nn.build(name).state_dict()
    shapes = {theirs: tuple(ours[mine].shape) for theirs, mine in names.items()}
    for optional in published_weights.SOURCES[name].optional:
        del shapes[optional]
    assert shapes == SHAPES[name]
    assert sorted(names.values()) == sorted(ours)


@every_source
def test_published_weights_give_the_published_numbers(name: str) -> None:
    state, size = published.draw(SHAPES[name]), 72 if name == "factorizephys" else 32
    network = nn.build(name, size=size).eval()
    network.load_state_dict(published_weights.convert(state, name))
    pixels = clip(2, 8, size=size)
    with torch.no_grad():
        wave = network(pixels).wave
        expected = getattr(published, name)(state, pixels)
    assert expected.std() > 1e-3
    torch.testing.assert_close(wave, expected, rtol=1e-3, atol=1e-3 * float(expected.std()))


@every_source
def test_a_file_as_people_save_it_is_read(name: str, tmp_path: Path) -> None:
    state, file = published.draw(SHAPES[name]), tmp_path / "weights.pth"
    torch.save({f"module.{key}": value for key, value in state.items()}, file)  # as DataParallel names them
    assert published_weights.guess(published_weights.read_published(file)) == name
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
            r"mis-shaped: ConvBlock1.0.weight \(16, 1, 1, 5, 5\) instead of \(16, 3, 1, 5, 5\)",
        ),
        (lambda s: s["ConvBlock2.0.bias"].fill_(float("nan")), "not finite: ConvBlock2.0.bias"),
    ],
    ids=["missing", "unexpected", "mis-shaped", "nan"],
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
        published_weights.guess({"layer.weight": torch.zeros(3)})
    with pytest.raises(UnknownNameError, match="physnet"):
        published_weights.convert(state, "physnett")


class Whole(torch.nn.Linear):
    """A pickled network: loading it would run code."""


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "no such file"),
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
def test_files_that_hold_no_weights_are_refused(write: object, says: str, tmp_path: Path) -> None:
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
        file.truncate(published_weights.MAX_BYTES + 1)
    with pytest.raises(WeightsError, match="larger than"):
        published_weights.read_published(path)
