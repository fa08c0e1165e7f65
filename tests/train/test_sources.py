"""A recipe may mix prepared recordings with clips that the generator makes on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phase_rppg.datasets import cache
from phase_rppg.errors import InputError
from phase_rppg.synth.clips import ClipJob
from phase_rppg.train.loader import TrainingClips, batches
from phase_rppg.train.loop import train
from phase_rppg.train.recipe import Recipe, Source
from phase_rppg.train.sources import open_source

from .helpers import FPS, Toy, tiny

WORLD = {"world": "wall", "count": 4, "seconds": 2.5, "size": 12, "seed": 7}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four recordings of a data set, as `phase prepare` stores them; the first frames show no face."""
    root = tmp_path_factory.mktemp("prepared")
    for index in range(4):
        pixels, wave, fps, _ = Toy(4).clip(index)
        name, key = f"subject{9 + index}", f"{index:016d}"
        header = {"dataset": "ubfc_rppg", "subject": name, "name": name, "conditions": {}, "key": key,
                  "fps": fps, "start_s": 0.0}  # fmt: skip
        with cache.writing(cache.place(root, "ubfc_rppg", name, key), 12) as writer:
            writer.add(pixels)
            writer.finish(header, wave, np.arange(len(wave)) >= 10, np.zeros((len(wave), 4)))
    return root


def mixed(prepared: Path, **data: object) -> Recipe:
    folder = {"prepared": str(prepared), "dataset": "ubfc_rppg"}
    train = [{**folder, "part": [0.0, 0.75]}, {**WORLD, "weight": 2.0}]
    return tiny(data={"train": train, "validate": [{**folder, "part": [0.75, 1.0]}], **data})


def test_prepared_recordings_are_shared_out_by_subject_in_natural_order(prepared: Path) -> None:
    first, last = (
        open_source(Source(prepared=str(prepared), dataset="ubfc_rppg", part=part))
        for part in ((0.0, 0.75), (0.75, 1.0))
    )
    assert [first.clip(k)[3]["name"] for k in range(len(first))] == ["subject9", "subject10", "subject11"]
    assert [last.clip(k)[3]["name"] for k in range(len(last))] == ["subject12"]
    assert not first.clip(0)[3]["valid"][:10].any()
    assert np.array_equal(first.clip(1)[0], Toy(4).clip(1)[0])
    with pytest.raises(InputError, match="of pure"):
        open_source(Source(prepared=str(prepared), dataset="pure"))


def test_a_world_without_a_cache_makes_its_clips_when_asked(tmp_path: Path) -> None:
    source = open_source(Source(**WORLD))  # type: ignore[arg-type]
    assert len(source) == 4
    made = ClipJob("wall", 2.5, 12, 7).make(2)
    assert np.array_equal(source.clip(2)[0], made.pixels)
    assert not list(tmp_path.iterdir())


def test_workers_see_the_same_batches_of_mixed_sources(prepared: Path) -> None:
    recipe = mixed(prepared, clips_per_epoch=6)
    sources = [open_source(source) for source in recipe.data.train]
    clips = TrainingClips(recipe, sources, 8, FPS)
    here, there = (
        list(batches(clips, first_step=0, last_step=2, rank=0, world=1, workers=workers))
        for workers in (0, 2)
    )
    for one, other in zip(here, there, strict=True):
        assert np.array_equal(one.pixels, other.pixels)
        assert np.array_equal(one.wave, other.wave)
    assert sorted(place for place in clips.plan.epoch(0) if place[0] == 0)
    assert sorted(place for place in clips.plan.epoch(0) if place[0] == 1)


def test_training_runs_from_a_recipe_of_mixed_sources(prepared: Path, tmp_path: Path) -> None:
    best = train(mixed(prepared, clips_per_epoch=8), tmp_path / "run")
    assert Path(best).exists()
    log = (tmp_path / "run" / "log.csv").read_text().splitlines()
    assert len(log) > 2
