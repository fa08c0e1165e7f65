"""The linearised temporal part agrees with what the network does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from phase_rppg.cli import run
from phase_rppg.errors import ArgumentError
from phase_rppg.nn import build
from phase_rppg.nn.phasenet import impulse_response
from phase_rppg.nn.phasenet.impulse_response import _wave, response
from phase_rppg.nn.phasenet.model import PhaseNet
from phase_rppg.train.checkpoint import describe, save_checkpoint

SMALL: dict[str, Any] = {
    "size": 12, "stem": 4, "channels": [6], "pools": [2], "expansion": 2, "asf_hidden": 4, "hidden": 8,
    "tcn_kernel": 3, "tcn_dilations": [1, 2],
}  # fmt: skip


def small(**options: Any) -> PhaseNet:
    torch.manual_seed(0)
    network = build("phasenet-stream", **{**SMALL, **options})
    assert isinstance(network, PhaseNet)
    return network.eval()


def walk(count: int = 60, width: int = 6) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(1))


def test_the_response_is_the_slope_of_the_wave() -> None:
    network = small(fps=15.0)
    z, lag, feature = walk(100), 2, 3
    found = response(network, z, moments=1)  # at the first moment that has a whole past
    at = found.jacobian.shape[1]
    push = torch.zeros_like(z)
    push[at - lag, feature] = 1e-2 * z[:, feature].std()
    with torch.no_grad():
        rise = _wave(network, z + push)[at] - _wave(network, z - push)[at]
    assert found.jacobian[feature, lag] == pytest.approx(float(rise) / 2e-2, rel=0.02, abs=1e-5)


def test_the_wave_of_the_features_is_the_wave_of_the_pixels() -> None:
    network = small()
    pixels = torch.randint(0, 256, (1, 30, 12, 12, 3), dtype=torch.uint8)
    with torch.no_grad():
        output = network(pixels)
        assert output.raw is not None
        torch.testing.assert_close(_wave(network, output.raw[0]), output.wave[0], rtol=1e-4, atol=1e-5)


def test_nothing_is_felt_beyond_the_receptive_field() -> None:
    network = small()
    assert response(network, walk(), moments=3).jacobian.shape == (6, network.tcn.past + 2)


def test_a_linear_network_answers_the_same_at_all_moments() -> None:
    assert response(small(gtcn=False), walk(), moments=5).linear == pytest.approx(1.0)
    assert response(small(), 2 * walk(), moments=5).linear < 0.999


def test_too_few_features_are_refused() -> None:
    with pytest.raises(ArgumentError, match="z"):
        response(small(), walk(5))


def test_the_command_draws_the_response_and_says_how_much_of_it_is_oscillators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    face = np.random.default_rng(3).integers(60, 200, (90, 12, 12, 3), dtype=np.uint8)
    monkeypatch.setattr(impulse_response, "still_face", lambda size: face)
    network, saved = small(), tmp_path / "net.safetensors"
    save_checkpoint(saved, describe("phasenet-stream", SMALL, network), network.state_dict())
    picture = tmp_path / "kernel.png"
    assert run(["explain", "--kernel", "--model", str(saved), "-o", str(picture), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["explained"] <= 1
    assert sum(c["share"] for c in facts["components"]) <= 1 + 1e-6
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_network_without_a_streaming_form_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network, saved = build("physnet", size=16), tmp_path / "net.safetensors"
    save_checkpoint(saved, describe("physnet", {"size": 16}, network), network.state_dict())
    assert run(["explain", "--kernel", "--model", str(saved)]) == 2
    assert "no streaming form" in capsys.readouterr().err
