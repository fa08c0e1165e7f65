"""What is particular to one data set: clocks, quality, left-out cameras, other spellings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from phase_rppg.datasets import base
from phase_rppg.errors import RecordingError

from . import fake_layouts

ONE = fake_layouts.people(1, seconds=4.0)


def only(name: str, root: Path) -> base.Found:
    (found,) = base.find(name, root)
    return found


def test_the_frames_of_vipl_hr_take_the_times_of_their_file(tmp_path: Path) -> None:
    fake_layouts.vipl_hr(tmp_path, ONE)
    found = only("vipl_hr", tmp_path)
    assert found.name == "p1/v3/source1"  # source 4 is near-infrared
    assert found.conditions == {"scene": "talking", "camera": "webcam"}
    found.video.with_name("time.txt").unlink()
    (recording,) = base.load("vipl_hr", tmp_path)
    last_s = [frame.t_s for frame in recording.video.frames()][-1]
    assert last_s == pytest.approx((len(ONE[0].frame_times_s) - 1) / 25, abs=0.05)  # the header's rate


def test_samples_of_bad_quality_are_gaps_in_ibvp(tmp_path: Path) -> None:
    fake_layouts.ibvp(tmp_path, ONE)
    label = only("ibvp", tmp_path).reference
    lines = label.read_text().splitlines()
    for row in range(120, 240):  # the second second
        lines[row + 1] = ",".join([*lines[row + 1].split(",")[:3], "0.3"])
    label.write_text("\n".join(lines))
    (recording,) = base.load("ibvp", tmp_path)
    wave = recording.reference
    assert not wave.valid[(wave.t_s > 1.2) & (wave.t_s < 1.8)].any()
    assert wave.valid[(wave.t_s < 0.9) | (wave.t_s > 2.1)].all()
    label.write_text("\n".join([lines[0], *(",".join([*row.split(",")[:3], "0"]) for row in lines[1:])]))
    with pytest.raises(RecordingError, match=r"quality above 0\.3"):
        base.read(base.registry.load("datasets", "ibvp"), only("ibvp", tmp_path))


def test_cohface_without_times_has_256_samples_per_second(tmp_path: Path) -> None:
    import h5py

    fake_layouts.cohface(tmp_path, ONE)
    found = only("cohface", tmp_path)
    assert found.conditions == {"light": "natural"}
    with h5py.File(found.reference, "a") as file:
        del file["time"]
    (recording,) = base.load("cohface", tmp_path)
    assert recording.reference.fps == pytest.approx(256)
    with h5py.File(found.reference, "a") as file:
        del file["pulse"]
    with pytest.raises(RecordingError, match=r"data\.hdf5 has no field pulse"):
        base.read(base.registry.load("datasets", "cohface"), found)


def test_a_ppg_of_another_length_than_the_video_is_refused_in_scamps(tmp_path: Path) -> None:
    video = np.zeros((60, 8, 8, 3))
    video[0] = 1
    savemat(tmp_path / "P000007.mat", {"Xsub": video, "d_ppg": np.sin(np.arange(70))})
    with pytest.raises(RecordingError, match="d_ppg has 70 samples for 60 frames"):
        base.read(base.registry.load("datasets", "scamps"), only("scamps", tmp_path))


@pytest.mark.parametrize("shape", ["PPG", "PPGData", "PPGData.PPG", "plain"])
def test_buaa_structs_of_several_releases_give_the_same_reference(shape: str, tmp_path: Path) -> None:
    fake_layouts.buaa_mihr(tmp_path, ONE)
    (before,) = base.load("buaa_mihr", tmp_path)
    found = only("buaa_mihr", tmp_path)
    values = ONE[0].pulse(np.arange(0, ONE[0].seconds, 1 / 60))
    struct = {"fs": 60.0, "data": values, "peaks": [1]}
    contents = {
        "PPG": {"PPG": struct}, "PPGData": {"PPGData": struct}, "PPGData.PPG": {"PPGData": {"PPG": struct}},
        "plain": {"PPGData": values},
    }  # fmt: skip
    savemat(found.reference, contents[shape])
    (after,) = base.load("buaa_mihr", tmp_path)
    assert np.allclose(before.reference.values[:200], after.reference.values[:200], atol=0.05)
    savemat(found.reference, {"ECG": values})
    with pytest.raises(RecordingError, match="has no field PPG or PPGData"):
        base.read(base.registry.load("datasets", "buaa_mihr"), found)


def test_v4v_is_found_below_the_folder_of_a_phase(tmp_path: Path) -> None:
    fake_layouts.v4v(tmp_path / "Phase 1", ONE)
    (recording,) = base.load("v4v", tmp_path)
    assert (recording.subject, recording.name) == ("F001", "F001_T8")
    assert recording.reference.fps == pytest.approx(1000)


def test_a_header_is_accepted_only_where_a_layout_has_one(tmp_path: Path) -> None:
    path = tmp_path / "wave.csv"
    path.write_text("Wave\n1\n2\nx\n")
    with pytest.raises(RecordingError, match=r"not a table of numbers \(row 4\)"):
        base.read_table("a", path, ",", header=True)
    path.write_text("Wave\n1\n2\n")
    assert base.read_table("a", path, ",", header=True).ravel().tolist() == [1, 2]
    with pytest.raises(RecordingError, match="not a table of numbers"):
        base.read_table("a", path, ",")
    path.write_text("1\n2\n")
    assert base.read_table("a", path, ",", header=True).ravel().tolist() == [1, 2]
