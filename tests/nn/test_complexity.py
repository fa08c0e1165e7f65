"""The counter agrees with manual counts of layers and with the sizes in the paper."""

from __future__ import annotations

import json
import re

import pytest
import torch
from torch import nn as tnn
from typer.testing import CliRunner

from phase_rppg import nn
from phase_rppg.cli import build
from phase_rppg.nn import complexity
from phase_rppg.nn.phasenet import est, model
from phase_rppg.reproduce import printed_numbers

BY_HAND = [
    (tnn.Conv2d(3, 8, 5, padding=2), (2, 3, 10, 10), 3 * 8 * 25 + 8, 2 * 8 * 100 * 3 * 25),
    (tnn.Conv2d(8, 8, 3, groups=8, bias=False), (1, 8, 6, 6), 72, 8 * 16 * 9),
    (tnn.Conv2d(4, 6, 3, stride=2, padding=1), (1, 4, 9, 9), 222, 6 * 25 * 36),
    (tnn.Conv1d(4, 6, 3, dilation=2), (1, 4, 20), 78, 6 * 16 * 12),
    (tnn.Conv3d(2, 4, (3, 1, 1), groups=2), (1, 2, 5, 4, 4), 16, 4 * 3 * 16 * 3),
    (tnn.ConvTranspose1d(4, 2, 4, stride=2), (1, 4, 5), 34, 4 * 5 * 2 * 4),
    (tnn.Linear(7, 5), (3, 7), 40, 105),
    (tnn.BatchNorm2d(4), (1, 4, 3, 3), 8, 0),
    (tnn.utils.parametrizations.weight_norm(tnn.Conv1d(2, 3, 3)), (1, 2, 5), 3 + 18 + 3, 3 * 3 * 6),
]


@pytest.mark.parametrize(
    ("layer", "shape", "parameters", "macs"), BY_HAND, ids=lambda value: type(value).__name__
)
def test_layers_counted_by_hand(
    layer: tnn.Module, shape: tuple[int, ...], parameters: int, macs: int
) -> None:
    assert complexity.parameters(layer) == parameters
    assert complexity.macs(layer, torch.zeros(shape)) == macs


def test_the_paper_preset_counted_by_hand() -> None:
    """Every layer of `phasenet`, written out."""
    network = nn.build("phasenet")
    widths, outs = [64, 128, 256], [32, 64, 128]
    blocks = sum(
        (w // 4) * w + 2 * w  # expand 1×1 and its norm
        + 9 * w + 3 * w + 2 * w  # 3×3, time, norm
        + 2 * w * (w // 4) + w // 4 + w  # squeeze-excite
        + w * out + 2 * out  # project and its norm
        for w, out in zip(widths, outs, strict=True)
    )  # fmt: skip
    stem = 3 * 16 * 25 + 32
    asf = 9 * 128 * 32 + 64 + 9 * 32
    temporal = 512 + (256 * 64 + 64) + 3 * (64 * 128 * 5 + 128) + 65
    assert complexity.parameters(network) == stem + blocks + asf + temporal

    frame = 128 * 128 * 16 * 75
    for w, out, side in zip(widths, outs, (128, 64, 32), strict=True):
        frame += side**2 * (w // 4 * w + 12 * w) + (side // 2) ** 2 * w * out + 2 * w * (w // 4)
    frame += 16**2 * (9 * 128 * 32 + 9 * 32 + 128)
    frame += 256 * 64 + 3 * 64 * 128 * 5 + 64
    assert complexity.clip_macs(network, 128, 128) == 128 * frame
    assert complexity.step_macs(network, 128) == frame


def test_the_paper_preset_is_as_small_as_the_paper_says() -> None:
    network = nn.build("phasenet")
    assert complexity.parameters(network) == model.REFERENCE_PARAMETERS
    assert round(model.REFERENCE_PARAMETERS / 1e6, 2) == printed_numbers.value(
        "table5", "phasenet", "clip", "M parameters"
    )
    assert complexity.clip_macs(network, 128, 128) <= 28.3e9


def test_both_forms_of_the_paper_preset_are_counted() -> None:
    """Pooling before the projection, as this package computes it, and after it, as the paper draws it."""
    network = nn.build("phasenet")
    pooled_first = complexity.clip_macs(network, 128, 128)
    assert round(pooled_first / 1e9, 1) == 16.2
    assert round((pooled_first + network.late_pooling_macs(128)) / 1e9, 1) == 25.9


def test_the_drawn_form_is_that_of_a_network_that_pools_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks are rebuilt with the pooling after the projection, and counted; the wave is the same."""
    torch.manual_seed(0)
    network = nn.build("phasenet", size=32).eval()
    pixels = torch.randint(0, 256, (1, 8, 32, 32, 3)).float()
    computed, added = complexity.clip_macs(network, 8, 32), network.late_pooling_macs(8)
    with torch.no_grad():
        expected = network(pixels).wave
    moved = 0
    for block in network.modules():
        if isinstance(block, est.ESTBlock):
            block.project = tnn.Sequential(block.project, block.pool)
            block.pool = tnn.Identity()
            moved += 1
    assert moved == 3
    assert complexity.clip_macs(network, 8, 32) == computed + added
    with torch.no_grad():
        torch.testing.assert_close(network(pixels).wave, expected, rtol=1e-4, atol=1e-5)


def test_the_stream_preset_is_small() -> None:
    network = nn.build("phasenet-stream")
    assert complexity.parameters(network) <= 300_000
    assert complexity.step_macs(network, network.size) <= 20e6


def test_phase_models_prints_the_true_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn, "names", lambda: ["phasenet", "phasenet-oscillators", "phasenet-stream"])
    done = CliRunner().invoke(build(), ["models", "--json"])
    assert done.exit_code == 0, done.output
    paper, _, stream = json.loads(done.output)
    assert paper["causal"]
    assert paper["parameters"] == complexity.parameters(nn.build("phasenet"))
    assert paper["receptive_frames"] == 1 + 6 + 1 + 4 * 7
    assert not paper["recursive"]
    assert {form: round(count / 1e9, 1) for form, count in paper["macs_forms"].items()} == {
        "computed": 16.2,
        "drawn": 25.9,
    }
    assert paper["macs_per_clip"] == paper["macs_forms"]["computed"]
    assert stream["recursive"]
    table = CliRunner().invoke(build(), ["models"], env={"COLUMNS": "80"})
    assert "phasenet-oscillators" in table.output
    assert "…" not in table.output  # nothing is cut off
    assert re.search(r"16\.\d\d G", table.output)
    assert re.search(r"25\.\d\d G drawn", table.output)


def test_every_registered_network_can_be_built_by_name() -> None:
    assert {"phasenet", "phasenet-stream"} <= set(nn.names())
