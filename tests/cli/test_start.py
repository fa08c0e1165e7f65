"""The start of `phase measure` stays short: it imports and opens what it needs, and nothing twice.

Counts are of modules and networks, not of time. `python -m benchmarks run start` measures the time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from phase_rppg import registry
from phase_rppg.cli import build
from phase_rppg.infer import onnx
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.video import write_video
from plain_face import FPS, frames, seconds, tone

# The process pool serves several videos, the progress bar a terminal, the others other commands.
UNUSED = {
    "multiprocessing",
    "concurrent.futures",
    "rich.progress",
    "rich.console",
    "matplotlib",
    "scipy",
    "torch",
}
MEASURE = """
import json, sys
from phase_rppg.cli import run
run(["measure", sys.argv[1], "--quiet", "--json"])
print("\\n" + json.dumps(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules that are imported after a quiet measurement of one video."""
    video = tmp_path_factory.mktemp("start") / "a.mp4"
    t_s = seconds(1)
    write_video(video, [frame.rgb for frame in frames(t_s, 0.01 * tone(t_s, 75))], FPS)
    environment = {name: value for name, value in os.environ.items() if name != registry.PLUGIN_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(video)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_one_quiet_measurement_imports_what_it_needs(modules: set[str]) -> None:
    assert "phase_rppg.cli.measure" in modules
    assert not modules & UNUSED


def test_the_modules_of_other_commands_are_not_imported(modules: set[str]) -> None:
    others = {"audit", "demo", "doctor", "evaluate", "live", "prepare", "serve", "synth", "train"}
    assert not modules & {f"phase_rppg.cli.{name}" for name in others}


def test_all_commands_are_known_without_a_command() -> None:
    names = registry.names("cli")
    for argv in ([], ["--help"], ["mesure"]):
        assert sorted(str(command.name) for command in build(argv).registered_commands) == names
    assert [command.name for command in build(["demo", "--help"]).registered_commands] == ["demo"]


def test_a_bundled_network_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    original = onnx._open

    def count(model: bytes, file: Path, *more: Any) -> Any:
        opened.append(file)
        return original(model, file, *more)

    monkeypatch.setattr(onnx, "_open", count)
    onnx._bundled.cache_clear()
    first, second = (MeasureOptions().config().model for _ in range(2))
    assert len(opened) == 1
    assert first is not second  # each has a state of its own


def test_the_distributions_are_read_once_for_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    original, reads = metadata.entry_points, []

    def count(**selection: str) -> Any:
        reads.append(selection)
        return original(**selection)

    monkeypatch.setattr(registry.metadata, "entry_points", count)
    registry._entries.cache_clear()
    registry._entry_points.cache_clear()
    for group in ("cli", "methods", "datasets"):
        assert registry.names(group)
    assert len(reads) == 1
