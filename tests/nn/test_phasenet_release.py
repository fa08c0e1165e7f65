"""The network of the public code: its size, and how it differs from the network of the paper."""

from __future__ import annotations

import torch

from phase_rppg import nn
from phase_rppg.nn import complexity
from phase_rppg.nn.phasenet import phasenet_release

from .helpers import clip


def test_it_has_the_parameters_and_the_work_of_the_public_code() -> None:
    network = nn.build("phasenet-release")
    assert complexity.parameters(network) == phasenet_release.REFERENCE_PARAMETERS
    assert round(complexity.parameters(network) / 1e6, 2) == 0.81
    assert round(complexity.clip_macs(network, 128, 128) / 1e9, 1) == 27.2


def test_parameters_counted_by_hand() -> None:
    blocks = sum(
        c * 4 * c
        + 4 * c * 9
        + 4 * c * 3
        + 2 * 4 * c * c
        + 4 * c * 2 * c  # expand, space, time, excite, project
        for c in (16, 32, 64)
    )
    stem, attention = 3 * 16 * 25 + 16, 128 * 64 * 9 + 64 + 64 * 9 + 1
    layers = sum(2 * (128 * width * 3 + 128 + 128) for width in (256, 128, 128, 128)) + 256 * 128 + 128
    recurrent = 192 * (128 + 64 + 2) + 192 * (64 + 64 + 2)
    dense = 2 * (128 * 128 + 128) + 64 * 32 + 32 + 33
    assert stem + blocks + attention + layers + recurrent + dense == phasenet_release.REFERENCE_PARAMETERS


def test_the_shift_looks_ahead_and_loses_an_eighth_of_the_channels() -> None:
    x = torch.randn(2, 16, 5, 3, 3)
    y = phasenet_release.Shift()(x)
    assert torch.equal(y[:, :2, :-1], x[:, :2, 1:])
    assert (y[:, :2, -1] == 0).all()
    assert (y[:, 2:4] == 0).all()
    assert torch.equal(y[:, 4:], x[:, 4:])


def test_depthwise_layers_are_3d_convolutions() -> None:
    x = torch.randn(2, 6, 5, 7, 7)
    for layer in (phasenet_release.SpaceConv(6), phasenet_release.TimeConv(6)):
        expected = torch.nn.functional.conv3d(x, layer.weight, padding=layer.padding, groups=6)
        torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)


def test_a_later_frame_changes_earlier_outputs() -> None:
    network, pixels = nn.build("phasenet-release", size=16).eval(), clip(1, 12, size=16)
    other = pixels.clone()
    other[:, -1] = 255 - other[:, -1]
    with torch.no_grad():
        assert not torch.allclose(network(pixels).wave[:, 0], network(other).wave[:, 0], atol=1e-7)
