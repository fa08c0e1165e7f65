"""`phase explain` draws what the network really looked at, and says when there is nothing to look at."""

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
from phase_rppg.report.attention_video import lay_over
from phase_rppg.types import Frame
from phase_rppg.video.decode import VideoFile

Film_ = Callable[[str], Path]


def test_a_picture_and_its_figures(film: Film_, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "face.png"
    words = ["explain", str(film("face")), "-o", str(out), "--at", "9", "--at", "2", "--json"]
    assert run(words) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    found = json.loads(capsys.readouterr().out)
    assert 65 < found["bpm"] < 79
    assert found["pictures"] > 300
    assert found["on_skin"][0] > found["skin_area"]  # it looks at skin more than by chance
    assert np.sum(found["mean_mask"]) == pytest.approx(1.0, abs=0.01)


def test_a_film_has_the_clock_of_the_video(film: Film_, tmp_path: Path) -> None:
    video, out = film("short"), tmp_path / "short.mp4"
    assert run(["explain", str(video), "-o", str(out), "-q"]) == 3  # two seconds are too few to read
    before, after = (list(VideoFile(path).frames()) for path in (video, out))
    assert [frame.t_s for frame in after] == pytest.approx([frame.t_s for frame in before], abs=1e-3)
    assert after[0].rgb.shape[0] > before[0].rgb.shape[0]  # the wave beneath
    changed = np.abs(after[30].rgb[:160].astype(int) - before[30].rgb).max(-1)
    assert changed[60:100, 84:124].mean() > 3 * changed[:, :20].mean()  # heat on the face, not beside it


@pytest.mark.parametrize(("name", "code", "words"), [
    ("nobody", 3, "NO_FACE"), ("photo", 3, ""), ("text", 4, "text.mp4"), ("empty_folder", 4, "folder"),
])  # fmt: skip
def test_nothing_to_explain(
    name: str, code: int, words: str, film: Film_, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.png"
    assert run(["explain", str(film(name)), "-o", str(out)]) == code
    assert words in capsys.readouterr().err
    assert out.exists() == (name == "photo")  # where it looked in vain can be seen


@pytest.mark.parametrize(("words", "code", "problem"), [
    ([], 2, "no video"),
    (["VIDEO"], 2, ".png or .mp4"),
    (["VIDEO", "-o", "a.gif"], 2, ".png or .mp4"),
    (["VIDEO", "-o", "a.png", "--face", "9"], 2, "unknown face '9'"),
    (["VIDEO", "-o", "a.png", "--at", "99"], 2, "--at"),
    (["VIDEO", "-o", "a.png", "--weights", "nothing"], 2, "exported network"),
    (["VIDEO", "-o", "a.png", "--weights", "nothing.onnx"], 4, "no such manifest"),
    (["VIDEO", "-o", "/proc/a.png"], 4, "cannot write"),
    (["--kernel", "-o", "a.mp4"], 2, ".png"),
    (["--kernel", "missing.safetensors"], 4, "no such file"),
])  # fmt: skip
def test_a_wrong_call_says_what_to_do(
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


def test_the_masks_are_those_of_the_network_on_the_sessions_crops(film: Film_) -> None:
    """Recording changes nothing: the wave is that of a plain measurement, and the masks belong to it."""
    from phase_rppg import measure

    video = film("short")
    seen = record_attention(VideoFile(video))
    face = seen.face("largest")
    assert face is not None
    np.testing.assert_array_equal(face.wave.values, measure(video).faces[0].wave.values)
    attention = seen.attentions[face.id]
    assert np.diff(attention.t_s) == pytest.approx(np.full(len(attention.t_s) - 1, 1 / load().fps))
    np.testing.assert_allclose(attention.masks.sum((-1, -2)), 1, atol=5e-3)


def test_the_share_on_skin() -> None:
    skin = np.zeros((36, 36), np.float32)
    skin[:18] = 1.0
    even, top = np.full((9, 9), 1 / 81, np.float32), np.zeros((9, 9), np.float32)
    top[0, 0] = 1.0
    attention = Attention(np.array([0.0]), np.stack([even, top])[None], np.zeros((1, 4)), (skin,))
    np.testing.assert_allclose(attention.on_skin(0), [0.5, 1.0], atol=1e-5)
    assert attention.skin_area(0) == 0.5
    assert attention.at(0.2) == 0
    assert attention.at(2.0) is None
    assert area_mean(skin, 7).mean() == pytest.approx(0.5)


def test_heat_stays_in_its_box_and_leaves_cold_cells_alone() -> None:
    picture = np.full((40, 60, 3), 100, np.uint8)
    heat = np.zeros((9, 9))
    heat[4, 4] = 1.0
    lay_over(picture, heat, (45.0, -5.0, 30.0, 30.0))  # leaves the picture on two sides
    assert (picture[:, :45] == 100).all()
    assert (picture[26:] == 100).all()
    assert abs(picture[10, 59].astype(int) - 100).max() > 20
    assert (picture[2, 50] == 100).all()
    lay_over(picture, heat, (100.0, 100.0, 20.0, 20.0))  # quite outside: nothing happens


def test_the_frame_nearest_to_a_moment() -> None:
    frames = [Frame(np.zeros((2, 2, 3), np.uint8), t) for t in (0.0, 1.0, 2.0)]
    assert [frame.t_s for frame in frames_at(iter(frames), [1.8, 0.4, 9.0])] == [0.0, 2.0, 2.0]
