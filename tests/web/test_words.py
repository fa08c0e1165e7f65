"""The terminal and the page say the same things: one vocabulary, written in two languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phase_rppg.measurement import live_state
from phase_rppg.types import Reason

UI = Path(__file__).parents[2] / "web" / "src" / "ui"
PYTHON = Path(live_state.__file__).read_text(encoding="utf-8")


def typescript(name: str) -> str:
    return (UI / name).read_text(encoding="utf-8")


def test_every_reason_has_the_same_sentence() -> None:
    page = dict(re.findall(r'^  ([A-Z_]+): "(.+)",$', typescript("words.ts"), re.MULTILINE))
    assert page == {reason.name: live_state.GUIDANCE[reason] for reason in Reason}


def test_hints_come_at_the_same_limits_with_the_same_words() -> None:
    page = re.findall(r'if \(quality\.(\w+) ([<>]) ([\d.]+)\) return "(.+)";', typescript("words.ts"))
    terminal = re.findall(r'if quality\.(\w+) ([<>]) ([\d.]+):\n        return "(.+)"', PYTHON)
    assert page
    assert page == terminal


@pytest.mark.parametrize("name", ["STEADY_WINDOWS", "STEADY_BPM"])
def test_steady_means_the_same(name: str) -> None:
    (number,) = re.findall(rf"const {name} = ([\d.]+);", typescript("readout.ts"))
    assert float(number) == getattr(live_state, name)


@pytest.mark.parametrize(
    "sentence", ["Steady reading. Stay as you are.", "Settling. Hold still for a few more seconds."]
)
def test_sentences_of_a_reading_are_shared(sentence: str) -> None:
    assert f'"{sentence}"' in PYTHON
    assert f'"{sentence}"' in typescript("readout.ts")
