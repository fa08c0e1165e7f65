"""Worlds: commented recipes that say what is drawn at random, and how.

A value in a recipe is a number or word (always this), `[low, high]` (uniform), `{log = [low, high]}`
(log-uniform) or `{choose = [a, b, …], weights = [1, 2, …]}`, where a, b … may be any of these again.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import RecipeError, UnknownNameError
from .background import KINDS as BACKGROUNDS
from .camera import CameraSpec
from .codec import NAMES as CODECS
from .codec import CodecSpec
from .follow import CropSpec
from .light import KINDS as LIGHTS
from .light import LightSpec
from .motion import KINDS as MOTIONS
from .motion import MotionSpec

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

SUBJECTS = ("person", "photo", "mannequin", "wall")


@dataclass(frozen=True, slots=True)
class PulseSpec:
    """The heart, and how strongly the skin shows it."""

    bpm: float = 72.0
    rsa: float = 0.04
    hrv_s: float = 0.015
    drift_bpm: float = 1.0
    ectopic_rate: float = 0.0
    breathing_hz: float = 0.25
    amplitude: float = 0.01  # peak-to-peak AC/DC of green in linear light, for the lightest skin
    blood_spread: float = 0.1  # how much the blood-volume vector differs between people
    present: bool = True  # False: the same person without a pulse


@dataclass(frozen=True, slots=True)
class SubjectSpec:
    """Who or what is in front of the camera."""

    kind: str = "person"
    fitzpatrick: int = 2
    gloss: float = 0.1


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """How the picture is composed."""

    face_px: float = 170.0  # height of the face box in the full frame
    margin: float = 1.25  # side of the encoded part of the frame over the side of the crop
    background: str = "plain"
    people: int = 1


SECTIONS: dict[str, type] = {
    "pulse": PulseSpec, "subject": SubjectSpec, "motion": MotionSpec, "light": LightSpec,
    "camera": CameraSpec, "frame": FrameSpec, "crop": CropSpec, "codec": CodecSpec,
}  # fmt: skip
_WORDS: dict[str, tuple[str, ...]] = {
    "subject.kind": SUBJECTS, "motion.kind": MOTIONS, "light.kind": LIGHTS, "codec.name": CODECS,
    "frame.background": BACKGROUNDS,
}  # fmt: skip
_Spec = TypeVar("_Spec")


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A recipe, checked: what is left out has the default of its section."""

    name: str
    about: str
    sections: Mapping[str, Mapping[str, Any]]
    recipe: str = ""  # its text, as it was read

    def draw(
        self, section: type[_Spec], rng: np.random.Generator, fixed: Mapping[str, Any] | None = None
    ) -> _Spec:
        """One draw of a section; `fixed` holds "section.key" values that are not drawn."""
        name = next(key for key, value in SECTIONS.items() if value is section)
        values: dict[str, Any] = {}
        for key, spread in sorted(self.sections.get(name, {}).items()):
            values[key] = _draw(spread, rng)
        for dotted, value in (fixed or {}).items():
            if dotted.startswith(f"{name}."):
                values[dotted.split(".", 1)[1]] = value
        for item in fields(section):  # type: ignore[arg-type]
            if item.name in values and item.type in ("int", int):
                values[item.name] = round(values[item.name])
        return section(**values)


def names() -> list[str]:
    """The worlds that come with the package."""
    folder = resources.files(__package__.rsplit(".", 1)[0]) / "recipes" / "worlds"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


@functools.lru_cache(maxsize=32)
def load(name: str) -> World:
    """A world by its name, or by the path of a recipe of your own (`.toml`)."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise RecipeError(name, "no such recipe file")
        return parse(path.read_text(encoding="utf-8"), path.stem)
    if name not in names():
        raise UnknownNameError("world", name, names())
    folder = resources.files(__package__.rsplit(".", 1)[0]) / "recipes" / "worlds"
    return parse((folder / f"{name}.toml").read_text(encoding="utf-8"), name)


def parse(text: str, name: str) -> World:
    """Read and check a recipe."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(name, f"not valid TOML ({error})") from error
    about = table.pop("about", "")
    for section, values in table.items():
        if section not in SECTIONS:
            raise UnknownNameError(f"section of world {name}", section, SECTIONS)
        if not isinstance(values, dict):
            raise RecipeError(f"{name}.{section}", "is a table of settings, written [section]")
        known = {item.name for item in fields(SECTIONS[section])}
        for key, spread in values.items():
            if key not in known:
                raise UnknownNameError(f"key of world {name}, section {section}", key, known)
            _check(spread, f"{name}.{section}.{key}", _WORDS.get(f"{section}.{key}"))
    return World(name, str(about), table, text)


def _check(spread: Any, where: str, words: tuple[str, ...] | None) -> None:
    if isinstance(spread, dict):
        if set(spread) == {"log"}:
            _check_range(spread["log"], where, positive=True)
        elif "choose" in spread and set(spread) <= {"choose", "weights"}:
            options, weights = spread["choose"], spread.get("weights")
            if not isinstance(options, list) or not options:
                raise RecipeError(where, "choose needs a list of values")
            if weights is not None and (
                not isinstance(weights, list)
                or len(weights) != len(options)
                or not all(isinstance(w, (int, float)) and w >= 0 for w in weights)
                or sum(weights) <= 0
            ):
                raise RecipeError(where, f"weights needs {len(options)} numbers ≥ 0, not all 0")
            for option in options:
                _check(option, where, words)
        else:
            raise RecipeError(
                where, "a table here is {log = [low, high]} or {choose = [...], weights = [...]}"
            )
    elif isinstance(spread, list):
        _check_range(spread, where, positive=False)
    elif isinstance(spread, str):
        if words is not None and spread not in words:
            raise UnknownNameError(where, spread, words)
    elif not isinstance(spread, (bool, int, float)):
        raise RecipeError(where, f"cannot use {spread!r}")


def _check_range(pair: Any, where: str, positive: bool) -> None:
    numbers = isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, (int, float)) for x in pair)
    if not numbers or pair[0] > pair[1] or (positive and pair[0] <= 0):
        raise RecipeError(where, f"a range is [low, high]{' above 0' if positive else ''}, got {pair!r}")


def _draw(spread: Any, rng: np.random.Generator) -> Any:
    if isinstance(spread, list):
        return float(rng.uniform(spread[0], spread[1]))
    if isinstance(spread, dict) and "log" in spread:
        low, high = spread["log"]
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))
    if isinstance(spread, dict):
        weights = np.asarray(spread.get("weights", np.ones(len(spread["choose"]))), float)
        return _draw(spread["choose"][int(rng.choice(len(weights), p=weights / weights.sum()))], rng)
    return spread
