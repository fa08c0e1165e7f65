"""Tiny clips with a pulse, a tiny recipe, and nothing on the disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from phase_rppg.train.recipe import Recipe, from_dict

FPS = 30.0


class Toy:
    """Flat faces whose green channel beats at 60–150 bpm."""

    def __init__(self, count: int = 8, *, frames: int = 120, size: int = 12, seed: int = 0) -> None:
        self.count, self.frames, self.size, self.seed = count, frames, size, seed

    def __len__(self) -> int:
        return self.count

    def clip(self, index: int) -> tuple[np.ndarray, np.ndarray, float, dict[str, Any]]:
        rng = np.random.default_rng([self.seed, index])
        t = np.arange(self.frames) / FPS
        wave = np.sin(2 * np.pi * rng.uniform(1.0, 2.5) * t + rng.uniform(0, 6))
        scene = rng.uniform(90, 160, (1, self.size, self.size, 3))
        beat = wave[:, None, None, None] * np.array([1.0, 5.0, 2.0])
        noise = rng.normal(0, 1, (self.frames, self.size, self.size, 3))
        pixels = np.clip(np.rint(scene + beat + noise), 0, 255).astype(np.uint8)
        return pixels, wave.astype(np.float32), FPS, {}


TINY: dict[str, Any] = {
    "seed": 3,
    "network": {
        "name": "phasenet-stream", "size": 8, "stem": 4, "channels": [6], "pools": [2], "expansion": 2,
        "asf_hidden": 4, "hidden": 8, "tcn_dilations": [1, 2],
    },
    "data": {"train": [{"clips": "not used"}], "frames": 64, "workers": 0, "validate_clips": 2},
    "loss": {"auxiliary": "latent"},
    "optimise": {
        "epochs": 2, "batch": 4, "lr": 3e-3, "clip_norm": 1.0, "ema": 0.9, "warmup_steps": 2,
        "schedule": "cosine",
    },
    "watch": {"log_every": 1, "save_every": 1, "validate_every": 2},
}  # fmt: skip


def tiny(**changes: dict[str, Any] | Any) -> Recipe:
    """The tiny recipe with some tables changed."""
    values = {key: dict(value) if isinstance(value, dict) else value for key, value in TINY.items()}
    for key, value in changes.items():
        values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
    return from_dict(values)
