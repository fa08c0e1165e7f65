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
from phase_rppg.datasets import base
from phase_rppg.errors import ArgumentError, InputError, UnknownNameError

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
