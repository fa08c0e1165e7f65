"""Recipes are checked, and errors name the key and the accepted values."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from phase_rppg import infer
from phase_rppg.errors import RecipeError
from phase_rppg.train.recipe import Recipe, from_dict, load_stages, stages_from_dict

from .helpers import TINY, tiny


def load(name: str, settings: Sequence[str] = ()) -> Recipe:
    """The recipe of the last stage."""
    return load_stages(name, settings)[-1].recipe


@pytest.mark.parametrize("name", ["paper", "stream", "smoke"])
def test_bundled_recipes_are_valid(name: str) -> None:
    for stage in load_stages(name):
        assert from_dict(stage.recipe.to_dict()) == stage.recipe


def test_a_stage_changes_only_the_values_that_it_names() -> None:
    first, second = stages_from_dict(
        {
            **TINY,
            "init": "begin.safetensors",
            "stage": [{"name": "a", "seed": 7}, {"name": "b", "optimise": {"lr": 1e-5}}],
        }
    )
    assert (first.name, second.name) == ("a", "b")
    assert first.recipe == tiny(seed=7, init="begin.safetensors")
    assert second.recipe == tiny(optimise={"lr": 1e-5})  # it starts from the weights of the first


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ([{"seed": 1}], "stage 1: got the name None"),
        ([{"name": "../a"}], "got the name '../a'"),
        ([{"name": "a"}, {"name": "a"}], "'a' is used twice"),
        ([{"name": "a"}, {"name": "b", "init": "x"}], "first stage only"),
        ([{"name": "a", "sed": 1}], "stage a: unknown key 'sed': did you mean 'seed'"),
        ([], "accepted: tables"),
        (3, "accepted: tables"),
    ],
)
def test_stages_that_cannot_be_used_are_named(stages: object, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        stages_from_dict({**TINY, "stage": stages})


def test_the_paper_recipe_has_the_papers_settings() -> None:
    recipe = load("paper")
    assert (recipe.data.frames, recipe.network["name"]) == (128, "phasenet")
    options = recipe.optimise
    assert (options.epochs, options.batch, options.lr, recipe.loss.weight) == (15, 4, 1e-4, 0.1)
    assert options.weight_decay == 0  # then AdamW is Adam


def test_settings_override_values() -> None:
    recipe = load(
        "smoke", ["optimise.lr=3e-4", "network.hidden=32", "data.train.0.cache=elsewhere", "seed=5"]
    )
    assert recipe.optimise.lr == 3e-4
    assert recipe.network["hidden"] == 32
    assert recipe.data.train[0].cache == "elsewhere"
    assert recipe.seed == 5
    assert load("stream", ["stage.2.optimise.lr=3e-4"]).optimise.lr == 3e-4


BAD = [
    ("optimise.lrr=1", "did you mean 'lr'"),
    ("optimize.lr=1", "did you mean 'optimise'"),
    ("optimise.lr=fast", "accepted: float"),
    ("optimise.epochs=1.5", "accepted: int"),
    ("optimise.lr=0", "above 0"),
    ("optimise.schedule=linear", "cosine"),
    ("optimise.micro=5", "does not divide"),
    ("data.train=[]", "at least one source"),
    ("data.train.7.clips=x", "no such entry"),
    ("data.train.0.clips=x", "exactly one of"),
    ("data.train.0.part=[0.5, 0.5]", "within 0–1"),
    ("data.frames=31", "less than a second"),
    ("augment.stretch=[2, 1]", "low, high"),
    ("augment.codec=2", "0–1"),
    ("augment.crf=[20, 60]", "within 0–51"),
    ("network.name=3", "needs a name"),
    ("seed", "key=value"),
    ("seed.x=3", "is a value"),
]


@pytest.mark.parametrize(("setting", "says"), BAD)
def test_what_cannot_be_used_is_named(setting: str, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        load("smoke", [setting])


def test_missing_tables_and_files_are_named() -> None:
    with pytest.raises(RecipeError, match="'data' is missing"):
        from_dict({"network": {"name": "phasenet"}})
    with pytest.raises(RecipeError, match=r"bundled recipes: paper, smoke, stream$"):
        load("no-such-recipe")


def test_the_tiny_recipe_of_these_tests_is_valid() -> None:
    assert tiny().network["name"] == TINY["network"]["name"]


def test_the_bundled_weights_were_made_by_the_bundled_recipe() -> None:
    made_by = infer.load("phasenet-stream").manifest.training
    assert made_by["recipe"] == json.loads(json.dumps(load("stream").to_dict()))
    assert made_by["clips_seen"] >= 40_000
