"""The reader of each layout reads the written recordings back with the correct pulse."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.datasets import base
from phase_rppg.errors import UnknownNameError
from phase_rppg.synth import load
from phase_rppg.synth.recording import make_recording
from phase_rppg.synth.writers import RecordingJob, write_recordings, writer
from phase_rppg.synth.writers.pure import png
from phase_rppg.video.decode import ImageSequence

SECONDS = 2.6
READER = {"video": "folder"}


@pytest.mark.parametrize("layout", ["video", "ubfc_rppg", "pure", "buaa_mihr", "mmpd"])
def test_a_reader_finds_what_was_written(layout: str, tmp_path: Path) -> None:
    job = RecordingJob(layout, str(tmp_path), "studio", SECONDS, height=48, fixed={"codec.name": "mjpeg"})
    planned = write_recordings(job, 2, per_subject=1, workers=0)
    recordings = base.load(READER.get(layout, layout), tmp_path)
    assert len(recordings) == len(planned) == 2
    assert len({recording.subject for recording in recordings}) == 2
    for one, recording in zip(planned, recordings, strict=True):
        frames = list(recording.video.frames())
        assert frames[0].rgb.shape == (48, 64, 3)
        assert abs(frames[-1].t_s - SECONDS) < 0.2
        fixed = {**one.fixed, **job.fixed}
        truth = make_recording(
            load("studio"),
            0,
            one.index,
            seconds=SECONDS,
            height=48,
            width=64,
            fixed=fixed,
            identity=one.subject,
        )
        inside = recording.reference.valid
        t_s = recording.reference.t_s[inside]
        there = (t_s >= 0) & (t_s < SECONDS - 0.1)
        wave = truth.wave(t_s[there])
        assert np.corrcoef(wave, recording.reference.values[inside][there])[0, 1] > 0.98


def test_finished_recordings_are_kept(tmp_path: Path) -> None:
    job = RecordingJob("ubfc_rppg", str(tmp_path), "studio", 0.5, height=48, fixed={"codec.name": "mjpeg"})
    write_recordings(job, 1, workers=0)
    video = tmp_path / "subject1" / "vid.avi"
    before = video.stat().st_mtime_ns
    ready: list[int] = []
    write_recordings(job, 2, workers=0, done=ready.append)
    assert video.stat().st_mtime_ns == before
    assert ready == [1, 1]
    assert (tmp_path / "subject2" / "ground_truth.txt").is_file()


def test_data_sets_have_the_tasks_of_the_real_ones() -> None:
    assert [s.name for s in writer("pure").plan(2)][:7] == [*(f"01-{k:02d}" for k in range(1, 7)), "02-01"]
    assert len(writer("mmpd").plan(1)) == 20
    assert {s.labels["light"] for s in writer("mmpd").plan(1)} == {
        "LED-low",
        "LED-high",
        "Incandescent",
        "Nature",
    }
    assert any(s.name == "Sub 01/lux 10.0" for s in writer("buaa_mihr").plan(1))
    with pytest.raises(UnknownNameError, match="ubfc_rppg"):
        writer("ubfc_rpg")


def test_people_stay_themselves_between_recordings_but_their_hearts_differ() -> None:
    world = load("motion")
    first, second, other = (
        make_recording(world, 0, index, seconds=1, height=48, width=64, identity=identity)
        for index, identity in ((1, 1), (2, 1), (3, 2))
    )
    faces = [one.drawn.scene.actors[0].figure for one in (first, second, other)]
    colours = [float(one.drawn.scene.actors[0].skin.melanin) for one in (first, second, other)]
    assert colours[0] == colours[1] != colours[2]
    assert dict(faces[0].tags) == dict(faces[1].tags)
    t_s = np.arange(0, 0.9, 0.1)
    assert not np.allclose(first.wave(t_s), second.wave(t_s))


def test_two_people_have_two_pulses(tmp_path: Path) -> None:
    job = RecordingJob(
        "video", str(tmp_path), "studio", 0.6, height=48, fixed={"codec.name": "mjpeg", "frame.people": 2}
    )
    write_recordings(job, 1, workers=0)
    truth = json.loads((tmp_path / "00000.json").read_text())
    assert len(truth["people"]) == 2
    left, right = (np.array(person["boxes"])[0] for person in truth["people"])
    assert left[0] + left[2] < right[0] + right[2]
    assert (tmp_path / "00000-person2.csv").is_file()


def test_png_is_lossless(tmp_path: Path) -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (34, 40, 3), dtype=np.uint8)
    (tmp_path / "a.png").write_bytes(png(rgb))
    (frame,) = ImageSequence([tmp_path / "a.png"], np.zeros(1)).frames()
    np.testing.assert_array_equal(frame.rgb, rgb)
