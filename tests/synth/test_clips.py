"""Shards do not depend on workers or order, are written atomically, and can be resumed."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.errors import ArgumentError, InputError, OutputError
from phase_rppg.synth import ClipJob, Clips, write_clips
from phase_rppg.synth import clips as module

SMALL = {"frame.face_px": 40.0, "codec.name": "raw", "camera.fps": 30.0}
JOB = ClipJob("wild", seconds=0.7, size=12, seed=3, fixed=SMALL)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clips")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHARD_CLIPS", 2)
        write_clips(root, JOB, 5, workers=0)
    return root


def test_what_is_read_is_what_was_made(made: Path) -> None:
    clips = Clips(made)
    clips.verify()
    assert len(clips) == 5
    for index in (4, 0, 3):
        pixels, wave, fps, meta = clips.clip(index)
        one = JOB.make(index)
        np.testing.assert_array_equal(pixels, one.pixels)
        np.testing.assert_array_equal(wave, one.truth.wave)
        np.testing.assert_array_equal(clips.bpm(index), one.truth.bpm)
        np.testing.assert_allclose(clips.mask(index), one.truth.mask, atol=0.003)
        assert fps == 30
        assert meta["index"] == index
        assert meta["bpm"] > 0


def test_other_processes_make_the_same_clips(made: Path, tmp_path: Path) -> None:
    write_clips(tmp_path / "two", JOB, 3, workers=2)
    for index in range(3):
        np.testing.assert_array_equal(Clips(tmp_path / "two").clip(index)[0], Clips(made).clip(index)[0])


def test_an_interrupted_run_keeps_its_shards_and_ends_the_same(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARD_CLIPS", 2)

    class Stop(Exception):
        pass

    count = 0

    def stop_in_the_second_shard(ready: int) -> None:
        nonlocal count
        count += ready
        if count == 3:
            raise Stop

    with pytest.raises(Stop):
        write_clips(tmp_path / "c", JOB, 5, workers=0, done=stop_in_the_second_shard)
    first = tmp_path / "c" / "shard-00000" / "pixels.npy"
    assert len(Clips(tmp_path / "c")) == 2
    before = first.stat().st_mtime_ns
    write_clips(tmp_path / "c", JOB, 5, workers=0)
    assert first.stat().st_mtime_ns == before
    for file in sorted(made.rglob("*.npy")):
        assert file.read_bytes() == (tmp_path / "c" / file.relative_to(made)).read_bytes()
    assert not list((tmp_path / "c").glob(".*"))


def test_a_killed_command_goes_on_where_it_was_and_ends_the_same(tmp_path: Path) -> None:
    """Kill the command in the second shard, then repeat it."""
    script = (
        "import sys; from phase_rppg.synth import clips; clips.SHARD_CLIPS = 2;"
        "from phase_rppg.cli import run; sys.exit(run(sys.argv[1:]))"
    )
    options = ["--world", "phone", "--n", "6", "--seconds", "0.8", "--size", "12", "--seed", "2"]
    options += ["--codec", "h264"]

    def start(out: Path) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", script, "synth", "--out", str(out), *options, "--workers", "1"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    killed, whole = tmp_path / "killed", tmp_path / "whole"
    running = start(killed)
    deadline_s = time.monotonic() + 120
    while not (killed / ".shard-00001-unfinished").exists() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    running.kill()
    assert running.wait() == -signal.SIGKILL
    finished = sorted(killed.glob("shard-*"))
    assert finished
    assert len(finished) < 3
    before = (finished[0] / "pixels.npy").stat().st_mtime_ns
    assert start(killed).wait() == 0
    assert (finished[0] / "pixels.npy").stat().st_mtime_ns == before
    assert start(whole).wait() == 0
    files = {str(file.relative_to(whole)): file.read_bytes() for file in whole.rglob("*") if file.is_file()}
    again = {str(file.relative_to(killed)): file.read_bytes() for file in killed.rglob("*") if file.is_file()}
    assert sorted(files) == sorted(again)
    assert files == again


def test_another_job_does_not_mix_into_a_folder(made: Path) -> None:
    with pytest.raises(OutputError, match="other settings"):
        write_clips(made, ClipJob("wild", seconds=0.7, size=12, seed=4, fixed=SMALL), 5, workers=0)


def test_a_reader_can_be_sent_to_another_process(made: Path) -> None:
    clips = Clips(made)
    clips.clip(0)
    again = pickle.loads(pickle.dumps(clips))
    np.testing.assert_array_equal(again.clip(4)[0], clips.clip(4)[0])


def test_bad_folders_and_indices_are_named(made: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"clips\.json"):
        Clips(tmp_path)
    with pytest.raises(ArgumentError, match="0 … 4"):
        Clips(made).clip(5)
    with pytest.raises(ArgumentError, match="n"):
        write_clips(tmp_path, JOB, 0)


def test_damage_is_found(tmp_path: Path) -> None:
    write_clips(tmp_path, JOB, 1, workers=0)
    file = tmp_path / "shard-00000" / "pixels.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        Clips(tmp_path).verify()
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        Clips(tmp_path).clip(0)
