"""A skin whose colour follows the dichromatic reflection model, with a pulse of known rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from phase_rppg.types import Clip, RgbTrace

SKIN = np.array([170.0, 120.0, 95.0])
SIGNATURE = np.array([0.33, 0.77, 0.53])  # relative pulse amplitude of R, G, B

TraceMaker = Callable[..., RgbTrace]
ClipMaker = Callable[..., Clip]


def pulse(t_s: np.ndarray, bpm: float) -> np.ndarray:
    angle = 2 * np.pi * bpm / 60 * t_s
    return np.sin(angle) + 0.35 * np.sin(2 * angle + 0.8)


def _trace(
    bpm: float = 72.0,
    seconds: float = 20.0,
    fps: float = 30.0,
    *,
    strength: float = 0.008,
    light: float = 0.0,
    specular: float = 0.0,
    noise: float = 0.02,
    start_s: float = 5.0,
    seed: int = 0,
) -> RgbTrace:
    """Light that sways (all channels alike), mirror light that moves (white), and blood (along its
    signature).
    """
    rng = np.random.default_rng(seed)
    t_s = np.arange(int(seconds * fps)) / fps
    sway = np.sin(2 * np.pi * 0.83 * t_s + 1.0) + np.sin(2 * np.pi * 1.63 * t_s)
    gleam = np.sin(2 * np.pi * 1.05 * t_s + 2.0)
    skin = SKIN * (1 - strength * np.outer(pulse(t_s, bpm), SIGNATURE))
    values = (1 + light * sway)[:, None] * (skin + specular * 255 * gleam[:, None])
    values = values + noise * rng.normal(size=values.shape)
    return RgbTrace(values, fps, start_s, np.ones(len(values), bool))


@pytest.fixture(scope="session")
def make_trace() -> TraceMaker:
    return _trace


@pytest.fixture(scope="session")
def make_clip() -> ClipMaker:
    def make(bpm: float = 72.0, seconds: float = 20.0, fps: float = 30.0, size: int = 24) -> Clip:
        rng = np.random.default_rng(1)
        t_s = 5.0 + np.arange(int(seconds * fps)) / fps
        shade = rng.uniform(0.7, 1.1, (size, size, 1))
        tint = rng.normal(1, 0.03, (size, size, 3))
        blood = 1 - 0.012 * pulse(t_s - 5.0, bpm)[:, None, None, None] * SIGNATURE
        pixels = SKIN * shade * tint * blood + rng.normal(0, 1.0, (len(t_s), size, size, 3))
        return Clip(np.clip(np.rint(pixels), 0, 255).astype(np.uint8), t_s, fps, np.ones(len(t_s), bool))

    return make
