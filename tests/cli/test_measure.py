"""Output of `phase measure`: text, JSON, CSV, plots, reports and tables."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from phase_rppg.cli import run
from phase_rppg.measurement.batch import find_videos

Films = Callable[[str], Path]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "measure.schema.json").read_text(encoding="utf-8"))


def test_one_face_gives_one_line(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(film("face"))]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("face.mp4: 7")
    assert "bpm" in out
    assert out.count("\n") == 1
    assert err == ""


@pytest.mark.parametrize("name", ["face", "nobody", "short", "crossing"])
def test_json_is_one_document_that_follows_the_schema(
    name: str, film: Films, capfd: pytest.CaptureFixture[str]
) -> None:
    code = run(["measure", str(film(name)), "--json"])
    found = json.loads(capfd.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    jsonschema.validate(found, SCHEMA)
    assert code == (0 if any(face["summary"]["bpm"] for face in found["faces"]) else 3)


def test_all_requested_files_are_written(
    film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--csv", str(tmp_path / "new" / "w.csv"), "--plot", str(tmp_path / "p.png"),
             "--report", str(tmp_path / "r.html")]  # fmt: skip
    assert run(["measure", str(film("face")), "--ungated", *words]) == 0
    rows = list(csv.DictReader((tmp_path / "new" / "w.csv").read_text(encoding="utf-8").splitlines()))
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 1 + len(rows)
    assert all(abs(float(row["bpm"]) - 72) < 3 for row in rows)
    assert (tmp_path / "p.png").stat().st_size > 10_000
    assert "bpm" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_ungated_shows_refused_rates(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    run(["measure", str(film("photo")), "--json", "--ungated"])
    windows = json.loads(capfd.readouterr().out)["faces"][0]["windows"]
    assert all(w["bpm"] is not None for w in windows)
    assert all(w["p_ok"] < 0.9 for w in windows)


def test_window_length_and_step_are_applied(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--window", "6", "--step", "1.5", "--model", "pos"]
    run(["measure", str(film("face")), "--json", *words])
    windows = json.loads(capfd.readouterr().out)["faces"][0]["windows"]
    assert [(w["start_s"], w["end_s"]) for w in windows] == [(0, 6), (1.5, 7.5), (3, 9), (4.5, 10.5)]


def test_face_largest_measures_one_of_two_faces(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    faces = {}
    for whom in ("all", "largest"):
        run(["measure", str(film("two")), "--face", whom, "--json", "--ungated", "--model", "pos"])
        faces[whom] = json.loads(capfd.readouterr().out)["faces"]
    assert len(faces["all"]) == 2
    (alone,) = faces["largest"]
    assert alone["summary"]["bpm"] == pytest.approx(96, abs=3)


def test_a_folder_gives_a_table_and_a_summary(
    film: Films, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("face", "short", "empty"):
        (tmp_path / film(name).name).symlink_to(film(name))
    (tmp_path / "notes.txt").write_text("not a video")
    assert run(["measure", str(tmp_path), "--workers", "2"]) == 0
    out = capfd.readouterr().out
    assert "3 videos: 1 with a reading, 1 without, 1 could not be measured" in out
    assert "TOO_SHORT" in out
    assert "notes.txt" not in out


def test_a_video_given_twice_is_measured_once(film: Films, capfd: pytest.CaptureFixture[str]) -> None:
    video = str(film("short"))
    assert run(["measure", video, video, "--json", "--model", "pos"]) == 3
    found = json.loads(capfd.readouterr().out)
    jsonschema.validate(found, SCHEMA)
    assert [entry["video"] for entry in found] == [video]


def test_files_and_folders_are_listed_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b.mp4", "a.MOV", "c.txt"):
        (tmp_path / name).touch()
    found, failures = find_videos([tmp_path / "b.mp4", tmp_path, tmp_path / "absent.avi"])
    assert [video.label for video in found] == ["b.mp4", "a.MOV", "absent.avi"]
    assert failures == []


@pytest.mark.parametrize("method", ["chrom", "green", "2sr"])
def test_other_methods_find_the_same_rate(
    method: str, film: Films, capfd: pytest.CaptureFixture[str]
) -> None:
    run(["measure", str(film("other")), "--json", "--model", method, "--ungated"])
    found = json.loads(capfd.readouterr().out)
    assert found["method"] == method
    assert abs(found["faces"][0]["summary"]["bpm"] - 96) < 2


def test_measuring_never_imports_torch_or_scipy_signal(film: Films) -> None:
    script = (
        "import sys; from phase_rppg.cli import run; code = run(['measure', sys.argv[1]]);"
        "heavy = {'torch', 'scipy.signal', 'matplotlib'} & set(sys.modules);"
        "assert not heavy, heavy; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(film("face"))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_help_shows_an_example(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "--help"]) == 0
    assert "phase measure face.mp4" in capfd.readouterr().out
