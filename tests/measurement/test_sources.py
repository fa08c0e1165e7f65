"""Files, folders, arrays and iterables are measured alike, and every misuse is refused with its remedy."""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import phase_rppg
from drawing import Actor, Film, clock, still
from phase_rppg import Estimate, Frame, PhaseWarning, Session, WindowResult, measure
from phase_rppg.errors import (
    ArgumentError,
    PhaseError,
    UnknownNameError,
    UsageError,
    VideoError,
    WeightsError,
)
from phase_rppg.infer import onnx
from phase_rppg.measurement.sources import is_frame_folder, open_source
from phase_rppg.session.config import SessionConfig
from phase_rppg.types import ByteArray, FloatArray
from phase_rppg.video.decode import VideoFile
from plain_face import FixedDetector, frames, seconds, tone

pytestmark = pytest.mark.smoke

FPS = 20.0
SMALL = np.zeros((4, 36, 48, 3), np.uint8)


@pytest.fixture(scope="module")
def film() -> list[Frame]:
    source = Film((Actor(still(100, 80), 80, 84.0),), clock(12, FPS), 160, 200)
    return list(source.frames())


@pytest.fixture(scope="module")
def pixels(film: list[Frame]) -> ByteArray:
    return np.stack([frame.rgb for frame in film])


def bpm(result: phase_rppg.Result) -> float:
    (face,) = result.faces
    assert isinstance(face.summary, Estimate)
    return face.summary.bpm


def write_images(folder: Path, pictures: ByteArray, names: list[str]) -> None:
    folder.mkdir(parents=True)
    for name, picture in zip(names, pictures, strict=True):
        with av.open(str(folder / name), "w", format="image2") as file:
            stream: Any = file.add_stream("png" if name.endswith("png") else "mjpeg", rate=1)
            stream.width, stream.height = picture.shape[1], picture.shape[0]
            stream.pix_fmt = "rgb24" if name.endswith("png") else "yuvj444p"
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            file.mux([*stream.encode(frame), *stream.encode(None)])


def test_an_array_and_its_frames_give_the_same_result(film: list[Frame], pixels: ByteArray) -> None:
    options: dict[str, Any] = {"method": "pos", "gated": False}
    by_rate = measure(pixels, fps=FPS, **options)
    assert bpm(by_rate) == pytest.approx(84, abs=1)
    assert (by_rate.video, by_rate.frame_count) == ("array", len(film))
    times_s = [frame.t_s for frame in film]
    others = [
        measure(pixels, t_s=times_s, **options),
        measure(film, **options),
        measure((frame for frame in film), **options),
        measure(list(pixels), fps=FPS, **options),
        measure(iter(pixels), t_s=times_s, **options),
    ]
    for other in others:
        assert other.faces[0].to_dict() == by_rate.faces[0].to_dict()
    assert by_rate.warnings == ()


def test_times_count_and_not_their_origin(pixels: ByteArray) -> None:
    shifted = measure(pixels, t_s=1e9 + np.arange(len(pixels)) / FPS, method="pos", gated=False)
    assert bpm(shifted) == pytest.approx(84, abs=1)
    slower = measure(pixels, fps=15, method="pos", gated=False)
    assert bpm(slower) == pytest.approx(63, abs=1)


def test_a_session_uses_the_default_network_of_measure(film: list[Frame]) -> None:
    session = Session(gated=False, context_s=10.0)
    events = [event for frame in film for event in session.push(frame)] + session.finish()
    found = [event for event in events if isinstance(event, WindowResult)]
    (face,) = measure(film, gated=False).faces
    assert session.config.method == "phasenet-stream"
    assert found == list(face.windows)


def test_a_folder_of_images_with_a_frame_rate(pixels: ByteArray, tmp_path: Path) -> None:
    names = [f"frame{index}.png" for index in range(len(pixels))]  # not padded: 10 comes after 9
    write_images(tmp_path / "images", pixels, names)
    found = measure(tmp_path / "images", fps=FPS, method="pos", gated=False)
    assert found.video == str(tmp_path / "images")
    assert found.bits_per_pixel is None
    assert found.faces[0].to_dict() == measure(pixels, fps=FPS, method="pos", gated=False).faces[0].to_dict()


@pytest.mark.parametrize(("per_s", "digits"), [(1_000_000_000, 19), (1_000_000, 16), (1_000, 13)])
def test_a_folder_in_the_layout_of_pure(tmp_path: Path, per_s: int, digits: int) -> None:
    stamps = [1_392_643_993 * per_s + index * per_s // 20 for index in range(4)]
    assert {len(str(stamp)) for stamp in stamps} == {digits}
    write_images(tmp_path / "01-01" / "01-01", SMALL, [f"Image{stamp}.png" for stamp in stamps])
    assert is_frame_folder(tmp_path / "01-01")
    source = open_source(str(tmp_path / "01-01"))
    np.testing.assert_allclose([frame.t_s for frame in source.frames()], [0, 0.05, 0.1, 0.15])


def test_a_folder_of_jpegs_with_times(tmp_path: Path) -> None:
    write_images(tmp_path / "a", SMALL + np.uint8(100), ["1.jpg", "2.JPG", "10.jpeg", "11.jpg"])
    (tmp_path / "a" / "notes.txt").write_text("no image")
    given = list(open_source(tmp_path / "a", t_s=[0, 0.1, 0.3, 0.4]).frames())
    assert [frame.t_s for frame in given] == [0, 0.1, 0.3, 0.4]
    np.testing.assert_allclose(given[0].rgb, 100, atol=3)


def refusal(video: Any, **options: Any) -> str:
    """Return the text of the refusal of `measure`."""
    with pytest.raises(PhaseError) as caught:
        measure(video, method="pos", **options)
    assert isinstance(caught.value, (ArgumentError, VideoError))
    return str(caught.value)


@pytest.mark.parametrize(
    ("video", "options", "words"),
    [
        (SMALL, {}, "fps or t_s: got none"),
        (SMALL, {"fps": 20, "t_s": [0, 1, 2, 3]}, "fps and t_s: got both"),
        (SMALL.astype(np.float32), {"fps": 20}, "multiply values of 0–1 by 255"),
        (SMALL.astype(np.int16), {"fps": 20}, "int16"),
        (SMALL[0], {"fps": 20}, r"shape \(36, 48, 3\)"),
        (SMALL[..., :1], {"fps": 20}, r"\(T,H,W,3\)"),
        (SMALL[..., 0], {"fps": 20}, r"\(T,H,W,3\)"),
        (SMALL.transpose(0, 3, 1, 2), {"fps": 20}, "move the colour axis to the end"),
        (SMALL[:0], {"fps": 20}, "no frames"),
        (SMALL[:, :0], {"fps": 20}, r"\(T,H,W,3\)"),
        (np.array([None, "a"], dtype=object), {"fps": 20}, "different shapes or types"),
        (SMALL, {"fps": 0}, "fps: got 0"),
        (SMALL, {"fps": float("nan")}, "fps: got nan"),
        (SMALL, {"fps": 2000}, "up to 1000"),
        (SMALL, {"fps": "20"}, "fps: got '20'"),
        (SMALL, {"fps": 20, "window_s": "10"}, "window: got '10'"),
        (SMALL, {"fps": 20, "step_s": None}, "step: got None"),
        (SMALL, {"t_s": [0, 0.1, 0.2]}, "4, one for each frame"),
        (SMALL, {"t_s": [0, 0.1, 0.1, 0.2]}, "0.1 after 0.1 at frame 2"),
        (SMALL, {"t_s": [0, 0.2, 0.1, 0.3]}, "0.1 after 0.2 at frame 2"),
        (SMALL, {"t_s": [0, 0.1, float("nan"), 0.2]}, "1 times that are not finite"),
        (SMALL, {"t_s": [0, 33, 67, 100]}, "divide milliseconds by 1000"),
        (SMALL, {"t_s": [[0, 1, 2, 3]]}, r"shape \(1, 4\)"),
        (SMALL, {"t_s": ["a", "b", "c", "d"]}, "a list of times in seconds"),
        ([], {}, "no frames"),
        ([], {"fps": 20}, "no frames"),
        (iter(()), {}, "no frames"),
        ([SMALL[0]], {}, "pictures without times need fps or t_s"),
        ([SMALL[0], SMALL[0, 1:]], {"fps": 20}, r"the shape of frame 0, \(36, 48, 3\)"),
        ([SMALL[0], SMALL[0].astype(float)], {"fps": 20}, "frame 1: got float64"),
        ([SMALL[0], "picture"], {"fps": 20}, "frame 1: got str"),
        ([SMALL[0], Frame(SMALL[0], 1.0)], {"fps": 20}, "frame 1: got a frame with t_s"),
        ([Frame(SMALL[0], 0.0), SMALL[0]], {}, "frame 1: got ndarray"),
        ([SMALL[0]] * 3, {"t_s": [0, 0.1]}, "t_s: got 2 times"),
        ([SMALL[0]] * 2, {"t_s": [0, 0.1, 0.2]}, "t_s: got 3 times, accepted: 2"),
        ([Frame(SMALL[0], 0.1), Frame(SMALL[0], 0.1)], {}, "frame 1: got 0.1 s after 0.1 s"),
        ([Frame(SMALL[0], 0.1), Frame(SMALL[0], 0.0)], {}, "frame 1: got 0 s after 0.1 s"),
        ([Frame(SMALL[0], float("nan"))], {}, "frame 0: got nan"),
        ([Frame(SMALL[0], None)], {}, "frame 0: got None"),  # type: ignore[arg-type]
        ([Frame(SMALL[0].astype(float), 0.0)], {}, "frame.rgb: got float64"),  # type: ignore[arg-type]
        ([Frame(SMALL[0], 33.0 * i) for i in range(9)], {}, "divide milliseconds by 1000"),
        (42, {}, "video: got int"),
        (None, {}, "video: got NoneType"),
        (VideoFile("face.mp4"), {"fps": 20}, "the frames have their own times"),
        ("face.mp4", {"t_s": [0, 1 / 30]}, "t_s: got given"),
        ("https://example.org/face.mp4", {}, "is a web address; download the file first"),
        ("absent.mp4", {}, "does not exist"),
        ("", {}, "video: got an empty name"),
    ],
)  # fmt: skip
def test_misuse_is_refused(video: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PhaseError, match=words) as caught:
        measure(video, method="pos", **options)
    assert isinstance(caught.value, (ArgumentError, VideoError))


def test_a_still_picture_says_that_it_is_one(tmp_path: Path) -> None:
    write_images(tmp_path / "a", SMALL[:1], ["photo.png"])
    assert "is a still picture; give a video" in refusal(tmp_path / "a" / "photo.png")


def test_folders_that_cannot_be_measured(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "is a folder without images" in refusal(tmp_path / "empty")
    assert not is_frame_folder(tmp_path / "empty")
    write_images(tmp_path / "plain", SMALL, ["1.png", "2.png", "3.png", "4.png"])
    assert "contain no timestamps" in refusal(tmp_path / "plain")
    assert "4, one for each image" in refusal(tmp_path / "plain", t_s=[0.0])
    stamp = 1_392_643_993_000_000_000
    names = [f"{letter}{stamp}.png" for letter in "abcd"]
    write_images(tmp_path / "equal", SMALL, names)
    assert "increasing times" in refusal(tmp_path / "equal")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not apply")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    assert "check its permissions" in refusal(tmp_path / "closed")


def push_all(session: Session, source: list[Frame]) -> int:
    """Push all frames and return the number of events."""
    return sum(len(session.push(frame)) for frame in source)


def blue(source: list[Frame]) -> list[Frame]:
    return [Frame(frame.rgb[..., ::-1], frame.t_s) for frame in source]


def test_bgr_frames_are_suspected(film: list[Frame]) -> None:
    with pytest.warns(PhaseWarning, match="BGR"):
        result = measure(blue(film), method="pos")
    assert "BGR" in result.warnings[0]


@pytest.fixture
def pulse() -> list[Frame]:
    t_s = seconds(3)
    return frames(t_s, 0.01 * tone(t_s, 75))


@pytest.fixture
def session() -> Session:
    detector: Any = FixedDetector()
    return Session(detector=detector, method="pos")


def test_a_session_warns_once_about_bgr(session: Session, pulse: list[Frame]) -> None:
    with pytest.warns(PhaseWarning, match="BGR") as caught:
        push_all(session, blue(pulse))
    assert len(caught) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("skin", [(230, 190, 170), (90, 60, 45), (128, 128, 128), (0, 0, 0)])
def test_no_skin_tone_is_suspected(session: Session, skin: tuple[int, int, int]) -> None:
    picture = np.broadcast_to(np.uint8(skin), (60, 80, 3))
    for index in range(60):
        session.push(Frame(picture, index / 30))


@pytest.mark.parametrize("index", [4, 5], ids=["backward", "equal"])
def test_a_session_refuses_a_time_that_is_not_later_and_goes_on(
    index: int, session: Session, pulse: list[Frame]
) -> None:
    session.push(pulse[5])
    with pytest.raises(ArgumentError, match="after that of the previous frame"):
        session.push(pulse[index])
    session.push(pulse[6])
    assert session.frame_count == 2


def test_a_session_refuses_milliseconds(session: Session, pulse: list[Frame]) -> None:
    with pytest.raises(ArgumentError, match="divide milliseconds by 1000"):
        push_all(session, [replace(frame, t_s=1000 * frame.t_s) for frame in pulse])
    assert session.frame_count == 5


def test_one_long_pause_is_no_misuse(session: Session, pulse: list[Frame]) -> None:
    for frame in pulse:
        session.push(replace(frame, t_s=frame.t_s + 5 * (frame.t_s > 0)))
    assert session.frame_count == len(pulse)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (SMALL[0], "frame: got ndarray"),
        (Frame(SMALL[0].tolist(), 0.0), "frame.rgb: got list"),
        (Frame(SMALL[0] / 255, 0.0), "multiply values of 0–1 by 255"),
        (Frame(SMALL[0, 0], 0.0), r"\(H,W,3\)"),
        (Frame(SMALL[0].transpose(2, 0, 1), 0.0), "move the colour axis"),
        (Frame(SMALL[0], float("inf")), "a finite time"),
        (Frame(SMALL[0], "0.1"), "a finite time"),  # type: ignore[arg-type]
    ],
)
def test_a_session_refuses_wrong_frames(session: Session, frame: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        session.push(frame)


def test_a_session_ends_once(session: Session, pulse: list[Frame]) -> None:
    session.push(pulse[0])
    session.finish()
    for call in (lambda: session.push(pulse[1]), session.finish):
        with pytest.raises(UsageError, match="the session is finished; open a new one"):
            call()


def test_settings_of_a_session() -> None:
    config = SessionConfig(method="chrom", window_s=6.0)
    assert Session(config).config is config
    assert Session().config.method == "phasenet-stream"
    assert Session(method="green", window_s=5, faces="largest").config.faces == "largest"
    with pytest.raises(ArgumentError, match="given with other settings"):
        Session(config, window_s=5)
    with pytest.raises(ArgumentError, match="a method is method="):
        Session("pos")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="fps: got '30'"):
        SessionConfig(fps="30")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="phasenet-stream"):
        Session(method="phasenet-steam")
    with pytest.raises(WeightsError, match=r"absent\.onnx: no such file"):
        Session(method=Path("absent.onnx"))


def test_an_onnx_file_by_its_path(film: list[Frame]) -> None:
    path = onnx.WEIGHTS / "phasenet-stream.onnx"
    by_path = measure(film, method=path, gated=False)
    assert Session(method=path).config.model is not None
    assert bpm(by_path) == pytest.approx(84, abs=2)


def test_a_public_session_is_restored(session: Session, pulse: list[Frame]) -> None:
    for frame in pulse[:40]:
        session.push(frame)
    restored = pickle.loads(pickle.dumps(session))
    assert isinstance(restored, Session)
    assert len(restored.push(pulse[40])) == len(session.push(pulse[40]))


def test_the_log_names_video_and_result(film: list[Frame], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "phase_rppg"):
        measure(film[:60], method="pos")
    assert "measuring list with pos" in caplog.text
    assert "face 0 appeared" in caplog.text
    assert "60 frames, 1 faces" in caplog.text


def test_the_log_is_silent_by_default(film: list[Frame], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(PhaseWarning):
        measure(blue(film[:80]), method="pos")
    assert capfd.readouterr() == ("", "")


def test_times_of_a_source_may_be_any_number_type() -> None:
    class Source:
        def frames(self) -> Iterator[Frame]:
            t_s: FloatArray = np.arange(4, dtype=np.float32) / 30
            return (Frame(picture, time) for picture, time in zip(SMALL, t_s, strict=True))  # type: ignore[arg-type]

    assert measure(Source(), method="pos").frame_count == 4
