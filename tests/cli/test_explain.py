"""`phase explain` draws the recorded attention masks and reports videos without a face or a pulse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.cli import run
from phase_rppg.infer import load
from phase_rppg.measurement.attention import Attention, area_mean, record_attention
from phase_rppg.report.attention_plots import frames_at
from phase_rppg.report.attention_video import overlay_heatmap
from phase_rppg.types import Frame
from phase_rppg.video.decode import VideoFile

Film_ = Callable[[str], Path]


def test_an_image_and_its_json(film: Film_, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "face.png"
    words = ["explain", str(film("face")), "-o", str(out), "--at", "9", "--at", "2", "--json"]
    assert run(words) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    found = json.loads(capsys.readouterr().out)
    assert 65 < found["bpm"] < 79
    assert found["pictures"] > 300
    assert found["on_skin"][0] > found["skin_area"]  # more than a uniform mask
    assert np.sum(found["mean_mask"]) == pytest.approx(1.0, abs=0.01)


def test_the_output_video_keeps_the_timestamps(film: Film_, tmp_path: Path) -> None:
    video, out = film("short"), tmp_path / "short.mp4"
    assert run(["explain", str(video), "-o", str(out), "-q"]) == 3  # two seconds are too short for a reading
    before, after = (list(VideoFile(path).frames()) for path in (video, out))
    assert [frame.t_s for frame in after] == pytest.approx([frame.t_s for frame in before], abs=1e-3)
    assert after[0].rgb.shape[0] > before[0].rgb.shape[0]  # the waveform is below the video
    changed = np.abs(after[30].rgb[:160].astype(int) - before[30].rgb).max(-1)
    assert changed[60:100, 84:124].mean() > 3 * changed[:, :20].mean()  # the heat map is on the face


@pytest.mark.parametrize(("name", "code", "words"), [
    ("nobody", 3, "NO_FACE"), ("photo", 3, ""), ("text", 4, "text.mp4"), ("empty_folder", 4, "folder"),
])  # fmt: skip
def test_exit_codes_without_a_reading(
    name: str, code: int, words: str, film: Film_, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.png"
    assert run(["explain", str(film(name)), "-o", str(out)]) == code
    assert words in capsys.readouterr().err
    assert out.exists() == (name == "photo")  # there is a face, so the masks are drawn


@pytest.mark.parametrize(("words", "code", "problem"), [
    ([], 2, "no video"),
    (["VIDEO"], 2, ".png, .svg, .pdf or .mp4"),
    (["VIDEO", "-o", "a.gif"], 2, ".png, .svg, .pdf or .mp4"),
    (["VIDEO", "-o", "a.png", "--face", "9"], 2, "unknown face '9'"),
    (["VIDEO", "-o", "a.png", "--at", "99"], 2, "--at"),
    (["VIDEO", "-o", "a.png", "--model", "nothing"], 2, "exported network"),
    (["VIDEO", "-o", "a.png", "--model", "nothing.onnx"], 4, "no such file"),
    (["VIDEO", "-o", "/proc/a.png"], 4, "cannot write"),
    (["--kernel", "-o", "a.mp4"], 2, ".png, .svg or .pdf"),
    (["--kernel", "VIDEO"], 2, "--model"),
    (["--kernel", "--model", "missing.safetensors"], 4, "no such file"),
])  # fmt: skip
def test_usage_errors_state_the_accepted_values(
    words: list[str],
    code: int,
    problem: str,
    film: Film_,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["explain", *(str(film("short")) if w == "VIDEO" else w for w in words)]) == code
    assert problem in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_recording_masks_does_not_change_the_waveform(film: Film_) -> None:
    """The waveform equals that of a measurement without recording, and each mask sums to 1."""
    from phase_rppg import measure

    video = film("short")
    seen = record_attention(VideoFile(video))
    face = seen.face("largest")
    assert face is not None
    # Up to rounding: a file without masks is computed in batches of frames.
    np.testing.assert_allclose(face.wave.values, measure(video).faces[0].wave.values, rtol=1e-4, atol=1e-4)
    attention = seen.attentions[face.id]
    assert np.diff(attention.t_s) == pytest.approx(np.full(len(attention.t_s) - 1, 1 / load().fps))
    np.testing.assert_allclose(attention.masks.sum((-1, -2)), 1, atol=5e-3)


def test_share_of_a_mask_on_skin() -> None:
    skin = np.zeros((36, 36), np.float32)
    skin[:18] = 1.0
    even, top = np.full((9, 9), 1 / 81, np.float32), np.zeros((9, 9), np.float32)
    top[0, 0] = 1.0
    attention = Attention(np.array([0.0]), np.stack([even, top])[None], np.zeros((1, 4)), (skin,))
    np.testing.assert_allclose(attention.on_skin(0), [0.5, 1.0], atol=1e-5)
    assert attention.skin_area(0) == 0.5
    assert attention.index_at(0.2) == 0
    assert attention.index_at(2.0) is None
    assert area_mean(skin, 7).mean() == pytest.approx(0.5)


def test_the_heat_map_changes_only_its_box() -> None:
    picture = np.full((40, 60, 3), 100, np.uint8)
    heat = np.zeros((9, 9))
    heat[4, 4] = 1.0
    overlay_heatmap(picture, heat, (45.0, -5.0, 30.0, 30.0))  # the box exceeds the image on two sides
    assert (picture[:, :45] == 100).all()
    assert (picture[26:] == 100).all()
    assert abs(picture[10, 59].astype(int) - 100).max() > 20
    assert (picture[2, 50] == 100).all()
    overlay_heatmap(picture, heat, (100.0, 100.0, 20.0, 20.0))  # a box outside the image changes nothing


def test_frames_at_returns_the_nearest_frames() -> None:
    frames = [Frame(np.zeros((2, 2, 3), np.uint8), t) for t in (0.0, 1.0, 2.0)]
    assert [frame.t_s for frame in frames_at(iter(frames), [1.8, 0.4, 9.0])] == [0.0, 2.0, 2.0]
