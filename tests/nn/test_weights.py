"""A weights file gives back the network it was made from, or says why not; and the command for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from phase_rppg import cli, nn
from phase_rppg.errors import WeightsError
from phase_rppg.nn import weights

from . import published
from .helpers import clip


def test_a_network_comes_back_as_it_was(tmp_path: Path) -> None:
    network, file = nn.build("physnet", size=16).eval(), tmp_path / "a" / "net.safetensors"
    weights.save(file, "physnet", network.state_dict(), overrides={"size": 16}, facts={"target": "wave"})
    again, facts = weights.load(file)
    assert facts == {"target": "wave"}
    assert again.size == 16
    assert not again.training
    pixels = clip(1, 8, size=16)
    with torch.no_grad():
        assert torch.equal(again(pixels).wave, network(pixels).wave)


def written(path: Path, **header: str) -> None:
    good = {"format": weights.FORMAT, "network": "physnet", "overrides": "{}", "facts": "{}"}
    save_file({"a": torch.zeros(1)}, path, metadata={**good, **header})


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b"junk"), "damaged"),
        (lambda path: save_file({"a": torch.zeros(1)}, path), "phase import-weights"),
        (lambda path: written(path, overrides="{"), "header"),
        (lambda path: written(path, overrides='{"depth": 3}'), "header"),
        (lambda path: written(path), "missing: blocks.0.0.bias, .* more; unexpected: a"),
    ],
    ids=["absent", "junk", "foreign", "header", "override", "tensors"],
)
def test_files_that_do_not_fit_are_refused(write: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    write(path)  # type: ignore[operator]
    with pytest.raises(WeightsError, match=says):
        weights.load(path)


def test_a_network_of_slopes_gives_the_wave(tmp_path: Path) -> None:
    network, file = nn.build("physnet", size=16).eval(), tmp_path / "net.safetensors"
    weights.save(
        file, "physnet", network.state_dict(), overrides={"size": 16}, facts={"target": "difference"}
    )
    summed, _ = weights.load(file)
    assert summed.size == 16
    pixels = clip(2, 8, size=16)
    with torch.no_grad():
        slope, wave = network(pixels).wave, summed(pixels).wave
    slope = slope - slope.mean(1, keepdim=True)
    torch.testing.assert_close(wave.diff(dim=1), slope[:, 1:], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(wave.mean(1), torch.zeros(2), rtol=0, atol=1e-5)


# --- phase import-weights ---


@pytest.fixture
def pth(tmp_path: Path) -> Path:
    path = tmp_path / "PURE_PhysNet_DiffNormalized.pth"
    torch.save(published.draw(published.PHYSNET), path)
    return path


def test_the_command_writes_a_network_that_gives_the_published_numbers(
    pth: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "ours.safetensors"
    assert cli.run(["import-weights", str(pth), "-o", str(out), "--size", "32"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "physnet: 79 tensors, 768,577 parameters" in said
    assert "slope" in said
    network, facts = weights.load(out)
    assert facts["target"] == "difference"
    assert facts["imported_from"] == pth.name
    pixels = clip(1, 8, size=32)
    with torch.no_grad():
        slope = published.physnet(published.draw(published.PHYSNET), pixels)
        expected = (slope - slope.mean()).cumsum(1)
        expected = expected - expected.mean()
        torch.testing.assert_close(network(pixels).wave, expected, rtol=1e-3, atol=1e-3)


def test_the_output_lies_beside_the_input_and_is_not_overwritten(
    pth: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["import-weights", str(pth)]) == 0
    assert pth.with_suffix(".safetensors").is_file()
    assert cli.run(["import-weights", str(pth)]) == 4
    assert "--force" in capsys.readouterr().err
    assert cli.run(["import-weights", str(pth), "--force", "--target", "wave"]) == 0
    assert weights.load(pth.with_suffix(".safetensors"))[1]["target"] == "wave"


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--network", "physnett"], 2, "did you mean 'physnet'"),
        (["--network", "physmamba"], 4, "missing: Block1.0.conv.weight"),
        (["--size", "3"], 2, "size"),
        (["--target", "slope"], 2, "wave or difference"),
    ],
)
def test_wrong_options_end_in_one_line(
    options: list[str], code: int, says: str, pth: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["import-weights", str(pth), *options]) == code
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
    assert not pth.with_suffix(".safetensors").exists()


def test_without_torch_the_extra_is_named() -> None:
    hidden = (
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError('No module named torch', name='torch')\n"
        "sys.meta_path.insert(0, Hide())\n"
        "from phase_rppg import cli\n"
        "sys.exit(cli.run(['import-weights', 'x.pth']))\n"
    )
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: weights need torch: pip install 'phase-rppg[train]'\n"
