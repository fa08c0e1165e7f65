"""A film in the cache gives the same windows as a session that sees its frames."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.errors import ArgumentError
from phase_rppg.evaluate import films
from phase_rppg.evaluate.films import FilmSpec
from phase_rppg.evaluate.world_windows import generate, sampled_film
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import WindowResult
from phase_rppg.session.session import Session
from phase_rppg.types import Frame


def test_the_windows_of_a_cached_film_are_those_of_a_session(tmp_path: Path) -> None:
    spec = FilmSpec("studio", 3, 0, 12.0)
    sampled_film(spec, tmp_path)
    film = films.read(spec.file(tmp_path))
    recording, frames = generate("studio", 3, 0, seconds=12.0)
    config = MeasureOptions("phasenet-stream", faces="largest", gated=False).config()
    session, events = Session(config), []
    for rgb, t_s in zip(frames, recording.t_s, strict=False):
        events += session.push(Frame(rgb, float(t_s)))
    seen = [event for event in events + session.finish() if isinstance(event, WindowResult)]
    found = list(films.windows(film, config))
    assert len(found) == len(seen) > 1
    for here, there in zip(found, seen, strict=True):
        assert (here.start_s, here.end_s) == (there.start_s, there.end_s)
        assert here.peak is not None
        assert there.peak is not None
        assert here.peak.bpm == pytest.approx(there.peak.bpm, abs=0.01)
        for name, value in asdict(there.quality).items():
            assert getattr(here.quality, name) == pytest.approx(value, rel=0.01, abs=0.02), name
        moments = np.arange(there.start_s, there.end_s, 1 / 30)
        assert here.truth_bpm == pytest.approx(float(recording.bpm(moments).mean()), abs=0.05)


def test_a_film_without_a_face_has_no_windows(tmp_path: Path) -> None:
    grey = np.full((60, 80, 3), 90, np.uint8)
    film = films.sample_film([grey] * 5, np.arange(5) / 30, np.zeros(5))
    film.write(tmp_path / "none.npz")
    assert list(films.windows(films.read(tmp_path / "none.npz"), SessionConfig())) == []


def test_another_clock_than_that_of_the_films_is_refused() -> None:
    with pytest.raises(ArgumentError, match="30 frames per second"):
        list(films.windows(films.NO_FACE, SessionConfig(fps=25.0)))
