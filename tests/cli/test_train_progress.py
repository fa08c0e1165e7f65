"""The progress of `phase train` states what is done, the rate and the time left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from phase_rppg.cli.train_progress import LINE_INTERVAL_S, TrainProgress, duration


def test_durations_are_readable() -> None:
    assert [duration(s) for s in (0.4, 5, 65, 3600, 90000)] == [
        "0:00:00",
        "0:00:05",
        "0:01:05",
        "1:00:00",
        "1 d 1 h",
    ]


def test_clips_and_steps_have_a_rate_and_a_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    from phase_rppg.train.loop import Event
    from phase_rppg.train.sources import ClipProgress

    now_s = [0.0]
    progress = TrainProgress(clock=lambda: now_s[0])
    progress.on_clips(ClipProgress(0, 100, 0, "", "first"))
    progress.on_clips(ClipProgress(40, 100, 0, "clips", "first"))  # of an earlier run
    for made in range(1, 61):
        now_s[0] += 2.0
        progress.on_clips(ClipProgress(40 + made, 100, made, "clips", "first"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "stage first: 100 generated clips"
    assert lines[1] == "making clips: 41 of 100, 0.50 clips/s, 0:01:58 left, in clips"
    assert lines[-1] == "making clips: 100 of 100, 0.50 clips/s, 0:00:00 left, in clips"
    assert len(lines) <= 2 + 120 / LINE_INTERVAL_S + 1

    progress.on_step(Event(10, 50, -0.5, 0.5, 24.0, 2.0, None))
    assert capsys.readouterr().err == (
        "training first: step 10 of 50, loss -0.500, r +0.500, 24.0 clips/s, 0:00:20 left\n"
    )
    progress.on_step(Event(11, 50, -0.5, 0.5, 24.0, 2.0, None))
    assert capsys.readouterr().err == ""  # too early for the next line


def test_the_hidden_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with TrainProgress(hidden=True) as progress:
        progress.say("text")
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_run_explains_itself_and_stays_in_its_folder(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = ["train", "smoke", "--out", "run", "--set", "optimise.epochs=1", "--set", "data.train.0.count=4"]
    done = subprocess.run(
        [sys.executable, "-m", "phase_rppg", *words],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0] == "recipe smoke: smoke; results in run"
    clips, step = (next(line for line in lines if line.startswith(word)) for word in ("making", "training"))
    assert re.match(r"making clips: 1 of 8, [\d.]+ clips/s, \d:\d\d:\d\d left, in run/clips", clips)
    assert re.match(r"training smoke: step 1 of 1, loss .* clips/s, 0:00:00 left", step)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert done.stdout == "checkpoint: run/best.safetensors\n"
