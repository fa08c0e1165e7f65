"""Worlds: recipes that state the distribution of every setting of a sample.

A value in a recipe is a number or a word (constant), `[low, high]` (uniform), `{log = [low, high]}`
(log-uniform) or `{choose = [a, b, …], weights = [1, 2, …]}`, where a, b … are values of any of these kinds.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .. import registry
from ..errors import RecipeError, UnknownNameError
from ..fileio import TomlError, parse_toml, read_text
from .background import KINDS as BACKGROUNDS
from .camera import CameraSpec
from .codec import NAMES as CODECS
from .codec import CodecSpec
from .crop import CropSpec
from .light import KINDS as LIGHTS
from .light import LightSpec
from .motion import KINDS as MOTIONS
from .motion import MotionSpec

SUBJECTS = ("person", "photo", "mannequin", "wall")


@dataclass(frozen=True, slots=True)
class PulseSpec:
    """The heart rate and its variability, and the amplitude of the pulse in the skin."""

    bpm: float = 72.0  # mean heart rate
    rsa: float = 0.04  # change of the rate by breathing, relative
    hrv_s: float = 0.015  # random change of each interval (std)
    drift_bpm: float = 1.0  # slow change of the rate (std)
    ectopic_rate: float = 0.0  # share of beats that come early
    irregular: float = 0.0  # independent change of each interval (log, std); about 0.2 in atrial fibrillation
    step_factor: float = 1.0  # the mean rate is multiplied by this from `step_s` on
    step_s: float = 0.0  # time of the step of the rate
    breathing_hz: float = 0.25  # breaths per second
    breathing_baseline: float = 0.0  # change of the blood volume by breathing, relative to the pulse
    amplitude: float = 0.01  # peak-to-peak AC/DC of green in linear light, for the lightest skin
    blood_spread: float = 0.1  # variation of the blood-volume vector between people
    present: bool = True  # False: the same person without a pulse


@dataclass(frozen=True, slots=True)
class SubjectSpec:
    """The person, photo, mannequin or wall in front of the camera."""

    kind: str = "person"  # "person", "photo", "mannequin" or "wall"
    fitzpatrick: int = 2  # skin type, 1 lightest to 6 darkest
    gloss: float = 0.1  # strength of reflections on the skin


@dataclass(frozen=True, slots=True)
class FrameSpec:
    """The size of the face, the background and the number of people."""

    face_px: float = 170.0  # height of the face box in the full frame
    margin: float = 1.25  # side of the encoded part of the frame over the side of the crop
    background: str = "plain"  # "plain", "gradient", "clutter" …
    people: int = 1  # faces in a video
    portrait: bool = False  # a video is upright, 9:16


SECTIONS: dict[str, type] = {
    "pulse": PulseSpec, "subject": SubjectSpec, "motion": MotionSpec, "light": LightSpec,
    "camera": CameraSpec, "frame": FrameSpec, "crop": CropSpec, "codec": CodecSpec,
}  # fmt: skip
_WORDS: dict[str, tuple[str, ...]] = {
    "subject.kind": SUBJECTS, "motion.kind": MOTIONS, "light.kind": LIGHTS, "codec.name": CODECS,
    "frame.background": BACKGROUNDS,
}  # fmt: skip
MAX_NUMBER = 1e9
_Spec = TypeVar("_Spec")


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A checked recipe. Keys that are absent have the default of their section."""

    name: str
    about: str
    sections: Mapping[str, Mapping[str, Any]]
    recipe: str = ""  # the text of the recipe

    def draw(
        self, section: type[_Spec], rng: np.random.Generator, fixed: Mapping[str, Any] | None = None
    ) -> _Spec:
        """Draw the values of a section; `fixed` maps "section.key" to values that replace the drawn ones."""
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


def parse_setting(text: str) -> tuple[str, Any]:
    """Read "section.key=value", which replaces what a world draws: ("pulse.present", False)."""
    dotted, equals, written = text.partition("=")
    section, _, key = dotted.strip().partition(".")
    if section not in SECTIONS:
        raise UnknownNameError("section of a setting", section, SECTIONS)
    known = {item.name: item for item in fields(SECTIONS[section])}
    if key not in known:
        raise UnknownNameError(f"key of section {section}", key, known)
    default, value = known[key].default, written.strip()
    if isinstance(default, bool) and value in ("true", "false"):
        return f"{section}.{key}", value == "true"
    if isinstance(default, str) and value:
        _check(value, f"{section}.{key}", _WORDS.get(f"{section}.{key}"))
        return f"{section}.{key}", value
    with contextlib.suppress(ValueError):
        if equals and not isinstance(default, (bool, str)) and np.isfinite(float(value)):
            return f"{section}.{key}", float(value)
    raise RecipeError(text, f"must be {section}.{key}=value, with a value like {default}")


def names() -> list[str]:
    """Return the names of the registered worlds."""
    return registry.names("worlds")


@functools.lru_cache(maxsize=32)
def load(name: str) -> World:
    """Load a world by its name or by the path of a recipe (`.toml`)."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise RecipeError(name, "no such recipe file")
        return parse(read_text(path, "toml_mb"), path.stem)
    return parse(registry.world_text(name), name)


def parse(text: str, name: str) -> World:
    """Read and check a recipe."""
    try:
        table = parse_toml(text, name)
    except TomlError as error:
        raise RecipeError(name, str(error).removeprefix(f"{name}: ")) from error
    about = table.pop("about", "")
    for section, values in table.items():
        if section not in SECTIONS:
            raise UnknownNameError(f"section of world {name}", section, SECTIONS)
        if not isinstance(values, dict):
            raise RecipeError(f"{name}.{section}", "must be a table, written [section]")
        known = {item.name: item.default for item in fields(SECTIONS[section])}
        for key, spread in values.items():
            if key not in known:
                raise UnknownNameError(f"key of world {name}, section {section}", key, known)
            _check(spread, f"{name}.{section}.{key}", _WORDS.get(f"{section}.{key}"))
            _check_kind(spread, f"{name}.{section}.{key}", isinstance(known[key], str))
    return World(name, str(about), table, text)


def _check(spread: Any, where: str, words: tuple[str, ...] | None) -> None:
    if isinstance(spread, dict):
        if set(spread) == {"log"}:
            _check_range(spread["log"], where, positive=True)
        elif "choose" in spread and set(spread) <= {"choose", "weights"}:
            options, weights = spread["choose"], spread.get("weights")
            if not isinstance(options, list) or not options:
                raise RecipeError(where, "`choose` needs a list of values")
            if weights is not None and (
                not isinstance(weights, list)
                or len(weights) != len(options)
                or not all(isinstance(w, (int, float)) and w >= 0 for w in weights)
                or sum(weights) <= 0
            ):
                raise RecipeError(where, f"`weights` needs {len(options)} numbers ≥ 0, not all 0")
            for option in options:
                _check(option, where, words)
        else:
            raise RecipeError(
                where, "a table must be {log = [low, high]} or {choose = [...], weights = [...]}"
            )
    elif isinstance(spread, list):
        _check_range(spread, where, positive=False)
    elif isinstance(spread, str):
        if words is not None and spread not in words:
            raise UnknownNameError(where, spread, words)
    elif not isinstance(spread, (bool, int, float)):
        raise RecipeError(where, f"cannot use {spread!r}")


def _check_kind(spread: Any, where: str, is_word: bool) -> None:
    """Refuse numbers for a word, and words and numbers out of range for a number."""
    if isinstance(spread, dict):
        spread = spread["log"] if "log" in spread else spread["choose"]
        for value in spread:
            _check_kind(value, where, is_word)
    elif isinstance(spread, list):
        for value in spread:
            _check_kind(value, where, is_word)
    elif isinstance(spread, str) != is_word:
        raise RecipeError(where, f"must be {'a word' if is_word else 'a number'}, got {spread!r}")
    elif not is_word and not abs(spread) < MAX_NUMBER:
        raise RecipeError(where, f"a number must be between −{MAX_NUMBER:g} and {MAX_NUMBER:g}")


def _check_range(pair: Any, where: str, positive: bool) -> None:
    numbers = isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, (int, float)) for x in pair)
    if not numbers or pair[0] > pair[1] or (positive and pair[0] <= 0):
        raise RecipeError(where, f"a range must be [low, high]{' above 0' if positive else ''}, got {pair!r}")


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
