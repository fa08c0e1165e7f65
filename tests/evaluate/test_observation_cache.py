"""An interrupted calibration measures no film twice, and a change of the code measures again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg.evaluate import films, observation_cache, world_windows
from phase_rppg.evaluate.films import FilmSpec

SPEC = FilmSpec("studio", 5, 0, 12.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache that holds the film of SPEC: colours with a pulse of 72 bpm."""
    count = 360
    t_s = np.arange(count) / 30
    beat = np.cos(2 * np.pi * 1.2 * t_s)[:, None]
    colour = np.array([150.0, 105.0, 85.0]) - beat * [0.3, 0.8, 0.5]
    place = np.tile([0.5, 0.5, 120.0, 0.0], (count, 1))
    background = np.full((count, 3), 90.0)
    film = films.SampledFilm(
        np.hstack([colour, place, background]), np.ones(count, bool),
        np.zeros((count, films.CROP_PX, films.CROP_PX, 3), np.uint8), 0, t_s, np.full(count, 72.0),
    )  # fmt: skip
    film.write(SPEC.file(tmp_path))
    return tmp_path


def observe(folder: Path) -> dict[str, Any]:
    return world_windows.observe_worlds(
        {"studio": 1}, ["pos"], seed=5, seconds=12.0, modes=("file", "camera"), cache=folder, workers=0
    )


def test_windows_come_from_the_cache_the_second_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = observe(folder)["pos"]
    assert {o.mode for o in first} == {"file", "camera"}
    assert abs(first[0].peak.bpm - 72) < 2
    monkeypatch.setattr(films, "windows", None)  # nothing can be measured any more
    assert observe(folder)["pos"] == first


def test_a_change_of_the_code_measures_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = observation_cache.file_of(SPEC, "pos", ("file",), False, folder)
    monkeypatch.setattr(observation_cache, "code_checksum", lambda: "other")
    assert observation_cache.file_of(SPEC, "pos", ("file",), False, folder) != before
    others = [("chrom", ("file",), False), ("pos", ("camera",), False), ("pos", ("file",), True)]
    files = {observation_cache.file_of(SPEC, *other, folder) for other in others}
    files |= {observation_cache.file_of(replace(SPEC, index=1), "pos", ("file",), False, folder)}
    assert len(files) == 4


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"windows": [{"peak": {}}]}'])
def test_a_damaged_file_is_measured_again(folder: Path, content: str) -> None:
    first = observe(folder)["pos"]
    (file,) = (folder / "windows").glob("*.json")
    file.write_text(content)
    assert observe(folder)["pos"] == first
