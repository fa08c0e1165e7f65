"""A recipe can mix prepared recordings with generated clips."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phase_rppg.datasets import cache
from phase_rppg.errors import InputError, RecipeError
from phase_rppg.synth.clips import ClipJob
from phase_rppg.train.checkpoint import load_checkpoint
from phase_rppg.train.loader import TrainingClips, batches
from phase_rppg.train.loop import train, train_stages
from phase_rppg.train.recipe import Data, Recipe, Source, Stage, from_dict
from phase_rppg.train.sources import ClipProgress, open_source, open_sources

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
        with cache.write_entry(cache.entry_path(root, "ubfc_rppg", name, key), 12) as writer:
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


def test_generated_clips_are_kept_below_the_folder_and_reported(tmp_path: Path) -> None:
    seen: list[ClipProgress] = []
    world = {**WORLD, "cache": "clips/wall"}
    parts = [Source(**world, part=part) for part in ((0.0, 0.5), (0.5, 1.0))]  # type: ignore[arg-type]
    data = Data(train=(parts[0],), validate=(parts[1],), workers=0)
    (training,), (validation,) = open_sources(data, tmp_path, seen.append)
    assert (len(training), len(validation)) == (2, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["clips"]
    assert [(each.done, each.made, each.total) for each in seen] == [(n, n, 4) for n in range(5)]
    assert seen[-1].folder == str(tmp_path / "clips/wall")

    seen.clear()  # the clips of the first run are used again
    open_sources(data, tmp_path, seen.append)
    assert [(each.done, each.made) for each in seen] == [(0, 0), (4, 0)]


def test_stages_keep_their_clips_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    values = tiny(optimise={"epochs": 1}).to_dict()
    values["data"]["train"] = [{**WORLD, "cache": "clips"}]
    values["data"]["validate"] = []
    recipe = from_dict(values)
    seen: list[ClipProgress] = []
    train_stages([Stage("a", recipe), Stage("b", recipe)], tmp_path / "run", on_clips=seen.append)
    assert {path.name for path in (tmp_path / "run").iterdir() if path.is_dir()} == {"a", "clips"}
    assert {each.stage for each in seen} == {"a", "b"}
    assert not list((tmp_path / "elsewhere").iterdir())
    train_stages([Stage("c", recipe)], tmp_path / "second", cache=tmp_path / "run")
    assert not (tmp_path / "second" / "clips").exists()


def test_a_run_records_its_subjects_and_those_of_its_initial_weights(prepared: Path, tmp_path: Path) -> None:
    first = train(mixed(prepared, clips_per_epoch=4), tmp_path / "first")
    record = {"train": [f"ubfc_rppg/subject{i}" for i in (9, 10, 11)], "validate": ["ubfc_rppg/subject12"]}
    assert load_checkpoint(first).provenance["subjects"] == record
    later = train(tiny(init=str(first)), tmp_path / "later", sources=([Toy(8)], []))
    assert load_checkpoint(later).provenance["subjects"] == record


def test_test_subjects_are_refused_for_training(prepared: Path, tmp_path: Path) -> None:
    folder = {"prepared": str(prepared), "dataset": "ubfc_rppg"}
    with pytest.raises(RecipeError, match=r"data.train: the part \[0.0, 0.75\] has subjects of data.test"):
        mixed(prepared, test=[{**folder, "part": [0.5, 1.0]}])
    # Another spelling of the folder hides the overlap until the subjects are read.
    recipe = mixed(prepared, test=[{**folder, "prepared": f"{prepared}/.", "part": [0.75, 1.0]}])
    with pytest.raises(RecipeError, match=r"data.validate: has subjects of data.test: ubfc_rppg/subject12"):
        train(recipe, tmp_path / "run")
