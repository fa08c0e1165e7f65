"""Recipes are checked, and say what is wrong with them."""

from __future__ import annotations

import json

import pytest

from phase_rppg import infer
from phase_rppg.errors import RecipeError
from phase_rppg.train.recipe import from_dict, load

from .helpers import TINY, tiny


@pytest.mark.parametrize("name", ["paper", "stream", "stream-next", "stream-start", "smoke"])
def test_recipes_that_come_along_are_valid(name: str) -> None:
    recipe = load(name)
    assert from_dict(recipe.to_dict()) == recipe


def test_the_paper_recipe_has_the_papers_settings() -> None:
    recipe = load("paper")
    assert (recipe.data.frames, recipe.network["name"]) == (128, "phasenet")
    options = recipe.optimise
    assert (options.epochs, options.batch, options.lr, recipe.loss.weight) == (15, 4, 1e-4, 0.1)
    assert options.weight_decay == 0  # then AdamW is Adam


def test_settings_override_values() -> None:
    recipe = load(
        "stream", ["optimise.lr=3e-4", "network.hidden=32", "data.train.0.cache=elsewhere", "seed=5"]
    )
    assert recipe.optimise.lr == 3e-4
    assert recipe.network["hidden"] == 32
    assert recipe.data.train[0].cache == "elsewhere"
    assert recipe.seed == 5


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
    ("init=run/last.safetensors", "got both"),
    ("seed", "key=value"),
    ("seed.x=3", "is a value"),
]


@pytest.mark.parametrize(("setting", "says"), BAD)
def test_what_cannot_be_used_is_named(setting: str, says: str) -> None:
    with pytest.raises(RecipeError, match=says):
        load("stream", [setting])


def test_missing_tables_and_files_are_named() -> None:
    with pytest.raises(RecipeError, match="'data' is missing"):
        from_dict({"network": {"name": "phasenet"}})
    with pytest.raises(
        RecipeError, match="recipes that come along: paper, smoke, stream, stream-next, stream-start"
    ):
        load("no-such-recipe")


def test_the_tiny_recipe_of_these_tests_is_valid() -> None:
    assert tiny().network["name"] == TINY["network"]["name"]


def test_the_shipped_weights_were_made_by_the_recipe_that_comes_along() -> None:
    made_by = infer.load("phasenet-stream").manifest.training
    assert made_by["recipe"] == json.loads(json.dumps(load("stream").to_dict()))
    assert made_by["clips_seen"] >= 40_000
