"""Faces that are absent, small, in motion or not alive never get a wrong rate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cli.filmset import SIZE, film, middle, save
from drawing import Actor, Film, clock
from faults.table import Row, faults
from phase_rppg.synth.render import frames
from phase_rppg.synth.sample import draw_scene
from phase_rppg.synth.world import load
from phase_rppg.video.encode import write_video


def edge(path: Path) -> Path:
    """Half of the face is outside the picture."""
    return save(path, film(lambda t: (206.0, 84.0), clock(8)))


def small(path: Path) -> Path:
    """A face of 20 pixels."""
    return save(path, Film((Actor(middle, width=20),), clock(8), **SIZE))  # type: ignore[arg-type]


def nobody(path: Path) -> Path:
    return save(path, Film((), clock(8), **SIZE))  # type: ignore[arg-type]


@faults(
    Row("no face in the video", "no reading: NO_FACE", 3, case=nobody),
    Row("a face of 20 pixels", "no reading", 3, case=small),
)
def test_a_face_that_cannot_be_read_gives_no_rate(row: Row, measure: Any, tmp_path: Path) -> None:
    found = measure(row.case(tmp_path / "face.mp4"))
    assert found.code == row.exit_code
    assert found.rates == []
    assert found.reasons
    assert found.reasons <= {"NO_FACE", "FACE_TOO_SMALL", "FACE_LOST", "TOO_SHORT", "NO_PULSE"}
    if "NO_FACE" in row.happens:
        assert found.reasons == {"NO_FACE"}


@faults(
    Row("a photo of a face", "no reading: NO_PULSE", 3, case="photo"),
    Row("a mannequin", "no reading: NO_PULSE", 3, case="mannequin"),
    Row("a wall", "no reading: NO_FACE", 3, case="wall"),
    Row("a photo under a lamp that flickers at a pulse rate", "no reading: LIGHT_FLICKER", 3,
        case="flicker_photo"),
    Row("a lamp that flickers on the photo of a face only", "no reading: NO_PULSE", 3, case="flicker_face"),
    Row("a photo that nods at a pulse rate", "no reading: NO_PULSE", 3, case="nodding_photo"),
    Row("a living face whose pulse is removed", "no reading: NO_PULSE", 3, case="no_pulse"),
)  # fmt: skip
def test_what_has_no_pulse_gets_no_rate(row: Row, measure: Any, tmp_path: Path) -> None:
    drawn = draw_scene(load(row.case), 0, 1, 9.0, shape=(160, 208), fixed={"camera.fps": 30.0})
    video = tmp_path / "world.mp4"
    write_video(video, frames(drawn.scene, np.random.default_rng(0)), 30, crf=16, preset="veryfast")
    found = measure(video)
    assert found.code == row.exit_code
    assert found.rates == []
    assert found.reasons == {row.happens.rpartition(" ")[2]}


@faults(Row("a face leaves for 3 s and returns", "one face, rate correct; no rate while it is away", 0,
            "the face keeps its number", case="leaving"))  # fmt: skip
def test_a_face_that_returns_is_the_same_face(row: Row, measure: Any, film: Callable[[str], Path]) -> None:
    found = measure(film(row.case))
    assert found.code == row.exit_code
    [face] = found.document["faces"]
    assert all(abs(bpm - 72) < 3 for bpm in found.rates)
    away = [w for w in face["windows"] if w["start_s"] < 5.5 and w["end_s"] > 7.5]
    assert all(w["bpm"] is None for w in away)


@faults(Row("two people cross", "each face has its own rate, or none", None,
            "windows of two people are never joined", case="crossing"))  # fmt: skip
def test_rates_of_two_people_do_not_mix(row: Row, measure: Any, film: Callable[[str], Path]) -> None:
    found = measure(film(row.case), "--model", "pos", "--window", "6")
    assert found.code in (0, 3)
    assert len(found.document["faces"]) >= 2
    for face in found.document["faces"]:
        rates = [w["bpm"] for w in face["windows"] if w["bpm"] is not None]
        assert all(min(abs(bpm - 66), abs(bpm - 102)) < 5 for bpm in rates)
        assert max(rates, default=0) - min(rates, default=0) < 10


@faults(Row("half of the face is outside the picture", "the rate of the visible half is correct", 0,
            "the reading", case=edge))  # fmt: skip
def test_half_a_face_has_the_true_rate(row: Row, measure: Any, tmp_path: Path) -> None:
    found = measure(row.case(tmp_path / "edge.mp4"))
    assert found.code == row.exit_code
    assert found.rates
    assert all(abs(bpm - 72) < 3 for bpm in found.rates)
