"""Crafted labels, recipes and MATLAB files: refused within limits, and never quoted in a message."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attacks import crafted_files as crafted

from faults.crafted import found, is_refused, peak_mb, phase
from phase_rppg import fileio
from phase_rppg.datasets import base, folder, matlab, pure
from phase_rppg.errors import InputError, RecipeError, RecordingError

MEMORY_MB = 1024  # of a command, beyond what it needs for a good file


# ---- labels


def refuses_label(path: Path, read: Callable[[], Any], *says: str) -> None:
    with pytest.raises(InputError) as caught:
        read()
    text = str(caught.value)
    assert "\n" not in text
    assert "secret" not in text.replace(str(path), "")
    for part in says:
        assert part in text


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".xmp", ".json"])
def test_message_about_a_label_never_quotes_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"label{suffix}"
    path.write_text(f"{crafted.SECRET},{crafted.SECRET}\n{crafted.SECRET}\n")
    refuses_label(path, lambda: folder.read_reference(found(path)))


def test_message_about_a_row_never_quotes_it(tmp_path: Path) -> None:
    path = tmp_path / "label.csv"
    path.write_text(f"t_s,ppg\n0,1\n{crafted.SECRET},2\n")
    refuses_label(path, lambda: folder.read_reference(found(path)), "not a table of numbers")
    path = crafted.pure_package(tmp_path / "label.json", crafted.SECRET)
    refuses_label(path, lambda: folder.read_reference(found(path)), "no valid Timestamp")


def test_message_about_a_manifest_never_quotes_it(tmp_path: Path) -> None:
    (tmp_path / "manifest.csv").write_text(f"{crafted.SECRET},{crafted.SECRET}\n")
    refuses_label(tmp_path, lambda: base.find("folder", tmp_path), "a column reference, video", "2 columns")


def test_large_label_file_is_refused_before_reading(tmp_path: Path) -> None:
    for suffix in (".csv", ".txt", ".json"):
        path = tmp_path / f"label{suffix}"
        with open(path, "wb") as file:
            file.truncate(2**40)  # a sparse file of 1 TB
        refuses_label(path, lambda path=path: folder.read_reference(found(path)), "label_mb")


READ_LABEL = """
import sys
from pathlib import Path
from phase_rppg.datasets import base, folder
from phase_rppg.errors import InputError
path = Path(sys.argv[1])
try:
    print(len(folder.read_reference(base.Found("x", "x", path, path)).t_s))
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("suffix", "head", "line", "says"),
    [
        (".txt", "", "1 ", "more than 1e+07 values"),
        (".xmp", "", "1,2,3,4\n", "more than 1e+07 values"),
        (".csv", "t_s,ppg\n", "0,1\n", "9000000"),
    ],
)
def test_label_of_many_short_values_needs_bounded_memory(
    suffix: str, head: str, line: str, says: str, tmp_path: Path
) -> None:
    path = tmp_path / f"label{suffix}"
    count = 9_000_000 if suffix == ".csv" else 60_000_000 // len(line)
    path.write_text(head + line * count)
    memory_mb, text = peak_mb(READ_LABEL, path)
    assert says in text
    assert memory_mb < MEMORY_MB


@pytest.mark.parametrize(
    "stamp", [2**63, -(2**80), 10**400, 1e300, math.inf], ids=["2^63", "-2^80", "10^400", "1e300", "inf"]
)
def test_pure_timestamp_out_of_range_is_refused(stamp: float, tmp_path: Path) -> None:
    path = crafted.pure_package(tmp_path / "label.json", stamp)
    with pytest.raises(RecordingError, match=r"out of range|no valid Timestamp|decrease"):
        base.to_waveform("s", folder.read_reference(found(path)))


def test_pure_picture_with_a_huge_timestamp_is_refused(tmp_path: Path) -> None:
    (tmp_path / f"Image{'9' * 40}.png").touch()
    package = {"/FullPackage": [{"Timestamp": 0, "Value": {"waveform": 1}}]}
    (tmp_path / "label.json").write_text(json.dumps(package))
    with pytest.raises(RecordingError, match="out of range"):
        pure.read_reference(base.Found("s", "s", tmp_path, tmp_path / "label.json"))


def test_label_of_many_years_is_refused() -> None:
    t_s = np.append(np.arange(300) / 30, 1e12)
    with pytest.raises(RecordingError, match="too many samples"):
        base.to_waveform("x", base.Reference(t_s, np.arange(301.0)))


# ---- JSON and TOML


@pytest.mark.parametrize("make", [crafted.deep_json, crafted.deep_toml, crafted.dotted_toml])
def test_deep_file_is_refused(make: Callable[[Path], Path], tmp_path: Path) -> None:
    is_json = make is crafted.deep_json
    path = make(tmp_path / ("x.json" if is_json else "x.toml"))
    with pytest.raises(InputError, match="depth"):
        fileio.read_json(path) if is_json else fileio.read_toml(path)


def test_brackets_in_texts_are_not_depth(tmp_path: Path) -> None:
    value = {"a": "[" * 1000 + "]" * 3000, "b": ["[" * 1000]}
    assert fileio.parse_json(json.dumps(value), "x") == value


def test_deep_recipe_is_refused(tmp_path: Path) -> None:
    assert is_refused(phase("train", crafted.deep_toml(tmp_path / "x.toml"), "--out", tmp_path / "run"))


def test_world_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_bytes(b'about = "\xff"')
    from phase_rppg.synth import world

    with pytest.raises(InputError, match="not UTF-8"):
        world.load(str(tmp_path / "w.toml"))


def test_recipe_with_a_number_out_of_range_is_refused() -> None:
    pytest.importorskip("torch")
    from phase_rppg.train import recipe

    with pytest.raises(RecipeError, match="finite"):
        recipe.load_stages("smoke", [f"optimise.lr={10**400}"])


# ---- MATLAB files


READ_MAT = """
import sys
from pathlib import Path
from phase_rppg.datasets import matlab
from phase_rppg.errors import RecordingError
try:
    matlab.read("x", Path(sys.argv[1]), (sys.argv[2],))
except RecordingError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("make", "field", "says"),
    [
        (crafted.mat_v73_many_samples, "GT_ppg", "declares 1e+08 values of GT_ppg"),
        (crafted.mat_v73_loop, "PPG", "not a readable MATLAB file"),
        (crafted.mat_v5_many_samples, "GT_ppg", "declares 2e+09 values of GT_ppg"),
        (crafted.mat_v5_long_name, "GT_ppg", "not a readable MATLAB file"),
        (crafted.mat_v5_sparse, "GT_ppg", "not a readable MATLAB file"),
    ],
    ids=["v73_samples", "v73_loop", "v5_samples", "v5_name", "v5_sparse"],
)
def test_mat_bomb_is_refused_in_bounded_memory(
    make: Callable[[Path], Path], field: str, says: str, tmp_path: Path
) -> None:
    path = make(tmp_path / "p1_0.mat")
    assert path.stat().st_blocks * 512 < 4e6  # on the disk
    memory_mb, text = peak_mb(READ_MAT, path, field)
    assert says in text
    assert memory_mb < MEMORY_MB


def test_mat_video_of_a_huge_shape_is_refused(tmp_path: Path) -> None:
    path = crafted.mat_v5_many_samples(tmp_path / "p1_0.mat", "video")
    with pytest.raises(RecordingError, match="shape"):
        matlab.MatVideo(path, "x", 30.0).count()


@pytest.mark.parametrize("way", ["external storage", "external link", "soft link", "virtual dataset"])
def test_hdf5_that_reads_another_file_is_refused(way: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py", reason="h5py is missing: the extra mat73")
    path = crafted.hdf5_elsewhere(tmp_path / "data.hdf5", way)
    with pytest.raises(RecordingError, match="stores pulse in another file"):
        matlab.read("x", path, ("pulse",))


def test_hdf5_that_links_to_a_fifo_does_not_block(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py", reason="h5py is missing: the extra mat73")
    os.mkfifo(tmp_path / "fifo")
    with h5py.File(tmp_path / "data.hdf5", "w") as file:
        file["pulse"] = h5py.ExternalLink(str(tmp_path / "fifo"), "/pulse")
    start_s = time.monotonic()
    with pytest.raises(RecordingError, match="in another file"):
        matlab.read("x", tmp_path / "data.hdf5", ("pulse",), optional=("absent",))
    assert time.monotonic() - start_s < 30  # the guarded process would be ended after 60 s


@pytest.mark.parametrize("value", [crafted.SECRET, {"a": 1.0}, np.array([1j, 2]), np.zeros(0, object)])
def test_mat_variable_that_is_no_array_of_numbers_is_refused(value: Any, tmp_path: Path) -> None:
    with pytest.raises(RecordingError) as caught:
        matlab.numbers("x", tmp_path / "p.mat", "GT_ppg", value)
    assert str(caught.value) == "x: p.mat: GT_ppg is not an array of numbers"


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("mmpd", "subject1/p1_0.mat", {"GT_ppg": crafted.SECRET}),
        ("mmpd", "subject1/p1_0.mat", {"GT_ppg": {"a": 1.0}}),
        ("mmpd", "subject1/p1_0.mat", {"skin_color": math.nan}),
        ("scamps", "P000001.mat", {"d_ppg": crafted.SECRET}),
        ("buaa_mihr", "Sub 01/lux 31.6/lux31.6_PPGData.mat", {"PPG": {"data": np.zeros(99), "fs": []}}),
        ("buaa_mihr", "Sub 01/lux 31.6/lux31.6_PPGData.mat", {"PPG": {"data": crafted.SECRET, "fs": 64}}),
        ("buaa_mihr", "Sub 01/lux 31.6/lux31.6_PPGData.mat", {"PPG": crafted.SECRET}),
    ],
)
def test_mat_label_of_a_wrong_type_is_excluded(
    name: str, file: str, content: dict[str, Any], tmp_path: Path
) -> None:
    savemat = pytest.importorskip("scipy.io", reason="scipy is missing: the extra research").savemat
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    good = {
        "video": np.zeros((90, 8, 8, 3), np.uint8), "Xsub": np.zeros((90, 8, 8, 3), np.uint8),
        "GT_ppg": np.sin(np.arange(90) / 5), "light": "LED", "motion": "still", "exercise": True,
        "skin_color": 3.0, "gender": "m", "glasser": False, "hair_cover": False, "makeup": False,
    }  # fmt: skip
    savemat(path, good | content)
    (tmp_path / "Sub 01/lux 31.6").mkdir(parents=True, exist_ok=True)
    (tmp_path / "Sub 01/lux 31.6/lux31.6.avi").touch()
    found = base.survey(name, tmp_path)
    assert found.recordings == ()
    assert crafted.SECRET not in str(found.problems[0])
    assert "is not" in str(found.problems[0]) or "PPG.fs is no number" in str(found.problems[0])
