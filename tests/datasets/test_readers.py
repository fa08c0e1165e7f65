"""The peculiarities of each layout, and the files that each reader refuses."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from phase_rppg.datasets import base, buaa_mihr, matlab, mmpd, ubfc_rppg
from phase_rppg.datasets import folder as folder_dataset
from phase_rppg.datasets.base import Found, Reference
from phase_rppg.errors import RecordingError
from phase_rppg.signal import rate

from . import fake_layouts

ANNA = fake_layouts.FaceState(1, 66.0, seconds=3.0)


def problem_of(name: str, root: Path) -> str:
    survey = base.survey(name, root)
    assert not survey.recordings
    return str(survey.problems[0])


def test_the_older_layout_of_ubfc_is_read(tmp_path: Path) -> None:
    fake_layouts.ubfc_rppg_1(tmp_path, [ANNA])
    (recording,) = base.load("ubfc_rppg", tmp_path)
    assert recording.name == "1-gt"
    assert recording.reference.fps == pytest.approx(62, rel=0.01)
    assert np.corrcoef(recording.reference.values, ANNA.pulse(recording.reference.t_s))[0, 1] > 0.99


def test_ubfc_frames_take_the_times_of_their_rows(tmp_path: Path) -> None:
    fake_layouts.ubfc_rppg(tmp_path, [ANNA])
    label = tmp_path / "subject1" / "ground_truth.txt"
    table = np.loadtxt(label)[:, :-1]  # one frame has no row
    table[2] += 0.01 * np.sin(np.arange(table.shape[1]))
    table[2, 0], table[2, 6] = 0, table[2, 5]
    np.savetxt(label, table)
    (recording,) = base.load("ubfc_rppg", tmp_path)
    t_s = np.array([frame.t_s for frame in recording.video.frames()])
    assert len(t_s) == table.shape[1] + 1
    assert (np.diff(t_s) > 0).all()
    assert np.abs(t_s[:-1] - table[2]).max() < 0.002
    np.savetxt(label, table[:, :-9])  # too few rows to belong to the frames
    (recording,) = base.load("ubfc_rppg", tmp_path)
    t_s = np.array([frame.t_s for frame in recording.video.frames()])
    assert np.allclose(np.diff(t_s), 1 / fake_layouts.FPS, atol=1e-4)


def test_a_repeated_timestamp_is_merged_and_a_backward_one_refused() -> None:
    t_s = np.arange(0, 5, 1 / 30)
    t_s[7] = t_s[6]
    assert base.to_waveform("x", Reference(t_s, np.sin(t_s))).valid.all()
    t_s[9] = 0.0
    with pytest.raises(RecordingError, match="decrease at sample 9"):
        base.to_waveform("x", Reference(t_s, np.sin(t_s)))


@pytest.mark.parametrize(
    ("t_s", "values", "problem"),
    [
        (np.arange(90) / 30, np.ones(90), "constant"),
        (np.arange(30) / 30, np.arange(30), "shorter than"),
        (np.arange(90) / 30, np.arange(80), "80 values and 90 timestamps"),
        (np.arange(90) / 30, np.full(90, np.nan), "NaN or infinity"),
        (np.arange(90) / 2, np.arange(90), "samples per second"),
    ],
)
def test_unusable_references_are_refused(t_s: np.ndarray, values: np.ndarray, problem: str) -> None:
    with pytest.raises(RecordingError, match=problem):
        base.to_waveform("x", Reference(t_s, values))


def test_a_long_pause_of_the_reference_is_marked() -> None:
    t_s = np.concatenate([np.arange(0, 5, 1 / 60), np.arange(7, 12, 1 / 60)])
    wave = base.to_waveform("x", Reference(t_s, np.sin(t_s)))
    assert wave.fps == pytest.approx(60, rel=0.01)
    assert not wave.valid[(wave.t_s > 5.1) & (wave.t_s < 6.9)].any()


def test_missing_files_are_named(tmp_path: Path) -> None:
    fake_layouts.ubfc_rppg(tmp_path, [ANNA])
    (tmp_path / "subject1" / "ground_truth.txt").rename(tmp_path / "elsewhere.txt")
    assert "subject1: the reference is missing" in problem_of("ubfc_rppg", tmp_path)
    (tmp_path / "elsewhere.txt").rename(tmp_path / "subject1" / "ground_truth.txt")
    (tmp_path / "subject1" / "vid.avi").write_bytes(b"not a video at all")
    assert "subject1: the video cannot be used" in problem_of("ubfc_rppg", tmp_path)


def test_pure_takes_its_reference_from_beside_the_folder_too(tmp_path: Path) -> None:
    fake_layouts.pure(tmp_path, [ANNA])
    (tmp_path / "01-01" / "01-01.json").rename(tmp_path / "01-01.json")
    assert base.load("pure", tmp_path)[0].conditions == {"motion": "steady"}


def test_pure_pictures_that_only_count_take_their_times_from_the_reference(tmp_path: Path) -> None:
    fake_layouts.pure(tmp_path, [ANNA])
    for index, picture in enumerate(sorted((tmp_path / "01-01" / "01-01").iterdir())):
        picture.rename(picture.with_name(f"Image{index:03d}.png"))
    frames = list(base.load("pure", tmp_path)[0].video.frames())
    assert frames[-1].t_s == pytest.approx(ANNA.frame_times_s[-1])


def test_buaa_leaves_out_the_dark_levels_and_accepts_a_plain_wave(tmp_path: Path) -> None:
    fake_layouts.buaa_mihr(tmp_path, [ANNA])
    folder = tmp_path / "Sub 01" / "lux 10.0"
    (folder / "lux10.0_PPGData.mat").unlink()
    np.savetxt(folder / "lux10.0_APH_wave.csv", ANNA.pulse(np.arange(0, ANNA.seconds, 1 / 60)))
    (recording,) = base.load("buaa_mihr", tmp_path)
    assert recording.conditions == {"lux": "10.0"}
    assert recording.reference.fps == pytest.approx(60, rel=0.02)
    (folder / "lux10.0_APH_wave.csv").unlink()
    savemat(folder / "PPGData.mat", {"PPG": {"peaks": [1.0, 2.0]}})
    assert "no field data" in problem_of("buaa_mihr", tmp_path)
    found = buaa_mihr.find(tmp_path)[0]
    savemat(found.reference, {"PPG": {"fs": 1e9, "data": np.arange(9.0)}})
    assert "PPG.fs" in problem_of("buaa_mihr", tmp_path)


def test_mmpd_words_of_older_releases_are_the_same_conditions(tmp_path: Path) -> None:
    content = fake_layouts.mmpd_content(ANNA) | {"motion": "Watching Videos", "glasser": True, "makeup": 0}
    (tmp_path / "subject1").mkdir()
    savemat(tmp_path / "subject1" / "p1_0.mat", content)
    conditions = base.load("mmpd", tmp_path)[0].conditions
    assert conditions["motion"] == "walking"
    assert (conditions["glasses"], conditions["make-up"], conditions["skin type"]) == ("true", "false", "3")


@pytest.mark.parametrize("field", ["video", "GT_ppg", "light", "skin_color"])
def test_a_mat_file_without_a_field_names_it(tmp_path: Path, field: str) -> None:
    content = fake_layouts.mmpd_content(ANNA)
    del content[field]
    (tmp_path / "subject1").mkdir()
    savemat(tmp_path / "subject1" / "p1_0.mat", content)
    assert f"p1_0: p1_0.mat has no field {field}" in problem_of("mmpd", tmp_path)


def test_a_cut_off_mat_file_is_named_when_its_frames_are_read(tmp_path: Path) -> None:
    fake_layouts.mmpd(tmp_path, [ANNA])
    path = tmp_path / "subject1" / "p1_0.mat"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    with pytest.raises(RecordingError, match="p1_0"):
        list(matlab.MatVideo(path, "p1_0", 30.0).frames())


@pytest.mark.parametrize("kind", ["bytes", "float 0–255", "uncompressed", "v7.3"])
def test_every_way_of_storing_a_video_gives_the_same_frames(tmp_path: Path, kind: str) -> None:
    truth = np.stack(list(ANNA.frames()))[:70]
    path = tmp_path / "p1_0.mat"
    if kind == "v7.3":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w", userblock_size=512) as file:
            file["video"] = (truth / 255.0).T
        with open(path, "r+b") as file:
            file.write(b"MATLAB 7.3 MAT-file")
    else:
        stored = {"bytes": truth, "float 0–255": truth.astype(float), "uncompressed": truth / 255.0}[kind]
        savemat(path, {"other": "text", "x": 1.0, "video": stored}, do_compression=kind != "uncompressed")
    video = matlab.MatVideo(path, "p1_0", 30.0)
    assert video.count() == len(truth)
    seen = np.stack([frame.rgb for frame in video.frames()])
    assert np.array_equal(seen, truth)


def test_v73_without_its_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p1_0.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file" + bytes(600))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(RecordingError, match=r"pip install 'phase-rppg\[mat73\]'"):
        mmpd.read_reference(Found("subject1", "p1_0", path, path))


def test_pairs_without_a_manifest_are_recordings(tmp_path: Path) -> None:
    fake_layouts.folder(tmp_path, [ANNA])
    (tmp_path / "manifest.csv").unlink()
    assert [r.name for r in base.load("folder", tmp_path)] == ["1"]
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    assert "needs a header with t_s and ppg; found a, b" in problem_of("folder", tmp_path)


def test_a_video_with_a_pure_reference_gets_the_true_frame_times(tmp_path: Path) -> None:
    fake_layouts.folder(tmp_path / "a", [ANNA])
    fake_layouts.pure(tmp_path / "b", [ANNA])
    label = tmp_path / "b" / "01-01" / "01-01.json"
    package = json.loads(label.read_text())
    for index, row in enumerate(package["/Image"]):
        row["Timestamp"] += 1_000_000 * index
    label.write_text(json.dumps(package))
    recording = base.read(folder_dataset, folder_dataset.pair(tmp_path / "a" / "1.mp4", label))
    t_s = np.array([frame.t_s for frame in recording.video.frames()])
    assert t_s[-1] == pytest.approx(ANNA.frame_times_s[-1] + 0.001 * (len(t_s) - 1))


def test_two_recordings_of_one_name_are_refused(tmp_path: Path) -> None:
    fake_layouts.ubfc_rppg(tmp_path / "DATASET_2", [ANNA])
    shutil.copytree(tmp_path / "DATASET_2" / "subject1", tmp_path / "subject1")
    with pytest.raises(base.DatasetLayoutError, match="subject1 in more than one place"):
        base.find("ubfc_rppg", tmp_path)


def test_the_real_ubfc_samples_are_read(real_data: Path) -> None:
    recordings = base.load("ubfc_rppg", real_data / "ubfc_rppg")
    assert [r.subject for r in recordings] == sorted((r.subject for r in recordings), key=base.natural_key)
    for recording in recordings:
        device_bpm = np.loadtxt(real_data / "ubfc_rppg" / recording.name / "ground_truth.txt")[1]
        assert abs(rate.spectral_bpm(recording.reference) - np.median(device_bpm)) < 8
    assert recordings[0].dataset == ubfc_rppg.NAME


def test_the_real_pure_sample_is_read(real_data: Path) -> None:
    (recording,) = base.load("pure", real_data / "pure")
    assert recording.reference.duration_s > 60
    frames = recording.video.frames()
    first, second = next(frames), next(frames)
    assert first.rgb.shape == (480, 640, 3)
    assert second.t_s == pytest.approx(1 / 30, abs=0.003)
