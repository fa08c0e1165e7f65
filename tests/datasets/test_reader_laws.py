"""Laws of each reader: the files that it accepts, the times and values that it returns, the refusals."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from phase_rppg.datasets import base, buaa_mihr, matlab, mmpd, pure, ubfc_rppg
from phase_rppg.datasets import folder as folder_dataset
from phase_rppg.datasets.base import Found, RetimedVideo
from phase_rppg.errors import DatasetLayoutError, RecordingError
from phase_rppg.video.encode import write_video

FPS = 30.0


def film(path: Path, count: int = 30) -> Path:
    pictures = (np.full((32, 32, 3), 40 + 5 * (i % 30), np.uint8) for i in range(count))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_video(path, pictures, FPS, codec="mjpeg")
    return path


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


# ---- UBFC-rPPG ---------------------------------------------------------------------------------------------


def test_ubfc_takes_both_layouts_and_leaves_other_folders(tmp_path: Path) -> None:
    touch(tmp_path / "subject1" / "vid.avi")
    touch(tmp_path / "subject1" / "ground_truth.txt")
    touch(tmp_path / "DATASET_1" / "5-gt" / "Video.mp4")
    touch(tmp_path / "dataset_2" / "subject3" / "ground_truth.txt")  # its video is missing
    touch(tmp_path / "DATASET_2" / "subject4" / "vid.avi")  # its label is missing
    touch(tmp_path / "other" / "vid.avi")
    touch(tmp_path / "subject9" / "notes.txt")
    touch(tmp_path / "anything" / "gtdump.xmp")
    found = {one.name: one for one in ubfc_rppg.find(tmp_path)}
    assert set(found) == {"subject1", "5-gt", "subject3", "subject4", "anything"}
    assert found["subject1"].conditions == {"set": "DATASET_2"}
    assert found["5-gt"].conditions == {"set": "DATASET_1"}
    assert found["5-gt"].video.name == "Video.mp4"
    assert found["5-gt"].reference.name == "gtdump.xmp"
    assert found["subject3"].video.name == "vid.avi"
    assert found["subject4"].reference.name == "ground_truth.txt"
    assert found["anything"].subject == "anything"


def test_ubfc_labels_are_rows_or_columns(tmp_path: Path) -> None:
    rows = tmp_path / "ground_truth.txt"
    np.savetxt(rows, [[1.0, 2, 3], [70, 71, 72], [0.0, 0.5, 1.0]])
    reference = ubfc_rppg.read_label("x", rows)
    assert (reference.values.tolist(), reference.t_s.tolist()) == ([1, 2, 3], [0, 0.5, 1])
    columns = tmp_path / "gtdump.xmp"
    np.savetxt(columns, [[0, 70, 97, 1.0], [500, 71, 98, 2.0]], delimiter=",")
    reference = ubfc_rppg.read_label("x", columns)
    assert (reference.values.tolist(), reference.t_s.tolist()) == ([1, 2], [0, 0.5])
    np.savetxt(rows, [[1.0, 2, 3], [70, 71, 72]])
    with pytest.raises(RecordingError, match="has 2 rows"):
        ubfc_rppg.read_label("x", rows)
    np.savetxt(columns, [[0, 70, 97.0]], delimiter=",")
    with pytest.raises(RecordingError, match="has 3 columns"):
        ubfc_rppg.read_label("x", columns)


def test_frame_times_rise_by_at_least_a_millisecond_and_go_on_at_the_usual_step() -> None:
    times_s = np.array([0.0, 0.1, 0.1, 0.1, 0.2, 0.3])
    found = ubfc_rppg.frame_times(times_s, 2)
    np.testing.assert_allclose(found, [0.0, 0.1, 0.101, 0.102, 0.2, 0.3, 0.4, 0.5])
    regular = np.arange(5) / 10
    np.testing.assert_allclose(ubfc_rppg.frame_times(regular, 0), regular)


@pytest.mark.parametrize(("extra", "retimed"), [(-3, False), (-2, True), (0, True), (2, True), (3, False)])
def test_ubfc_frames_and_rows_may_differ_by_two(tmp_path: Path, extra: int, retimed: bool) -> None:
    film(tmp_path / "subject1" / "vid.avi", 60)
    t_s = np.arange(60 - extra) / 20
    np.savetxt(tmp_path / "subject1" / "ground_truth.txt", [np.sin(9 * t_s), t_s, t_s])
    (found,) = ubfc_rppg.find(tmp_path)
    video = ubfc_rppg.open_video(found)
    assert isinstance(video, RetimedVideo) == retimed
    last_s = [frame.t_s for frame in video.frames()][-1]
    assert last_s == pytest.approx(59 / (20 if retimed else 30), abs=1e-3)


def test_the_older_ubfc_keeps_the_times_of_its_container(tmp_path: Path) -> None:
    film(tmp_path / "1-gt" / "vid.avi", 60)
    table = [[1000 * i / 20, 70, 97, np.sin(i)] for i in range(60)]
    np.savetxt(tmp_path / "1-gt" / "gtdump.xmp", table, delimiter=",")
    (found,) = ubfc_rppg.find(tmp_path)
    assert [frame.t_s for frame in ubfc_rppg.open_video(found).frames()][-1] == pytest.approx(
        59 / 30, abs=1e-3
    )


# ---- PURE --------------------------------------------------------------------------------------------------


def pure_folder(root: Path, pictures: list[str], package: Any, name: str = "02-03") -> Found:
    for picture in pictures:
        touch(root / name / name / picture)
    (root / name / name).mkdir(parents=True, exist_ok=True)
    (root / name / f"{name}.json").write_text(json.dumps(package))
    (found,) = pure.find(root)
    return found


STAMP = 1_392_643_993_000_000_000
ROW = {"Timestamp": STAMP, "Value": {"waveform": 1}}


def test_pure_names_its_tasks_and_finds_its_files(tmp_path: Path) -> None:
    found = pure_folder(tmp_path, [f"Image{STAMP}.png"], {"/FullPackage": [ROW]})
    assert (found.subject, found.name, found.conditions) == ("02", "02-03", {"motion": "slow translation"})
    assert found.video == tmp_path / "02-03" / "02-03"
    flat = tmp_path / "flat"
    touch(flat / "01-09" / f"Image{STAMP}.png")
    touch(flat / "1-2" / "Image.png")
    (one,) = pure.find(flat)
    assert one.video == flat / "01-09"
    assert one.conditions == {"motion": "09"}
    assert one.reference == flat / "01-09" / "01-09.json"
    inside = tmp_path / "inside"
    touch(inside / "01-01" / "01-01" / "01-01.json")
    assert pure.find(inside)[0].reference == inside / "01-01" / "01-01" / "01-01.json"


@pytest.mark.parametrize(
    ("package", "says"),
    [
        ([], "no list /FullPackage"),
        ({"/FullPackage": 3}, "no list /FullPackage"),
        ({"/FullPackage": [{"Timestamp": 1}]}, r"Value\.waveform"),
        ({"/FullPackage": [{"Value": {"waveform": 1}}]}, "Timestamp"),
    ],
)
def test_pure_refuses_labels_without_their_lists(tmp_path: Path, package: Any, says: str) -> None:
    found = pure_folder(tmp_path, [f"Image{STAMP}.png"], package)
    with pytest.raises(RecordingError, match=says):
        pure.read_reference(found)


def test_pure_pictures_need_times_that_rise(tmp_path: Path) -> None:
    rows = {"/FullPackage": [ROW], "/Image": [{"Timestamp": STAMP + k} for k in (0, 2_000_000, 1_000_000)]}
    counted = pure_folder(tmp_path / "a", ["Image0.png", "Image1.png", "Image2.png"], rows)
    with pytest.raises(RecordingError, match=r"do not increase at Image2\.png"):
        pure.open_video(counted)
    fewer = pure_folder(tmp_path / "b", ["Image0.png"], rows)
    with pytest.raises(RecordingError, match="1 pictures without a timestamp in the name, but 3 in"):
        pure.open_video(fewer)
    nothing = pure_folder(tmp_path / "c", [], rows)
    with pytest.raises(RecordingError, match="no PNG pictures"):
        pure.open_video(nothing)
    broken = {"/FullPackage": [ROW], "/Image": [{"Time": 1}]}
    with pytest.raises(RecordingError, match="row of /Image"):
        pure.read_reference(pure_folder(tmp_path / "d", ["Image0.png"], broken))
    silent = pure_folder(tmp_path / "e", ["Image0.png"], {"/FullPackage": [ROW]})
    with pytest.raises(RecordingError, match="hold no timestamps"):
        pure.read_reference(silent)


def test_equal_times_of_pure_pictures_do_not_rise(tmp_path: Path) -> None:
    rows = {"/FullPackage": [ROW], "/Image": [{"Timestamp": STAMP}, {"Timestamp": STAMP}]}
    with pytest.raises(RecordingError, match=r"do not increase at Image1\.png"):
        pure.open_video(pure_folder(tmp_path, ["Image0.png", "Image1.png"], rows))


# ---- BUAA-MIHR ---------------------------------------------------------------------------------------------


def buaa(root: Path, folder: str = "Sub 03/lux 10.0", ppg: Any = None, count: int = 60) -> Found:
    film(root / folder / "lux10.0_APH.avi", count)
    if ppg is not None:
        savemat(root / folder / "lux10.0_PPGData.mat", {"PPG": ppg})
    (found,) = buaa_mihr.find(root)
    return found


def test_buaa_levels_from_ten_lux_are_used_whatever_the_spelling(tmp_path: Path) -> None:
    for folder in ("Sub 03/lux 10.0", "subject_4/Lux 15.8", "sub05/lux9.9", "people/lux 20", "Sub 06/dark"):
        (tmp_path / folder).mkdir(parents=True)
    found = buaa_mihr.find(tmp_path)
    assert [one.name for one in found] == ["Sub 03 lux 10.0", "Sub 04 lux 15.8"]
    assert found[0].conditions == {"lux": "10.0"}
    assert found[0].video.name == "lux10.0.avi"
    assert found[0].reference.name == "lux10.0_PPGData.mat"


def test_buaa_takes_the_video_of_its_own_level(tmp_path: Path) -> None:
    folder = tmp_path / "Sub 01" / "lux 25.1"
    for name in ("a.avi", "lux10.0_APH.avi", "lux25.1_APH.avi", "x_wave.csv", "other.csv"):
        touch(folder / name)
    (found,) = buaa_mihr.find(tmp_path)
    assert (found.video.name, found.reference.name) == ("lux25.1_APH.avi", "x_wave.csv")
    touch(folder / "lux25.1_PPGData.mat")
    assert buaa_mihr.find(tmp_path)[0].reference.name == "lux25.1_PPGData.mat"


@pytest.mark.parametrize(("rate_hz", "good"), [(9.9, False), (10.0, True), (1000.0, True), (1001.0, False)])
def test_buaa_rates_are_those_of_a_device(tmp_path: Path, rate_hz: float, good: bool) -> None:
    found = buaa(tmp_path, ppg={"fs": rate_hz, "data": np.arange(20.0)})
    if good:
        reference = buaa_mihr.read_reference(found)
        np.testing.assert_allclose(reference.t_s, np.arange(20) / rate_hz)
        np.testing.assert_array_equal(reference.values, np.arange(20.0))
    else:
        with pytest.raises(RecordingError, match=r"PPG\.fs"):
            buaa_mihr.read_reference(found)


@pytest.mark.parametrize("ppg", [np.arange(40.0), {"data": np.arange(40.0), "peaks": 1}])
def test_a_buaa_wave_without_a_rate_covers_its_video(tmp_path: Path, ppg: Any) -> None:
    reference = buaa_mihr.read_reference(buaa(tmp_path, ppg=ppg, count=60))
    np.testing.assert_allclose(reference.t_s, np.arange(40) * 2.0 / 40, atol=1e-6)
    np.testing.assert_array_equal(reference.values, np.arange(40.0))


def test_the_last_column_of_a_buaa_table_is_the_wave(tmp_path: Path) -> None:
    film(tmp_path / "Sub 03/lux 10.0/lux10.0_APH.avi", 30)
    np.savetxt(tmp_path / "Sub 03/lux 10.0/a_wave.csv", [[9, 1.0], [9, 2.0]], delimiter=",")
    (found,) = buaa_mihr.find(tmp_path)
    assert buaa_mihr.read_reference(found).values.tolist() == [1.0, 2.0]


# ---- MMPD and MATLAB files ---------------------------------------------------------------------------------


def mmpd_file(root: Path, frames: int = 40, **content: Any) -> Found:
    path = touch(root / "subject7" / "p7_3.mat")
    usual = {"video": np.zeros((frames, 2, 2, 3)), "GT_ppg": np.arange(float(frames))[None]}
    savemat(path, {**usual, **content})
    (found,) = mmpd.find(root)
    return found


def test_mmpd_takes_files_of_its_name_only(tmp_path: Path) -> None:
    for name in ("p7_3.mat", "q7_3.mat", "p7.mat"):
        touch(tmp_path / "subject7" / name)
    (found,) = mmpd.find(tmp_path)
    assert (found.subject, found.name) == ("subject7", "p7_3")


@pytest.mark.parametrize(("samples", "fps"), [(70, 30.0), (71, 30.0 * 71 / 40), (11, 30.0), (160, 120.0)])
def test_an_mmpd_wave_with_another_count_covers_the_same_time(
    tmp_path: Path, samples: int, fps: float
) -> None:
    """40 frames: up to a second more or less is 30 Hz, beyond it the wave has its own rate."""
    reference = mmpd.read_reference(mmpd_file(tmp_path, GT_ppg=np.arange(float(samples))))
    np.testing.assert_allclose(reference.t_s, np.arange(samples) / fps)
    assert len(reference.values) == samples


@pytest.mark.parametrize(
    ("field", "value", "condition", "word"),
    [
        ("light", "LED-low", "light", "led-low"),
        ("motion", "Stationary (after exercise)", "motion", "stationary"),
        ("skin_color", 4.0, "skin type", "4"),
        ("exercise", 1, "exercise", "true"),
        ("makeup", "0", "make-up", "false"),
        ("hair_cover", True, "hair", "true"),
        ("glasser", 0.0, "glasses", "false"),
    ],
)
def test_an_mmpd_label_is_one_word(tmp_path: Path, field: str, value: Any, condition: str, word: str) -> None:
    labels = dict.fromkeys(
        ("light", "motion", "exercise", "skin_color", "gender", "glasser", "hair_cover", "makeup"), "x"
    )
    found = mmpd_file(tmp_path, **{**labels, field: value})
    assert mmpd.read_conditions(found)[condition] == word
    several = mmpd_file(tmp_path, **{**labels, "light": np.arange(2)})
    with pytest.raises(RecordingError, match="light is not a single label"):
        mmpd.read_conditions(several)


@pytest.mark.parametrize("shape", [(5, 4, 3), (5, 4, 4, 1), (0, 4, 4, 3), (5, 4, 4, 3, 2)])
def test_arrays_without_the_shape_of_a_video_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    savemat(tmp_path / "x.mat", {"video": np.zeros(shape)})
    with pytest.raises(RecordingError, match=r"has the shape|no field"):
        matlab.MatVideo(tmp_path / "x.mat", "x", FPS).count()
    with pytest.raises(RecordingError):
        list(matlab.MatVideo(tmp_path / "x.mat", "x", FPS).frames())


def video_of(path: Path, **options: Any) -> matlab.MatVideo:
    return matlab.MatVideo(path, "x", 20.0, **options)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_a_video_of_several_blocks_keeps_every_pixel(tmp_path: Path, kind: str, compressed: bool) -> None:
    """40 · 48 · 3 pixels are more than one block of 4096."""
    truth = np.random.default_rng(0).integers(0, 256, (7, 40, 48, 3))
    truth[0, 0, 0, 0] = 255  # the first block shows that it is not 0–1
    savemat(tmp_path / "x.mat", {"a": 1.0, "video": truth.astype(kind)}, do_compression=compressed)
    frames = list(video_of(tmp_path / "x.mat").frames())
    np.testing.assert_array_equal(np.stack([frame.rgb for frame in frames]), truth)
    np.testing.assert_allclose([frame.t_s for frame in frames], np.arange(7) / 20)
    assert all(frame.rgb.dtype == np.uint8 and frame.rgb.flags.c_contiguous for frame in frames)


def test_a_video_of_signed_bytes_keeps_every_pixel(tmp_path: Path) -> None:
    truth = np.random.default_rng(0).integers(0, 128, (3, 5, 4, 3)).astype(np.int8)
    savemat(tmp_path / "x.mat", {"video": truth})
    np.testing.assert_array_equal(np.stack([f.rgb for f in video_of(tmp_path / "x.mat").frames()]), truth)


@pytest.mark.parametrize(("kind", "gain"), [("u1", 1), ("u2", 255), ("f8", 255)])
def test_only_bytes_are_never_scaled(tmp_path: Path, kind: str, gain: int) -> None:
    """Values of 0 and 1 are a dark video of bytes, or a whole range of any other type."""
    truth = np.random.default_rng(0).integers(0, 2, (3, 5, 4, 3))
    savemat(tmp_path / "x.mat", {"video": truth.astype(kind)})
    found = np.stack([frame.rgb for frame in video_of(tmp_path / "x.mat").frames()])
    np.testing.assert_array_equal(found, gain * truth)


def test_another_field_can_be_the_video(tmp_path: Path) -> None:
    savemat(tmp_path / "x.mat", {"video": np.zeros((3, 2, 2, 3)), "film": np.ones((4, 2, 2, 3), np.uint8)})
    assert video_of(tmp_path / "x.mat", field="film").count() == 4
    assert len(list(video_of(tmp_path / "x.mat", field="film").frames())) == 4
    with pytest.raises(RecordingError, match="no field other"):
        video_of(tmp_path / "x.mat", field="other").count()
    with pytest.raises(RecordingError, match="no field other"):
        list(video_of(tmp_path / "x.mat", field="other").frames())


@pytest.mark.parametrize("values", [[0.5, 1.2], [-0.1, 0.5], [3.0, 256.0], [np.nan, 0.5]])
def test_pixels_beyond_their_range_are_refused(tmp_path: Path, values: list[float]) -> None:
    """The first block decides whether a video is 0–1 or 0–255; the second one must fit."""
    video = np.full((2, 40, 48, 3), values[0])
    video[:, -1, -1, -1] = values[1]
    savemat(tmp_path / "x.mat", {"video": video})
    with pytest.raises(RecordingError, match="neither in 0–1"):
        list(video_of(tmp_path / "x.mat").frames())


@pytest.mark.parametrize(("top", "gain"), [(1.0, 255), (1.5, 1), (255.0, 1)])
def test_a_video_up_to_one_is_scaled_to_bytes(tmp_path: Path, top: float, gain: float) -> None:
    video = np.linspace(0, top, 2 * 2 * 2 * 3).reshape(2, 2, 2, 3)
    savemat(tmp_path / "x.mat", {"video": video})
    seen = np.stack([frame.rgb for frame in video_of(tmp_path / "x.mat").frames()])
    np.testing.assert_array_equal(seen, np.rint(video * gain))


def test_a_file_of_the_other_byte_order_is_read(tmp_path: Path) -> None:
    """A v5 file by hand: header, one matrix element with flags, shape, name and doubles, big-endian."""
    truth = np.random.default_rng(1).integers(0, 256, (3, 2, 2, 3))

    def element(kind: int, data: bytes) -> bytes:
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    body = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">4i", *truth.shape))
    body += element(1, b"video") + element(9, truth.ravel(order="F").astype(">f8").tobytes())
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI"
    (tmp_path / "x.mat").write_bytes(head + struct.pack(">II", 14, len(body)) + body)
    seen = np.stack([frame.rgb for frame in video_of(tmp_path / "x.mat").frames()])
    np.testing.assert_array_equal(seen, truth)


def test_text_structs_and_long_videos_of_v73_are_read(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    truth = np.random.default_rng(2).integers(0, 256, (130, 3, 4, 3)).astype(np.uint8)
    path = tmp_path / "x.mat"
    with h5py.File(path, "w") as file:
        file["video"] = truth.T
        file["number"] = np.array([[3.0]])
        file["matrix"] = np.arange(6.0).reshape(3, 2)
        file["word"] = np.array([[ord(c)] for c in "hello"], np.uint16)
        file["word"].attrs["MATLAB_class"] = np.bytes_("char")  # fixed length, as MATLAB writes it
        file["PPG/fs"] = np.array([[60.0]])
    assert matlab.is_v73(path)
    seen = np.stack([frame.rgb for frame in video_of(path).frames()])  # more than two slices of 64
    np.testing.assert_array_equal(seen, truth)
    content = matlab.read("x", path, ("number", "word", "PPG", "matrix"))
    assert (content["number"], content["word"], content["PPG"]) == (3.0, "hello", {"fs": 60.0})
    np.testing.assert_array_equal(content["matrix"], [[0, 2, 4], [1, 3, 5]])
    with pytest.raises(RecordingError, match="no field a, b"):
        matlab.read("x", path, ("number", "a", "b"))


def test_a_file_that_is_not_a_matlab_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.mat").write_bytes(b"nonsense" * 100)
    assert not matlab.is_v73(tmp_path / "x.mat")
    with pytest.raises(RecordingError, match="not a readable MATLAB file"):
        matlab.read("x", tmp_path / "x.mat", ("a",))
    savemat(tmp_path / "y.mat", {"video": "text"})
    with pytest.raises(RecordingError):
        list(video_of(tmp_path / "y.mat").frames())


# ---- folder -----------------------------------------------------------------------------------------------


def csv_of(folder: Path, text: str) -> Found:
    (folder / "a.csv").write_text(text)
    return folder_dataset.pair(folder / "a.mp4", folder / "a.csv")


@pytest.mark.parametrize("time", ["t_s", "time_s", "Time", " seconds", "t"])
@pytest.mark.parametrize("value", ["ppg", "BVP", "value", "waveform ", "pulse", "wave"])
def test_usual_column_names_are_accepted(tmp_path: Path, time: str, value: str) -> None:
    found = csv_of(tmp_path, f"\ufeffother,{value},{time}\n7,1.5,0.0\n\n7,2.5,0.1\n")
    reference = folder_dataset.read_reference(found)
    assert (reference.t_s.tolist(), reference.values.tolist()) == ([0.0, 0.1], [1.5, 2.5])


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "found nothing"), ("t_s,x\n", "found t_s, x"), ("ppg\n1\n", "found ppg"),
     ("t_s,ppg\n1,two\n", "not a table"), ("t_s,ppg\n1\n", "not a table")],
)  # fmt: skip
def test_malformed_tables_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(RecordingError, match=says):
        folder_dataset.read_reference(csv_of(tmp_path, text))
    assert len(folder_dataset.read_reference(csv_of(tmp_path, "t_s,ppg\n")).t_s) == 0


def test_a_manifest_gives_names_subjects_and_conditions(tmp_path: Path) -> None:
    (tmp_path / "manifest.csv").write_text(
        "\ufeffvideo, reference ,subject,name,light\na.mp4,a.csv,anna,first, day \nb.mp4,b.csv,,,\n"
    )
    first, second = folder_dataset.find(tmp_path)
    assert first == Found("anna", "first", tmp_path / "a.mp4", tmp_path / "a.csv", {"light": "day"})
    assert second == Found("b", "b", tmp_path / "b.mp4", tmp_path / "b.csv", {})
    (tmp_path / "manifest.csv").write_text("video,subject\na.mp4,anna\n")
    with pytest.raises(DatasetLayoutError, match="a column reference"):
        folder_dataset.find(tmp_path)


def test_without_a_manifest_videos_with_a_label_beside_them_are_taken(tmp_path: Path) -> None:
    for name in ("a.mp4", "a.txt", "b.avi", "b.csv", "b.json", "c.mp4"):
        touch(tmp_path / name)
    found = folder_dataset.find(tmp_path)
    assert [(one.name, one.reference.name) for one in found] == [("a", "a.txt"), ("b", "b.csv")]


def test_labels_of_other_datasets_are_accepted(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "a.txt", [[1.0, 2], [70, 71], [0.0, 0.5]])
    assert folder_dataset.read_reference(
        folder_dataset.pair(tmp_path / "a.mp4", tmp_path / "a.txt")
    ).values.tolist() == [
        1,
        2,
    ]
    np.savetxt(tmp_path / "a.xmp", [[0, 70, 97, 1.0], [500, 71, 98, 2.0]], delimiter=",")
    assert folder_dataset.read_reference(
        folder_dataset.pair(tmp_path / "a.mp4", tmp_path / "a.xmp")
    ).t_s.tolist() == [
        0,
        0.5,
    ]
    package = {"/FullPackage": [ROW], "/Image": [{"Timestamp": STAMP + 500_000_000}]}
    (tmp_path / "a.JSON").write_text(json.dumps(package))
    reference = folder_dataset.read_reference(folder_dataset.pair(tmp_path / "a.mp4", tmp_path / "a.JSON"))
    np.testing.assert_allclose(reference.t_s, [-0.5])
    (tmp_path / "a.JSON").write_text(json.dumps({"/FullPackage": [ROW]}))
    with pytest.raises(RecordingError, match="first picture"):
        folder_dataset.read_reference(folder_dataset.pair(tmp_path / "a.mp4", tmp_path / "a.JSON"))


@pytest.mark.parametrize(("stamps", "last_s"), [(30, 29 / 10), (29, 29 / 30)])
def test_frames_take_their_times_from_a_label_with_as_many_pictures(
    tmp_path: Path, stamps: int, last_s: float
) -> None:
    film(tmp_path / "a.avi", 30)
    images = [{"Timestamp": STAMP + 100_000_000 * i} for i in range(stamps)]
    (tmp_path / "a.json").write_text(json.dumps({"/FullPackage": [ROW], "/Image": images}))
    video = folder_dataset.open_video(folder_dataset.pair(tmp_path / "a.avi", tmp_path / "a.json"))
    assert [frame.t_s for frame in video.frames()][-1] == pytest.approx(last_s, abs=1e-3)


def test_a_file_that_is_not_a_video_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "a.avi").write_bytes(b"no video at all")
    (tmp_path / "a.csv").write_text("t_s,ppg\n" + "".join(f"{i / 30},{i % 7}\n" for i in range(90)))
    with pytest.raises(RecordingError, match="the video cannot be used"):
        base.read(folder_dataset, folder_dataset.pair(tmp_path / "a.avi", tmp_path / "a.csv"))
