"""`phase import-weights` converts published files to checkpoints that give the published numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from phase_rppg import cli
from phase_rppg.train.checkpoint import load_checkpoint

from . import published
from .helpers import clip


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
    assert "predicts differences of the waveform" in said
    saved = load_checkpoint(out)
    network = saved.build_pulse_network()
    assert saved.spec.target == "difference"
    assert saved.provenance["imported_from"] == pth.name
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
    assert load_checkpoint(pth.with_suffix(".safetensors")).spec.target == "wave"


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
    assert done.stderr == 'error: torch is not installed; run: pip install "phase-rppg[train]"\n'
