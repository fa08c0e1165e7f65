"""The judgement of the browser tests: a number is judged whenever the film had a clear rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from . import projection
from .filming import FPS

FILM_BPM, FRAMES = 72.0, 300


class StubPage:
    """A page that shows an even film at a low frame rate; its clock runs as fast as the test asks."""

    def __init__(self, fps: float, state: str, bpm: str, wobble_s: float = 0.0) -> None:
        self.fps, self.state, self.bpm, self.wobble_s = fps, state, bpm, wobble_s
        self.now_s = 0.0

    def evaluate(self, script: str) -> Any:
        if script == projection.READING:
            return [self.state, self.bpm]
        t_s = np.arange(0, self.now_s, 1 / self.fps)
        film_s = t_s + self.wobble_s * np.sin(2 * np.pi * t_s / 6)
        return [[t, t, int(s * FPS) % FRAMES, 0] for t, s in zip(t_s, film_s, strict=True)]

    def get_attribute(self, _selector: str, _name: str) -> str:
        return f"{self.fps:.1f}"

    def inner_text(self, _selector: str) -> str:
        return "measuring"

    def wait_for_timeout(self, ms: float) -> None:
        self.now_s += 2 * ms / 1000


def read(page: StubPage) -> float:
    return projection.read(page, FILM_BPM, FRAMES)


@pytest.mark.parametrize("fps", [6.0, 12.0, 19.0, 30.0])
def test_a_steady_number_is_judged_at_every_frame_rate(fps: float) -> None:
    assert read(StubPage(fps, "steady", "72")) == 72
    with pytest.raises(AssertionError, match="75 bpm for"):
        read(StubPage(fps, "steady", "75"))


@pytest.mark.parametrize("fps", [projection.FAIR_FPS, 19.0, 30.0])
def test_an_even_film_must_give_a_number(fps: float) -> None:
    with pytest.raises(AssertionError, match="no steady number within"):
        read(StubPage(fps, "measuring", "––"))


def test_a_film_that_stumbles_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    page = StubPage(15.0, "steady", "75", wobble_s=0.6)
    monkeypatch.setattr(projection.time, "monotonic", lambda: page.now_s)
    with pytest.raises(AssertionError, match="too busy"):
        read(page)
