"""The examples of CONTRIBUTING.md work: one file adds a method, network, data set, world or command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from phase_rppg import registry
from phase_rppg.cli import run
from phase_rppg.datasets import base
from phase_rppg.errors import UsageError
from phase_rppg.signal import rate
from phase_rppg.synth import world
from phase_rppg.types import RgbTrace
from phase_rppg.video.encode import write_video

GUIDE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = {path: text for _, path, text in re.findall(r"```(python|toml) (\S+)\n(.*?)```", GUIDE, re.DOTALL)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plug-in folder with every example."""
    for path, text in EXAMPLES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path))
    return tmp_path


def test_the_guide_shows_every_kind() -> None:
    assert {path.split("/")[0] for path in EXAMPLES} == {"methods", "nn", "datasets", "worlds", "cli"}


@pytest.mark.usefixtures("folder")
def test_a_method_finds_the_rate() -> None:
    t_s = np.arange(300) / 30
    green = 100 - np.sin(2 * np.pi * 1.2 * t_s)
    trace = RgbTrace(np.stack([np.full(300, 150.0), green, green], axis=1), 30.0, 0.0, np.ones(300, bool))
    peak = rate.spectral_peak(registry.load("methods", "red-green").extract(trace))
    assert peak is not None
    assert abs(peak.bpm - 72) < 0.5


@pytest.mark.usefixtures("folder")
def test_a_network_is_built_and_answers() -> None:
    torch = pytest.importorskip("torch")
    from phase_rppg import nn

    assert nn.build("mean-green", size=4)(torch.rand(2, 9, 4, 4, 3)).wave.shape == (2, 9)


@pytest.mark.usefixtures("folder")
def test_a_data_set_is_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("data")
    frames = np.random.default_rng(0).integers(0, 255, (120, 32, 32, 3), dtype=np.uint8)
    write_video(root / "s1.mp4", frames, 30.0)
    t_s = np.arange(240) / 60
    np.savetxt(root / "s1.csv", np.stack([t_s, np.sin(2 * np.pi * 1.2 * t_s)], axis=1), delimiter=",")
    (recording,) = base.load("pairs", root)
    assert (recording.dataset, recording.subject) == ("pairs", "s1")
    assert len(list(recording.video.frames())) == 120


@pytest.mark.usefixtures("folder")
def test_a_world_is_listed_and_drawn() -> None:
    assert "resting" in world.names()
    assert world.load("resting").about == "A resting person in steady light"


@pytest.mark.usefixtures("folder")
def test_a_command_runs_and_help_lists_plug_ins(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hello", "Ada"]) == 0
    assert capsys.readouterr().out == "hello Ada\n"
    assert run(["--help"]) == 0
    assert "hello" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "plug_in"),
    [
        ("measure", "red-green"),
        ("train", "mean-green"),
        ("evaluate", "red-green"),
        ("evaluate", "pairs"),
        ("prepare", "pairs"),
        ("audit", "pairs"),
        ("synth", "resting"),
        ("calibrate", "resting"),
        ("reproduce", "mean-green"),
    ],
)
def test_the_help_of_a_command_lists_plug_ins(folder: Path, command: str, plug_in: str) -> None:
    # A new process, because help texts are made when the modules of the commands are imported.
    script = "import sys; from phase_rppg.cli import run; sys.exit(run(sys.argv[1:]))"
    environment = {**os.environ, registry.PLUGIN_VARIABLE: str(folder), "COLUMNS": "400", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script, command, "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(rf"\b{plug_in}\b", done.stdout)


def test_a_name_that_is_taken_is_refused(folder: Path) -> None:
    (folder / "methods" / "again.py").write_text('NAME = "pos"\n', encoding="utf-8")
    registry._entries.cache_clear()
    with pytest.raises(UsageError, match="'pos' is taken"):
        registry.names("methods")
    registry._entries.cache_clear()


def test_a_plug_in_that_fails_is_named(folder: Path) -> None:
    (folder / "methods" / "broken.py").write_text('NAME = "broken"\n1 / 0\n', encoding="utf-8")
    registry._entries.cache_clear()
    with pytest.raises(UsageError, match=r"broken\.py cannot be imported: ZeroDivisionError"):
        registry.load("methods", "broken")


def test_a_missing_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.PLUGIN_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="not a folder"):
        registry.names("methods")


def test_entry_points_of_other_distributions_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere_method.py").write_text(EXAMPLES["methods/red_green.py"], encoding="utf-8")
    facts = tmp_path / "elsewhere-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[phase_rppg.methods]\nred-green = elsewhere_method\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._entries.cache_clear()
    assert list(metadata.entry_points(group="phase_rppg.methods"))
    assert registry.load("methods", "red-green").__name__ == "elsewhere_method"
    registry._entries.cache_clear()
