"""A full or read-only disk: one line, exit code 4, nothing half-written, finished results stay."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from phase_rppg import fileio
from phase_rppg.cli import run
from phase_rppg.errors import OutputError

resource = pytest.importorskip("resource", reason="needs POSIX limits")
linux = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def phase(
    *arguments: str, max_bytes: int | None = None, **options: object
) -> subprocess.CompletedProcess[str]:
    """Run a command; no file may grow beyond `max_bytes`, as on a full disk."""

    def limit() -> None:
        if max_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))

    return subprocess.run(
        [sys.executable, "-m", "phase_rppg", *arguments],
        preexec_fn=limit, stderr=subprocess.PIPE, text=True, check=False, **options,
    )  # type: ignore[call-overload, no-any-return]  # fmt: skip


def assert_one_line(done: subprocess.CompletedProcess[str]) -> None:
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert done.returncode == 4, done.stderr
    assert len(errors) == 1
    assert errors[0].startswith("error: cannot write ")
    assert "Traceback" not in done.stderr


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@linux
@pytest.mark.parametrize("arguments", [["models", "--json"], ["models"], ["--help"], ["--version"]])
def test_a_full_standard_output_is_one_line_and_exit_code_4(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        assert_one_line(phase(*arguments, stdout=full))


@linux
def test_the_json_of_a_measurement_on_a_full_disk(film: Callable[[str], Path]) -> None:
    with open("/dev/full", "w") as full:
        assert_one_line(phase("measure", str(film("short")), "--model", "pos", "--json", stdout=full))


@linux
def test_a_full_standard_error_changes_no_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "phase_rppg", "measure", str(tmp_path / "missing.mp4")]
    with open("/dev/full", "w") as full:
        assert subprocess.run(command, stderr=full, check=False).returncode == 4


def test_a_plot_that_cannot_be_written_does_not_lose_the_json(
    film: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    replace = os.replace

    def full_for_pictures(source: Path, target: Path) -> None:
        if target.suffix == ".png":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full_for_pictures)
    outputs = ["--plot", str(tmp_path / "plot.png"), "--csv", str(tmp_path / "windows.csv")]
    assert run(["measure", str(film("short")), "--model", "pos", "--json", *outputs]) == 4
    out, err = capfd.readouterr()
    assert json.loads(out)["video"] == str(film("short"))
    assert err == f"error: cannot write {tmp_path / 'plot.png'}: No space left on device\n"
    assert files_in(tmp_path) == ["windows.csv"]


def test_synthetic_clips_on_a_full_disk_leave_nothing_unfinished(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    options = ["--n", "2", "--seconds", "1", "--size", "32", "--world", "studio"]
    assert_one_line(phase("synth", "--out", str(tmp_path / "clips"), *options, max_bytes=50_000))
    assert files_in(tmp_path) == ["clips", "clips/clips.json"]


def test_finished_shards_stay_when_the_disk_becomes_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scipy")
    from phase_rppg.synth import ClipJob, clips, write_clips

    append, rows = clips._NpyWriter.append, []

    def fail_later(writer: clips._NpyWriter, row: np.ndarray) -> None:
        rows.append(row)
        if len(rows) > 4:  # four arrays: the second clip
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(writer, row)

    monkeypatch.setattr(clips, "SHARD_CLIPS", 1)
    monkeypatch.setattr(clips._NpyWriter, "append", fail_later)
    job = ClipJob("studio", seconds=0.7, size=12)
    with pytest.raises(OutputError, match="shard-00001: No space left"):
        write_clips(tmp_path / "c", job, 3, workers=0)
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["clips.json", "shard-00000"]
    monkeypatch.setattr(clips._NpyWriter, "append", append)
    assert len(write_clips(tmp_path / "c", job, 3, workers=0)) == 3


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small file system")
def test_no_process_dies_of_a_signal_on_a_full_file_system(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mount.returncode:
        pytest.skip("this container cannot mount")
    try:
        options = ["--n", "2", "--seconds", "3", "--size", "64"]
        assert_one_line(phase("synth", "--out", str(tmp_path / "clips"), *options))
        assert files_in(tmp_path) == ["clips", "clips/clips.json"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_file_is_reserved_before_it_is_mapped(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    script = (
        "import tempfile; from phase_rppg.fileio import reserve\n"
        "with tempfile.TemporaryFile() as file:\n"
        "    reserve(file.fileno(), 1000)\n"
        "    try: reserve(file.fileno(), 2000)\n"
        "    except OSError as error: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], preexec_fn=limit, capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"


def test_the_rest_of_a_killed_writer_is_removed_by_the_next(tmp_path: Path) -> None:
    script = (
        "import sys, time; from phase_rppg.fileio import atomic_path\n"
        "with atomic_path(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half'); print(flush=True); time.sleep(60)\n"
    )
    target = tmp_path / "result.json"
    writer = subprocess.Popen([sys.executable, "-c", script, str(target)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    (left,) = tmp_path.iterdir()
    fileio.remove_abandoned(tmp_path)
    assert left.exists()  # its writer is alive
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    (tmp_path / ".other").write_text("not ours")
    fileio.write_text(target, "whole")
    assert files_in(tmp_path) == [".other", "result.json"]


def test_the_rest_of_another_machine_is_removed_after_a_while(tmp_path: Path) -> None:
    left = tmp_path / f".x.phase-00000000-{os.getpid()}-abcdefgh"
    left.mkdir()
    fileio.remove_abandoned(tmp_path)
    assert left.exists()
    os.utime(left, (time.time() - 3600,) * 2)
    fileio.remove_abandoned(tmp_path)
    assert not left.exists()


def test_without_a_way_to_see_the_writer_the_age_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows cannot look a process up without ending it."""
    monkeypatch.setattr(fileio, "_SEES_WRITERS", False)
    monkeypatch.setattr(os, "kill", None)
    left = tmp_path / f"{fileio.temporary_prefix('x')}abcdefgh"
    left.touch()
    fileio.remove_abandoned(tmp_path)
    assert left.exists()
    os.utime(left, (time.time() - 3600,) * 2)
    fileio.remove_abandoned(tmp_path)
    assert not left.exists()


@pytest.mark.parametrize("name", ["é" * 100, "a" * 200])
def test_a_long_name_leaves_room_for_the_temporary_part(name: str, tmp_path: Path) -> None:
    fileio.write_text(tmp_path / f"{name}.txt", "text")
    assert files_in(tmp_path) == [f"{name}.txt"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_one_line(
    film: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o500)
    assert run(["measure", str(film("short")), "--csv", str(tmp_path / "x.csv")]) == 4
    assert capfd.readouterr().err.startswith("error: cannot write ")
