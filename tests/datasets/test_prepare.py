"""Prepared clips are written atomically, rebuilt one by one, and every exclusion has a reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.cli import run as phase
from phase_rppg.datasets import cache, face_crops
from phase_rppg.datasets.base import find
from phase_rppg.datasets.prepare import Report, Settings, prepare, reference_at, store
from phase_rppg.errors import ArgumentError, InputError, OutputError
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.session import Session
from phase_rppg.types import Frame, Recording, Waveform
from plain_face import FixedDetector, frames, seconds

from . import fake_layouts

SMALL = Settings(size=24)
PEOPLE = fake_layouts.people(3, seconds=3.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ubfc")
    fake_layouts.ubfc_rppg(root, PEOPLE)
    return root


@pytest.fixture(scope="module")
def prepared(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("cache")
    prepare("ubfc_rppg", data, store, SMALL, workers=0)
    return store


def actions(report: Report) -> list[str]:
    return [outcome.action for outcome in report.outcomes]


def test_clips_hold_the_face_and_the_label_on_one_clock(prepared: Path) -> None:
    entries = cache.open_cache(prepared, verify=True)
    assert [e.subject for e in entries] == ["subject1", "subject2", "subject3"]
    for person, entry in zip(PEOPLE, entries, strict=True):
        assert entry.pixels.shape == (entry.frames, 24, 24, 3)
        assert entry.frames == pytest.approx(person.seconds * entry.fps, abs=2)
        assert entry.valid.mean() > 0.9
        truth = person.pulse(entry.t_s)
        assert np.corrcoef(truth, entry.wave)[0, 1] > 0.98
        green = entry.clip().pixels[:, 8:16, 8:16, 1].mean((1, 2))
        assert np.corrcoef(truth, green)[0, 1] < -0.8
        assert entry.conditions == {"set": "DATASET_2"}


def test_a_second_run_keeps_and_a_damaged_entry_is_rebuilt_alone(
    data: Path, prepared: Path, tmp_path: Path
) -> None:
    store = shutil.copytree(prepared, tmp_path / "cache")
    before = {e.name: e.path.stat().st_mtime_ns for e in cache.open_cache(store)}
    pixels = next(store.glob("*/subject2-*/pixels.u8"))
    content = bytearray(pixels.read_bytes())
    content[1234] ^= 1
    pixels.write_bytes(content)
    report = prepare("ubfc_rppg", data, store, SMALL, workers=0)
    assert actions(report) == ["kept", "rebuilt", "kept"]
    after = {e.name: e.path.stat().st_mtime_ns for e in cache.open_cache(store, verify=True)}
    assert [name for name in before if before[name] != after[name]] == ["subject2"]


@pytest.mark.parametrize("victim", ["wave.npy", "entry.json"])
def test_any_changed_file_is_noticed(prepared: Path, tmp_path: Path, victim: str) -> None:
    store = shutil.copytree(prepared, tmp_path / "cache")
    file = next(store.glob(f"*/subject1-*/{victim}"))
    file.write_bytes(file.read_bytes().replace(b"subject1", b"subject7") + b" ")
    if victim == "wave.npy":
        file.unlink()
    with pytest.raises(InputError, match=r"prepare the recording again"):
        cache.open_cache(store)


def test_new_settings_or_new_labels_are_a_new_entry(data: Path, prepared: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(data, tmp_path / "data")
    store = shutil.copytree(prepared, tmp_path / "cache")
    label = copy / "subject1" / "ground_truth.txt"
    np.savetxt(label, np.loadtxt(label) * [[2], [1], [1]])
    assert actions(prepare("ubfc_rppg", copy, store, SMALL, workers=0)) == ["built", "kept", "kept"]


def test_missing_faces_and_cut_videos_are_named_and_leave_nothing(tmp_path: Path) -> None:
    everyone = [*fake_layouts.people(1, seconds=3.0), fake_layouts.FaceState(2, 80.0, 3.0, face=False)]
    everyone.append(fake_layouts.FaceState(3, 80.0, 3.0))
    fake_layouts.ubfc_rppg(tmp_path / "data", everyone)
    cut = tmp_path / "data" / "subject3" / "vid.avi"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    report = prepare("ubfc_rppg", tmp_path / "data", tmp_path / "cache", SMALL, workers=0)
    assert actions(report) == ["built", "excluded", "excluded"]
    assert "subject2: a face was seen in only 0% of the video" in str(report.problems[0])
    assert "subject3" in str(report.problems[1])
    assert [e.name for e in cache.open_cache(tmp_path / "cache")] == ["subject1"]
    assert len(list((tmp_path / "cache" / "ubfc_rppg").iterdir())) == 1


def test_when_no_face_is_found_anywhere_the_command_ends_with_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_layouts.folder(tmp_path, fake_layouts.people(1, seconds=2.5, face=False))
    code = phase(["prepare", "folder", str(tmp_path), "--out", str(tmp_path / "c"), "--workers", "0"])
    assert code == 4
    assert "no usable recording, 1 excluded" in capsys.readouterr().err


def test_the_command_says_what_it_did(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--out", str(tmp_path), "--size", "16", "--workers", "2"]
    assert phase(["prepare", "ubfc_rppg", str(data), *options]) == 0
    assert "3 built, 0 kept, 0 rebuilt, 0 excluded" in capsys.readouterr().out
    assert len(cache.open_cache(tmp_path)) == 3
    assert phase(["prepare", "ubfc_rppg", str(data), *options, "--json"]) == 0
    counts = {"built": 0, "kept": 3, "rebuilt": 0, "excluded": 0}
    said = json.loads(capsys.readouterr().out)
    assert said == {"dataset": "ubfc_rppg", "out": str(tmp_path), **counts}


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    (tmp_path / "pure").mkdir()
    with cache.write_entry(tmp_path / "pure" / "x-1", 8) as writer:
        alive = writer.folder
        dead = alive.with_name(alive.name.replace(str(os.getpid()), str(ended.pid)))
        shutil.copytree(alive, dead)
        cache.remove_abandoned(tmp_path)
        assert alive.exists()
        assert not dead.exists()
    assert not list((tmp_path / "pure").iterdir())  # it was not finished


@pytest.mark.parametrize("workers", [0, 1])
def test_a_full_disk_ends_the_run_and_blames_no_recording(data: Path, tmp_path: Path, workers: int) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    outcomes: list[object] = []
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, limits[1]))  # as if the disk were full
    try:
        with pytest.raises(OutputError, match=r"^cannot write .*/ubfc_rppg/subject1-\w+: File too large$"):
            prepare("ubfc_rppg", data, tmp_path, Settings(size=96), workers=workers, on_done=outcomes.append)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not outcomes
    assert [path.name for path in tmp_path.rglob("*")] == ["ubfc_rppg"]


class Blinking:
    """A face that is absent for two seconds, on an irregular clock."""

    def frames(self):  # type: ignore[no-untyped-def]
        person = fake_layouts.FaceState(1, 70.0, 6.0)
        wall = fake_layouts.draw(person.size, face=False)[0].astype(np.uint8)
        rng = np.random.default_rng(0)
        for t_s, rgb in zip(person.frame_times_s, person.frames(), strict=True):
            gone = 2.0 <= t_s < 4.0
            yield Frame(wall if gone else rgb, float(t_s + rng.uniform(0, 0.01)))


def test_time_without_a_face_is_not_valid() -> None:
    ticks = list(face_crops.resample_crops(face_crops.crop_faces(Blinking(), 16), 30.0))
    t_s = np.array([tick.t_s for tick in ticks])
    valid = np.array([tick.valid for tick in ticks])
    assert np.allclose(np.diff(t_s), 1 / 30)
    assert valid[t_s < 1.9].mean() > 0.95
    assert not valid[(t_s > 3.3) & (t_s < 3.9)].any()
    assert valid[t_s > 4.5].all()


class Endless:
    """A face that does not change."""

    def __init__(self, frames: int) -> None:
        self.count = frames

    def frames(self):  # type: ignore[no-untyped-def]
        rgb = next(fake_layouts.FaceState(1, 70.0).frames())
        for index in range(self.count):
            yield Frame(rgb.copy(), index / 30)


def test_memory_does_not_grow_with_the_length_of_the_video(tmp_path: Path) -> None:
    def peak_bytes(frames: int) -> int:
        label = Waveform(np.zeros(frames), 30.0, 0.0, np.ones(frames, bool))
        recording = Recording("folder", "a", "a", Endless(frames), label)
        tracemalloc.start()
        store(recording, tmp_path / f"{frames}", "key", SMALL)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_bytes(299)  # what is loaded or kept once, is by now
    assert peak_bytes(900) - peak_bytes(300) < 600 * 150  # bytes: a frame of the clip alone has 1728


def test_labels_outside_the_reference_are_not_known() -> None:
    wave = Waveform(np.arange(10.0), 10.0, 0.5, np.arange(10) != 4)
    values, known = reference_at(wave, np.array([0.4, 0.5, 0.55, 0.9, 0.95, 1.1, 1.4, 1.45]))
    assert known.tolist() == [False, True, True, False, False, True, True, False]
    assert values[2] == pytest.approx(0.5)


@pytest.mark.parametrize("bad", [{"size": 2}, {"fps": 0.0}, {"min_coverage": 2.0}])
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        Settings(**bad)  # type: ignore[arg-type]


def test_large_files_are_told_apart_by_samples_and_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    monkeypatch.setattr(cache, "_WHOLE_BYTES", 100)
    monkeypatch.setattr(cache, "_BLOCK_BYTES", 50)
    video = find("ubfc_rppg", data)[0].video
    first = cache.fingerprint(video)
    assert first == cache.fingerprint(video)
    shorter = tmp_path / "vid.avi"
    shorter.write_bytes(video.read_bytes()[:-1])
    assert cache.fingerprint(shorter) != first
    assert cache.fingerprint(video.parent) != first


def test_a_still_face_is_detected_as_rarely_as_in_a_measurement() -> None:
    t_s = seconds(8)
    film = frames(t_s, 0 * t_s)
    measuring, cropping = FixedDetector(), FixedDetector()
    session = Session(SessionConfig(method="pos"), measuring)  # type: ignore[arg-type]
    for frame in film:
        session.push(frame)

    class Film:
        def frames(self) -> Iterator[Frame]:
            yield from film

    assert len(list(face_crops.crop_faces(Film(), 16, cropping))) == len(film)  # type: ignore[arg-type]
    assert cropping.sides == measuring.sides
    assert len(cropping.sides) <= 20
