"""Small domains of uniform images with a pulse, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from phase_rppg.reproduce.domains import Domain, Item

FRAMES, SIDE = 96, 32


class Faces:
    """Clips with a pulse in the green channel."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def clip(self, index: int) -> tuple[np.ndarray, np.ndarray, float, dict[str, Any]]:
        rng = np.random.default_rng([self.seed, index])
        t = np.arange(FRAMES) / 30
        wave = np.sin(2 * np.pi * rng.uniform(1.0, 2.0) * t)
        noise = rng.normal(0, 1, (FRAMES, SIDE, SIDE, 3))
        pixels = 120 + wave[:, None, None, None] * np.array([1.0, 5.0, 2.0]) + noise
        return np.rint(pixels).astype(np.uint8), wave, 30.0, {}


def domain(name: str, *, synthetic: bool = True, fingerprint: str = "1", subjects: int = 2) -> Domain:
    faces: Any = Faces(len(name))
    items = tuple(Item(f"s{i}", f"{name} {i}", {}, FRAMES, (faces, i)) for i in range(subjects))
    return Domain(name, f"/data/{name}", synthetic, f"{name} {fingerprint}", items)
