"""Recipes are checked, and errors in them give a hint."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.errors import RecipeError, UnknownNameError
from phase_rppg.synth import load, names
from phase_rppg.synth.motion import MotionSpec
from phase_rppg.synth.world import SECTIONS, PulseSpec, parse

pytestmark = pytest.mark.smoke

PROMISED = {
    "studio", "motion", "lux", "phone", "webcam", "wild", "street", "faint", "coded",
    "handheld", "laptop", "talk", "flicker_face",
    "photo", "mannequin", "wall", "flicker_photo", "nodding_photo", "no_pulse",
}  # fmt: skip


def test_all_promised_worlds_are_there() -> None:
    assert set(names()) >= PROMISED


@pytest.mark.parametrize("name", names())
def test_every_world_draws_every_section(name: str) -> None:
    world = load(name)
    assert world.about
    rng = np.random.default_rng(0)
    for section in SECTIONS.values():
        for _ in range(20):
            world.draw(section, rng)


@pytest.mark.parametrize("name", names())
def test_every_recipe_explains_itself(name: str) -> None:
    assert load(name).recipe.startswith("# ")


def test_draws_stay_within_their_ranges() -> None:
    pulse_lines = "[pulse]\nbpm = [50, 60]\namplitude = {log = [0.01, 0.02]}\n"
    world = parse(pulse_lines + "[motion]\nkind = {choose = ['nod', 'talk']}", "t")
    rng = np.random.default_rng(1)
    for _ in range(50):
        pulse = world.draw(PulseSpec, rng)
        assert 50 <= pulse.bpm <= 60
        assert 0.01 <= pulse.amplitude <= 0.02
        assert world.draw(MotionSpec, rng).kind in ("nod", "talk")
    assert world.draw(PulseSpec, rng, {"pulse.bpm": 99.0}).bpm == 99


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("[pulze]\nbpm = 60", UnknownNameError, "pulse"),
        ("[pulse]\nbmp = 60", UnknownNameError, "bpm"),
        ("[motion]\nkind = 'nodd'", UnknownNameError, "nod"),
        ("[pulse]\nbpm = [90, 60]", RecipeError, "low, high"),
        ("[pulse]\nbpm = {log = [0, 60]}", RecipeError, "above 0"),
        ("[pulse]\nbpm = {choose = [60, 70], weights = [1]}", RecipeError, "2 numbers"),
        ("[pulse]\nbpm = {between = [60, 70]}", RecipeError, "choose"),
        ("pulse = 3", RecipeError, "table"),
        ("[pulse\n", RecipeError, "TOML"),
    ],
)
def test_a_wrong_recipe_is_refused_with_a_hint(text: str, error: type[Exception], hint: str) -> None:
    with pytest.raises(error, match=hint):
        parse(text, "mine")


def test_an_unknown_world_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="studio"):
        load("stuido")
