"""Files that `phase measure` writes: a folder per video, single files, refusals and resuming."""

from __future__ import annotations

import csv
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from phase_rppg.cli import measure_inputs, run
from phase_rppg.measurement.batch import find_videos
from phase_rppg.report import folder

Films = Callable[[str], Path]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "measure.schema.json").read_text(encoding="utf-8"))
POS = ["-m", "pos"]


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.fixture
def videos(film: Films, tmp_path: Path) -> Path:
    """Two recordings with the same file name, one file that is no video, and a folder without videos."""
    root = tmp_path / "videos"
    for name, source in (("s1/vid.mp4", "face"), ("s2/vid.mp4", "short"), ("s2/bad.avi", "text")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(film(source), root / name)
    (root / "empty").mkdir()
    return root


def test_a_folder_holds_all_results(film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "out"
    assert run(["measure", str(film("face")), "-o", str(out), "--overlay"]) == 0
    assert capfd.readouterr().out.endswith(f"written: {out}\n")
    assert sorted(p.name for p in out.iterdir()) == sorted([*folder.FILES, folder.OVERLAY])
    found = json.loads((out / "result.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, SCHEMA)
    (face,) = found["faces"]
    waves = table(out / "wave.csv")
    beats = table(out / "beats.csv")
    windows = table(out / "windows.csv")
    assert len(waves) == len(face["wave"]["values"]) == 330
    assert [float(row["time_s"]) for row in beats] == [beat["time_s"] for beat in face["beats"]]
    assert [float(row["low"]) for row in windows] == [window["low"] for window in face["windows"]]
    assert all(w["low"] <= w["bpm"] <= w["high"] for w in face["windows"])
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG")
    import av

    with av.open(str(out / "overlay.mp4")) as video:
        assert video.streams.video[0].frames == 330
        assert video.streams.video[0].height > 160  # the waveform is below the picture


def test_full_json_has_the_wave_and_the_beats(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(film("face")), "--json", "--full"]) == 0
    full = json.loads(capfd.readouterr().out)
    jsonschema.validate(full, SCHEMA)
    intervals_s = [beat["ibi_s"] for beat in full["faces"][0]["beats"] if beat["ibi_s"] is not None]
    assert len(intervals_s) > 8
    assert 60 / (sum(intervals_s) / len(intervals_s)) == pytest.approx(72, abs=2)


def test_csv_goes_to_standard_output(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(film("face")), *POS, "--csv", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert len(rows) == 2
    videos = [str(film("face")), str(film("short"))]
    assert run(["measure", *videos, *POS, "--csv", "-", "--workers", "0"]) == 0
    assert {row["video"] for row in csv.DictReader(io.StringIO(capfd.readouterr().out))} == set(videos)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_suffix_sets_the_format_of_a_plot(suffix: str, film: Films, tmp_path: Path) -> None:
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    for number in (1, 2):
        assert run(["measure", str(film("short")), *POS, "--plot", str(tmp_path / f"{number}{suffix}")]) == 3
    assert (tmp_path / f"1{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize(
    "words",
    [
        ["--full"], ["--json", "--ndjson"], ["--json", "--csv", "-"], ["--overlay"], ["--resume"],
        ["-o", "out", "--overlay", "-m", "pos"], ["-o", "out", "--resume", "--csv", "x.csv"],
        ["--workers", "-1"],
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_usage_errors(
    words: list[str], film: Films, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(["measure", str(film("short")), *words]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("-o", "out/result.json"), ("--csv", "x.csv"), ("--wave", "x.csv"), ("--beats", "x.csv"),
        ("--plot", "x.png"), ("--report", "x.html"),
    ],
)  # fmt: skip
def test_existing_files_are_replaced_only_with_force(
    option: str, name: str, film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / name
    target.parent.mkdir(exist_ok=True)
    target.write_text("mine")
    given = tmp_path / "out" if option == "-o" else target
    words = ["measure", str(film("short")), *POS, option, str(given)]
    assert run(words) == 4
    assert capfd.readouterr().err == f"error: cannot write {target}: exists; overwrite it with --force\n"
    assert target.read_text() == "mine"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [target]
    assert run([*words, "--force"]) == 3
    assert b"mine" not in target.read_bytes()[:10]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_refused_before_measuring(
    film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o500)
    assert run(["measure", str(film("face")), "-o", str(tmp_path / "out")]) == 4
    assert "not a writable folder" in capfd.readouterr().err


def test_a_folder_below_a_file_is_refused_before_measuring(
    film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    video, start_s = str(film("face")), time.monotonic()
    assert run(["measure", video, "-o", str(tmp_path / "file")]) == 4
    assert time.monotonic() - start_s < 1.5
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: cannot write")


def test_a_batch_writes_a_folder_per_video(
    videos: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    inputs = [str(videos), str(videos / "empty")]
    assert run(["measure", *inputs, *POS, "-o", str(out), "--plot", str(tmp_path / "p.svg")]) == 0
    printed = capfd.readouterr().out
    for name in ("s1/vid.mp4", "s2/vid.mp4"):
        assert (out / name / "result.json").exists()
        assert name in printed
    assert "4 videos: 1 with a reading, 1 without, 2 could not be measured" in printed
    assert not (out / "s2" / "bad.avi").exists()
    assert sorted(p.name for p in tmp_path.glob("p*.svg")) == ["p-s1-vid-mp4.svg", "p-s2-vid-mp4.svg"]
    rows = table(out / "summary.csv")
    assert len(rows) == 4
    assert [bool(row["error"]) for row in rows] == [False, True, False, True]


def test_resuming_skips_what_is_there_and_measures_what_changed(
    videos: Path, film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["measure", str(videos), *POS, "-o", str(tmp_path / "out"), "--resume", "--workers", "0"]
    first, second = (tmp_path / "out" / name / "vid.mp4" / "result.json" for name in ("s1", "s2"))
    assert run(words) == 0
    stamp = first.stat().st_mtime_ns
    second.unlink()  # as if the run had been interrupted
    capfd.readouterr()
    assert run(words) == 0
    assert capfd.readouterr().out.count("measured before") == 1
    assert first.stat().st_mtime_ns == stamp
    assert second.exists()
    shutil.copy(film("other"), videos / "s1" / "vid.mp4")  # the same name, another video
    assert run([*words, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert found[0]["faces"][0]["summary"]["bpm"] == pytest.approx(96, abs=2)
    stamp = first.stat().st_mtime_ns
    assert run([*words, "--window", "8"]) == 0  # other options
    assert first.stat().st_mtime_ns != stamp


def test_one_video_is_resumed(film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["measure", str(film("face")), *POS, "-o", str(tmp_path), "--resume"]
    assert run(words) == 0
    stamp = (tmp_path / "result.json").stat().st_mtime_ns
    capfd.readouterr()
    assert run(words) == 0
    assert "measured before" in capfd.readouterr().out
    assert run([*words, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert "provenance" not in found
    assert "wave" not in found["faces"][0]
    assert (tmp_path / "result.json").stat().st_mtime_ns == stamp


def test_json_lines_come_as_videos_end(videos: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(videos), *POS, "--ndjson", "--workers", "1"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert len(lines) == 3
    for line in lines:
        jsonschema.validate(line, SCHEMA)


@pytest.mark.skipif(sys.platform != "linux", reason="sends signals")
def test_a_file_gets_no_progress_bar_even_with_colours(film: Films, tmp_path: Path) -> None:
    shutil.copy(film("face"), tmp_path / "face.mp4")
    command = [sys.executable, "-m", "phase_rppg", "measure", str(tmp_path), *POS, "--workers", "0"]
    coloured = {**os.environ, "FORCE_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, env=coloured, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"face.mp4" in done.stdout
    assert b"\r" not in done.stdout + done.stderr


def test_an_interrupted_batch_keeps_finished_videos(film: Films, tmp_path: Path) -> None:
    names = [str(film("short")), str(film("leaving")), str(film("crossing"))]
    out, table = tmp_path / "out", tmp_path / "w.csv"
    words = [sys.executable, "-c", "from phase_rppg.cli import main; main()", "measure", "--workers", "1"]
    child = subprocess.Popen(
        [*words, *names, "-o", str(out), "--csv", str(table)],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    deadline_s = time.monotonic() + 60
    while not (out / "short.mp4" / "result.json").exists() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    time.sleep(1.0)
    os.killpg(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert child.returncode == 130, err
    assert (out / "short.mp4" / "report.html").exists()
    assert not (out / "crossing.mp4" / "result.json").exists()
    assert "short.mp4" in (out / "summary.csv").read_text(encoding="utf-8")
    assert "TOO_SHORT" in table.read_text(encoding="utf-8")


def test_folders_are_searched_with_a_pattern(videos: Path, tmp_path: Path) -> None:
    found, failures = find_videos([videos])
    assert [video.label for video in found] == ["s1/vid.mp4", "s2/bad.avi", "s2/vid.mp4"]
    found, _ = find_videos([videos], "*.mp4")
    assert [video.label for video in found] == ["s1/vid.mp4", "s2/vid.mp4"]
    found, _ = find_videos([videos], "s2/*")
    assert [video.label for video in found] == ["s2/bad.avi", "s2/vid.mp4"]
    found, failures = find_videos([videos, videos / "empty"], "*.webm")
    assert found == []
    assert [failure.video for failure in failures] == [str(videos), str(videos / "empty")]
    assert all("match *.webm" in failure.problem for failure in failures)
    found, _ = find_videos([videos / "s1" / "vid.mp4", videos / "s2" / "vid.mp4"])
    assert [video.label for video in found] == ["s1/vid.mp4", "s2/vid.mp4"]


def test_the_output_folder_is_not_searched(videos: Path) -> None:
    (videos / "out").mkdir()
    shutil.copy(videos / "s1" / "vid.mp4", videos / "out" / "overlay.mp4")
    found, _ = find_videos([videos], exclude=videos / "out")
    assert [video.label for video in found] == ["s1/vid.mp4", "s2/bad.avi", "s2/vid.mp4"]


def test_one_face_is_selected_by_its_number(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["measure", str(film("two")), *POS, "--json", "--ungated", "--face"]
    assert run([*words, "1"]) == 0
    (face,) = json.loads(capfd.readouterr().out)["faces"]
    assert face["id"] == 1
    assert run([*words, "7"]) == 2
    assert "unknown face '7': choices: 0, 1" in capfd.readouterr().err


def measure_stdin(data: bytes | int, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phase_rppg", "measure", "-", *POS, *words]
    given = {"input": data} if isinstance(data, bytes) else {"stdin": data}
    done = subprocess.run(command, capture_output=True, check=False, timeout=60, **given)  # type: ignore[call-overload]
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_standard_input_is_measured(film: Films) -> None:
    done = measure_stdin(film("face").read_bytes(), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["video"] == "stdin"
    assert found["faces"][0]["summary"]["bpm"] == pytest.approx(72, abs=2)


def test_standard_input_without_a_video_is_refused() -> None:
    assert measure_stdin(b"").returncode == 4
    with open(os.devnull, "rb") as device:
        done = measure_stdin(device.fileno())
    assert done.returncode == 2
    assert "standard input is not a video" in done.stderr
    done = measure_stdin(b"text " * 100)
    assert done.returncode == 4
    assert "error: stdin: is not a video" in done.stderr


def test_long_standard_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from phase_rppg.errors import VideoError

    monkeypatch.setattr(measure_inputs, "MAX_SPOOLED_BYTES", 1 << 20)
    with pytest.raises(VideoError, match="longer than"):
        measure_inputs._copy(io.BytesIO(bytes(3 << 20)), tmp_path / "copy", "stdin")
    assert (tmp_path / "copy").stat().st_size <= 1 << 20


@pytest.fixture
def server(film: Films) -> Iterator[str]:
    """Return the address of a local server of the videos."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def __init__(self, *given: object) -> None:
            super().__init__(*given, directory=str(film("face").parent))  # type: ignore[arg-type]

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def test_a_web_address_is_measured_only_if_allowed(server: str, capfd: pytest.CaptureFixture[str]) -> None:
    address = f"{server}/face.mp4"
    assert run(["measure", address, *POS]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "is a web address; download the file first, or add --allow-network" in err
    assert run(["measure", address, *POS, "--allow-network", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["video"] == address
    assert run(["measure", f"{server}/absent.mp4", *POS, "--allow-network"]) == 4
    assert "cannot be downloaded (" in capfd.readouterr().err
    assert run(["measure", "rtsp://127.0.0.1/x", *POS, "--allow-network"]) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_or_a_device_never_hangs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    for name in (tmp_path / "pipe.mp4", Path("/dev/zero")):
        assert run(["measure", str(name), *POS]) == 4
        assert "is a pipe or a device" in capfd.readouterr().err
    assert run(["measure", str(tmp_path), *POS]) == 4
    assert "contains no videos" in capfd.readouterr().err


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".mp4"])
def test_a_still_picture_says_that_it_is_one(
    suffix: str, film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import av

    name = tmp_path / f"photo{suffix}"
    with av.open(str(film("face"))) as video:
        picture = next(video.decode(video=0))
    kind = "png" if suffix == ".png" else "mjpeg"
    with av.open(str(tmp_path / f"photo.{'png' if kind == 'png' else 'jpg'}"), "w", format="image2") as file:
        stream = file.add_stream(kind, rate=1)
        stream.width, stream.height = picture.width, picture.height
        stream.pix_fmt = "rgb24" if kind == "png" else "yuvj420p"
        for packet in [*stream.encode(picture), *stream.encode()]:
            file.mux(packet)
    if suffix == ".mp4":
        (tmp_path / "photo.jpg").rename(name)
    assert run(["measure", str(name), *POS]) == 4
    assert "is a still picture; " in capfd.readouterr().err


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """A recording in the layout of PURE: pictures whose names end with a time in nanoseconds."""
    from matplotlib.image import imsave

    from cli.filmset import film, middle
    from drawing import clock

    folder = tmp_path / "pure" / "01-01" / "01-01"
    folder.mkdir(parents=True)
    for frame in film(middle, clock(9, 15)).frames():
        imsave(folder / f"Image{1392643993642815000 + round(frame.t_s * 1e9)}.png", frame.rgb)
    (folder.parent / "01-01.json").write_text("{}")
    return folder.parent


def test_a_folder_of_frames_is_one_video(
    frames: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for given in (frames, frames / "01-01"):
        assert run(["measure", str(given), *POS, "--window", "8", "--json"]) == 0
        found = json.loads(capfd.readouterr().out)
        assert found["video"] == str(given)
        assert found["duration_s"] == pytest.approx(9, abs=0.1)
        assert found["faces"][0]["summary"]["bpm"] == pytest.approx(72, abs=2)
    assert run(["measure", str(frames.parent), *POS, "--window", "8", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "01-01" / "result.json").exists()
    assert "1 video: 1 with a reading" in capfd.readouterr().out


def test_frames_without_timestamps_need_the_frame_rate(
    frames: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = frames / "01-01"
    for number, picture in enumerate(sorted(inner.iterdir())):
        picture.rename(inner / f"frame{number}.png")
    assert run(["measure", str(inner), *POS]) == 2
    error = capfd.readouterr().err
    assert "--fps 30, because the names of the images" in error
    assert "contain no timestamps" in error
    assert run(["measure", str(inner), *POS, "--window", "8", "--fps", "15", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["faces"][0]["summary"]["bpm"] == pytest.approx(72, abs=2)


def test_a_file_that_cannot_be_written_does_not_lose_the_batch(
    videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(source: object, target: object, replace: Callable[..., None] = os.replace) -> None:
        if str(target).endswith("beats.csv"):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    out = tmp_path / "out"
    assert run(["measure", str(videos), *POS, "-o", str(out), "--workers", "0", "--json"]) == 4
    printed, err = capfd.readouterr()
    assert [entry.get("error") is None for entry in json.loads(printed)] == [True, False, True]
    assert err.startswith("error: cannot write ")
    assert err.count("\n") == 1
    assert not list(out.rglob("result.json"))  # no folder looks complete
