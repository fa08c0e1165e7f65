"""Special files, manifests and limits: one line of text, exit code 4, bounded memory and time.

The name of a test is a row of the table of faults: input, then result.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import pytest
from attacks import crafted_files as crafted

from faults.crafted import is_refused, phase, recording_folder
from phase_rppg import fileio, limits
from phase_rppg.datasets import base, cache, vipl_hr
from phase_rppg.errors import ArgumentError, InputError, RecordingError, UnknownNameError

# ---- files that are no regular files


@pytest.mark.parametrize("what", ["fifo", "device", "folder", "link_loop"])
def test_measure_of_a_special_file_is_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "device":
        path = Path("/dev/zero")
    elif what == "link_loop":
        path.symlink_to(path)
    else:
        path.mkdir()
    assert is_refused(phase("measure", path, timeout_s=30))


@pytest.mark.parametrize("what", ["fifo", "device"])
def test_special_file_in_a_manifest_is_excluded(what: str, tmp_path: Path) -> None:
    root = recording_folder(tmp_path, reference="p.csv")
    if what == "fifo":
        os.mkfifo(root / "p.csv")
    else:
        (root / "p.csv").symlink_to("/dev/zero")
    done = phase("prepare", "folder", root, "--out", tmp_path / "c", "--allow-outside", timeout_s=30)
    assert done.returncode == 4
    assert "is a device, a pipe or a socket" in done.stderr


def test_fifo_that_replaces_a_file_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "x.json")
    monkeypatch.setattr(fileio, "check_regular", lambda path: os.stat(path))  # the file was replaced after it
    with pytest.raises(InputError, match="not a regular file"):
        fileio.read_json(tmp_path / "x.json")


# ---- manifests


@pytest.mark.parametrize("way", ["parent", "absolute", "link", "folder_link"])
def test_manifest_that_points_outside_is_refused(way: str, tmp_path: Path) -> None:
    outside = tmp_path / "secret.csv"
    outside.write_text(crafted.TABLE)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link.csv").symlink_to(outside)
    (tmp_path / "root" / "up").symlink_to(tmp_path)
    names = {"parent": "../secret.csv", "absolute": str(outside), "link": "link.csv"}
    root = recording_folder(tmp_path / "root", reference=names.get(way, "up/secret.csv"))
    with pytest.raises(InputError, match="--allow-outside"):
        base.find("folder", root)
    assert base.find("folder", root, allow_outside=True)


@pytest.mark.parametrize("target", ["outside.png", "inside.png", "loop"])
def test_folder_of_pictures_that_links_outside_is_refused(target: str, tmp_path: Path) -> None:
    root = recording_folder(tmp_path / "root", "frames")
    pictures = root / "frames"
    pictures.mkdir()
    (tmp_path / "outside.png").touch()
    (root / "inside.png").touch()
    where = {"outside.png": tmp_path / "outside.png", "inside.png": root / "inside.png", "loop": "1.png"}
    (pictures / "1.png").symlink_to(where[target])
    if target == "inside.png":
        assert len(base.find("folder", root)) == 1
    else:
        with pytest.raises(InputError, match="--allow-outside"):
            base.find("folder", root)
    assert len(base.find("folder", root, allow_outside=True)) == 1


def test_links_in_a_loop_of_folders_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "Videos").mkdir()
    (tmp_path / "Videos" / "F001_T1.mkv").touch()
    for number in range(200):  # 200³ folders for a search that follows all of them
        (tmp_path / f"loop{number}").symlink_to(tmp_path)
    start_s = time.monotonic()
    assert [found.name for found in base.find("v4v", tmp_path)] == ["F001_T1"]
    assert time.monotonic() - start_s < 10


def test_times_of_frames_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "p1" / "v1" / "source1"
    folder.mkdir(parents=True)
    for times in ("0\nnan\n66\n", "0\ninf\n66\n"):
        (folder / "time.txt").write_text(times)
        with pytest.raises(RecordingError, match=r"time\.txt holds NaN or infinity"):
            vipl_hr._times_s(base.Found("p1", "p1", folder / "video.avi", folder / "wave.csv"))


def test_a_long_name_of_a_recording_fits_into_a_name_of_a_folder(tmp_path: Path) -> None:
    for name in ("x" * 5000, "心" * 5000):
        cache.entry_path(tmp_path, "folder", name, "0" * 64).mkdir(parents=True)
    assert cache.entry_path(tmp_path, "d", "subject1", "0" * 64).name == "subject1-" + "0" * 16


@pytest.mark.parametrize("name", ["²1.png", "³.png", "①.png"])
def test_digits_of_any_kind_in_names_of_pictures_are_sorted(name: str, tmp_path: Path) -> None:
    for each in (name, "1.png", "2.png"):
        (tmp_path / each).write_bytes(b"x")
    done = phase("measure", tmp_path, "--fps", "30")
    assert is_refused(done)
    assert "cannot be read" in done.stderr


def test_manifest_with_dots_inside_its_folder_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert base.find("folder", recording_folder(tmp_path, reference="sub/../v.csv"))


@pytest.mark.parametrize("command", ["prepare", "audit", "evaluate"])
def test_command_refuses_a_manifest_that_points_outside(command: str, tmp_path: Path) -> None:
    root = recording_folder(tmp_path / "root", reference="../v.csv")
    (tmp_path / "v.csv").write_text(crafted.TABLE)
    words = {
        "prepare": ["prepare", "folder", root, "--out", tmp_path / "c"],
        "audit": ["audit", "folder", root, "--out", tmp_path / "a.html"],
        "evaluate": ["evaluate", "folder", root],
    }[command]
    assert is_refused(done := phase(*words))
    assert "--allow-outside" in done.stderr


def test_manifest_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    root = recording_folder(tmp_path)
    (root / "manifest.csv").write_bytes(b"video,reference\n\xff\xfe.mp4,x.csv\n")
    assert is_refused(done := phase("prepare", "folder", root, "--out", tmp_path / "c"))
    assert "not UTF-8" in done.stderr


def test_manifest_with_a_long_field_is_refused(tmp_path: Path) -> None:
    root = recording_folder(tmp_path)
    (root / "manifest.csv").write_text("video,reference\n" + "v" * (csv.field_size_limit() + 1) + ",x.csv\n")
    with pytest.raises(InputError, match="csv_field"):
        base.find("folder", root)


def test_manifest_with_too_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "manifest_rows=10")
    root = recording_folder(tmp_path)
    (root / "manifest.csv").write_text(
        "video,reference,name\n" + "".join(f"v.mp4,v.csv,n{i}\n" for i in range(10))
    )
    assert len(base.find("folder", root)) == 10
    with open(root / "manifest.csv", "a") as file:
        file.write("v.mp4,v.csv,n10\n")
    with pytest.raises(InputError, match="more than 10 rows"):
        base.find("folder", root)


def test_manifest_of_many_rows_is_read_quickly(tmp_path: Path) -> None:
    root = recording_folder(tmp_path)
    rows = "".join(f"v.mp4,v.csv,n{i}\n" for i in range(50_000))
    (root / "manifest.csv").write_text("video,reference,name\n" + rows)
    started_s = time.perf_counter()
    assert len(base.find("folder", root)) == 50_000
    assert time.perf_counter() - started_s < 20


@pytest.mark.parametrize("name", ["²", "٣", "9" * 5000], ids=["superscript", "arabic", "long"])
def test_digits_of_any_kind_in_names_are_sorted(name: str) -> None:
    assert sorted([name, "b1"], key=base.natural_key)


# ---- raising limits


def test_limits_are_raised_by_the_option_and_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "label_mb=3")
    limits.raise_limits(["samples=5", "label_mb=7"])
    assert (limits.current().samples, limits.current().label_mb) == (5, 7)
    assert limits.current().json_mb == limits.InputLimits().json_mb


def test_wrong_limit_is_refused() -> None:
    assert is_refused(phase("--max", "labels=3", "models"), 2)
    assert is_refused(phase("--max", "label_mb=-3", "models"), 2)
    with pytest.raises(UnknownNameError, match="label_mb"):
        limits.raise_limits(["label_m=5"])
    with pytest.raises(ArgumentError):
        limits.raise_limits(["label_mb=nan"])


def test_the_table_of_limits_is_that_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {default:,.0f} | {text} |" for name, default, text in limits.table()]
    assert "\n".join(rows) in page


@pytest.mark.parametrize(
    ("text", "says"),
    [("\n# no video\n\n", "names no videos"), ("a.mp4\n" * 1000, "has too many lines; the limit is 100")],
)
def test_list_of_videos_without_or_with_too_many_lines_is_refused(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limits.VARIABLE, "manifest_rows=100")
    (tmp_path / "videos.txt").write_text(text)
    done = phase("measure", f"@{tmp_path / 'videos.txt'}")
    assert is_refused(done)
    assert says in done.stderr
