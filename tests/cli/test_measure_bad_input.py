"""Bad input to `phase measure` gives one line, the documented exit code and no incomplete file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from phase_rppg.cli import run

Films = Callable[[str], Path]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "measure.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sound", "no video stream"),
        ("text", "not a video"),
        ("empty", "is empty"),
        ("empty_folder", "contains no videos"),
        ("no_frames", "read"),
        ("beheaded", "not a video"),
        ("huge", "16000×16000"),
        ("tiny", "16×16"),
        ("absent", "does not exist"),
        ("x" * 300, "too long"),
    ],
)
def test_unreadable_files_are_bad_input(
    name: str, words: str, film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    absent = name == "absent" or len(name) > 100
    video = tmp_path / f"{name}.mp4" if absent else film(name)
    outputs = [tmp_path / "out.png", tmp_path / "out.html", tmp_path / "out.csv"]
    options = ["--plot", str(outputs[0]), "--report", str(outputs[1]), "--csv", str(outputs[2])]
    code = run(["measure", str(video), "--json", *options])
    out, err = capfd.readouterr()
    assert code == 4
    found = json.loads(out)
    jsonschema.validate(found, SCHEMA)
    assert err == f"error: {found['error']}\n"
    assert words in err
    assert not any(output.exists() for output in outputs)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("one_frame", "TOO_SHORT"),
        ("short", "TOO_SHORT"),
        ("slow", "LOW_FPS"),
        ("grey", "NO_COLOUR"),
        ("nobody", "NO_FACE"),
        ("no_timestamps", "BAD_TIMESTAMPS"),
        ("photo", "NO_PULSE"),
    ],
)
def test_videos_without_a_pulse_give_no_reading(
    name: str, reason: str, film: Films, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", str(film(name)), "--quiet"]) == 3
    out, err = capfd.readouterr()
    assert out.count("\n") == 1
    assert f"no reading: {reason}" in out
    assert err == ""


def test_a_truncated_file_is_measured_up_to_its_end(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(film("truncated")), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert any("ends after" in warning for warning in found["warnings"])
    assert 8 < found["duration_s"] < 13
    assert abs(found["faces"][0]["summary"]["bpm"] - 72) < 2


def test_missing_timestamps_can_be_replaced(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(film("no_timestamps")), "--fps", "30", "--json"]) == 0
    assert abs(json.loads(capfd.readouterr().out)["faces"][0]["summary"]["bpm"] - 72) < 2


def test_a_face_that_leaves_for_three_seconds_keeps_its_identity(
    film: Films, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", str(film("leaving")), "--json"]) == 0
    faces = json.loads(capfd.readouterr().out)["faces"]
    assert len(faces) == 1
    reasons = {w["reason"] for w in faces[0]["windows"] if w["start_s"] < 5.5 and w["end_s"] > 7.5}
    assert reasons <= {"FACE_LOST"}
    assert abs(faces[0]["summary"]["bpm"] - 72) < 2


def test_two_people_who_cross_keep_separate_tracks(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    run(["measure", str(film("crossing")), "--json", "--ungated", "--window", "5"])
    faces = json.loads(capfd.readouterr().out)["faces"]
    assert len(faces) >= 2
    for face in faces:
        rates = [w["bpm"] for w in face["windows"] if w["p_ok"] > 0.9]
        near = {66 if abs(bpm - 66) < abs(bpm - 102) else 102 for bpm in rates}
        assert len(near) <= 1


def test_a_bad_file_does_not_stop_the_others(
    film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    videos = [str(film(name)) for name in ("text", "face", "empty", "short")]
    assert run(["measure", *videos, "--json", "--workers", "2", "--report", str(tmp_path / "all.html")]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [entry["video"] for entry in found] == videos
    assert ["error" in entry for entry in found] == [True, False, True, False]
    assert (tmp_path / "all.html").exists()
    assert run(["measure", str(film("text")), str(film("empty")), "--workers", "1"]) == 4


@pytest.mark.parametrize("option", ["--csv", "--plot", "--report"])
def test_an_unwritable_output_is_refused_before_measuring(
    option: str, film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    suffix = {"--csv": ".csv", "--plot": ".png", "--report": ".html"}[option]
    (tmp_path / "file").write_text("x")
    pipe, folder = tmp_path / f"pipe{suffix}", tmp_path / f"folder{suffix}"
    os.mkfifo(pipe)
    folder.mkdir()
    video = str(film("face"))  # made before the clock runs
    for target in (folder, tmp_path / "file" / f"out{suffix}", tmp_path / ("x" * 300 + suffix), pipe):
        start_s = time.monotonic()
        assert run(["measure", video, option, str(target)]) == 4
        assert time.monotonic() - start_s < 1.5
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("error: cannot write")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", folder.name, pipe.name]
    assert pipe.is_fifo()


@pytest.mark.parametrize("several", [False, True])
def test_an_output_never_overwrites_a_video_or_another_output(
    several: bool, film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    video = tmp_path / "mine.csv"
    video.write_bytes(film("short").read_bytes())
    videos = [str(video), *[str(film("empty"))] * several]
    alias = tmp_path / "alias.html"
    alias.symlink_to(video)
    out = str(tmp_path / "out.csv")
    wave = ["--wave", str(tmp_path / "out.csv"), "--beats", str(tmp_path / "out.csv")]
    for words in (["--csv", str(video), "--force"], ["--report", str(alias)], ["--csv", out, *wave]):
        assert run(["measure", *videos, *words]) == 2
        assert "another name" in capfd.readouterr().err
    assert video.read_bytes() == film("short").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alias.html", "mine.csv"]


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "pso"], ["--window", "0"], ["--window", "nan"], ["--step", "-1"], ["--face", "biggest"],
        ["--fps", "0"], ["--fps", "nan"], ["--nonsense"], ["--window", "ten"], ["--window", "5.9"],
    ],
)  # fmt: skip
def test_invalid_options_are_usage_errors(
    words: list[str], film: Films, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", str(film("short")), *words]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_an_unknown_method_suggests_the_nearest_name(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    run(["measure", str(film("short")), "--model", "psi"])
    assert "did you mean 'pos'?" in capfd.readouterr().err


def test_an_empty_name_is_not_the_current_folder(
    film: Films, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in a script whose variable is not set."""
    (tmp_path / "face.mp4").write_bytes(film("short").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert run(["measure", ""]) == 2
    assert capfd.readouterr().err == "error: the name of an input is empty; name a video or a folder\n"


@pytest.mark.parametrize("face", ["big", "-1", ""])
def test_an_unknown_face_names_all_choices(face: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "face.mp4", "--face", face]) == 2
    assert capfd.readouterr().err.endswith("accepted: all, largest or the number of a face\n")


def test_a_file_is_no_folder_for_results(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    video = str(film("short"))
    assert run(["measure", video, "-o", video, "--force"]) == 4
    assert capfd.readouterr().err == f"error: cannot write {video}: is a file; -o needs a folder\n"


def test_no_video_is_a_usage_error() -> None:
    assert run(["measure"]) == 2


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--plot", "x.jpg"), ("--plot", "x"), ("--report", "x.pdf"), ("--report", "x"), ("--csv", "x.xlsx"),
        ("--wave", "x.wav"), ("--wave", "x y.hea"), ("--beats", "x.edf"),
    ],
)  # fmt: skip
def test_an_unknown_suffix_is_a_usage_error(
    option: str, name: str, film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = [["measure", str(film("short"))], *[["demo"]] * (option == "--plot")]
    for words in commands:
        assert run([*words, option, str(tmp_path / name)]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith(f"error: {option}: got ")
        assert "accepted: " in err
        assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def children(pid: int) -> int:
    """Return the number of running child processes."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return sum(len(each.read_text(encoding="utf-8").split()) for each in lists)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("videos", "processes"), [(1, 1), (2, 3)])  # the decoder; two workers and a tracker
def test_an_interrupt_gives_130_and_leaves_no_file_or_process(
    videos: int, processes: int, film: Films, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", "from phase_rppg.cli import main; main()", "measure", "--workers", "2"]
    names = [str(film(name)) for name in ("leaving", "crossing")[:videos]]
    child = subprocess.Popen(
        [*words, *names, "--csv", str(tmp_path / "out.csv")],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # As a terminal starts it: a suite that runs in the background hands down an ignored Ctrl+C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while child.poll() is None and children(child.pid) < processes:
        time.sleep(0.01)
    os.killpg(child.pid, signal.SIGINT)  # a terminal sends Ctrl+C to all of them, ready or not
    out, err = child.communicate(timeout=20)
    assert child.returncode == 130, err
    assert err.strip() == "interrupted"
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_inside_an_import_is_still_an_interrupt(
    film: Films, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def measure_one(*words: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise ImportError("initialization failed") from stop

    monkeypatch.setattr("phase_rppg.cli.measure.measure_one", measure_one)
    assert run(["measure", str(film("short")), "--model", "pos"]) == 130
    assert capfd.readouterr().err == "interrupted\n"
