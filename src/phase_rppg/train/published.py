"""Recipes from the published training settings of a network (`TRAINING` in its file)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import registry
from ..errors import UnknownNameError, UsageError
from ..nn.published_training import PublishedTraining
from .recipe import Recipe, Stage, from_dict

TRAININGS = ("equal", "published")
_NO_AUGMENTATION = {
    "flip": 0.0, "shift": 0.0, "scale": [1.0, 1.0], "stretch": [1.0, 1.0], "gain": 0.0, "gamma": 0.0,
    "brightness": 0.0, "noise": 0.0, "codec": 0.0,
}  # fmt: skip


def published_training(network: str) -> PublishedTraining:
    """Return the published settings of a network; one without them is an error."""
    found = getattr(registry.load("nn", network), "TRAINING", None)
    if not isinstance(found, PublishedTraining):
        known = [name for name in registry.names("nn") if hasattr(registry.load("nn", name), "TRAINING")]
        raise UsageError(f"{network} has no published training; networks with one: {', '.join(known)}")
    return found


def published_tables(network: str) -> dict[str, Any]:
    """Return the tables `augment`, `loss`, `optimise`, and the options and clip length, of a recipe."""
    facts = published_training(network)
    return {
        "network": {"size": facts.size, **facts.options},
        "data": {"frames": facts.frames},
        "augment": _NO_AUGMENTATION
        | {"flip": facts.flip, "octave": facts.octave, "scale": list(facts.scale)},
        "loss": {
            "main": facts.loss,
            "target": facts.target,
            "labelled": facts.labelled,
            "auxiliary": facts.auxiliary,
            "weight": facts.weight,
            "warmup_frames": 0,
        },
        "optimise": {
            "optimiser": facts.optimiser,
            "lr": facts.lr,
            "schedule": facts.schedule,
            "weight_decay": facts.weight_decay,
            "epochs": facts.epochs,
            "batch": facts.batch,
        },
    }


def with_published_training(recipe: Recipe, keep: Sequence[str] = ()) -> Recipe:
    """Return a recipe with the published settings of its network; the clips and the seed stay.

    `keep` names settings that stay as they are in the recipe, e.g. "optimise.epochs".
    """
    name, _ = recipe.network_options()
    before = recipe.to_dict()
    values = dict(before)
    for table, published in published_tables(name).items():
        values[table] = {**(before[table] if table in ("network", "data") else {}), **published}
    for key in keep:
        table, _, field = key.partition(".")
        if table in values and field in before[table]:
            values[table][field] = before[table][field]
    return from_dict(values, f"published training of {name}")


def train_as(stages: Sequence[Stage], training: str, keep: Sequence[str] = ()) -> list[Stage]:
    """Return the stages of a recipe file, trained "equal" (as the file says) or "published"."""
    if training not in TRAININGS:
        raise UnknownNameError("training", training, TRAININGS)
    if training == "equal":
        return list(stages)
    return [Stage(stage.name, with_published_training(stage.recipe, keep)) for stage in stages]
