"""The background behind the person: plain, a gradient or clutter."""

from __future__ import annotations

import numpy as np

from ..types import FloatArray
from .random_fields import octaves, smooth_field, soft

KINDS = ("plain", "gradient", "clutter")


def make_background(kind: str, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Draw the reflectance of a background in linear light, (3,H,W)."""
    colour = (np.exp(rng.uniform(np.log(0.04), np.log(0.75))) * rng.uniform(0.6, 1.2, 3)).astype(np.float32)
    picture = np.ones((3, *shape), np.float32) * colour[:, None, None]
    picture *= np.exp(0.12 * smooth_field(shape, (2, 2), rng))
    if kind == "plain":
        return np.clip(picture * (1 + 0.01 * octaves(shape, min(shape) / 6, 2, rng)), 0.005, 0.95)
    picture *= np.exp(0.35 * smooth_field(shape, (2, 2), rng))
    if kind == "clutter":
        y = np.linspace(0, 1, shape[0], dtype=np.float32)[:, None]
        x = np.linspace(0, 1, shape[1], dtype=np.float32)[None, :]
        for _ in range(int(rng.integers(3, 12))):
            cx, cy, w, h = (
                rng.uniform(0, 1),
                rng.uniform(0, 1),
                rng.uniform(0.03, 0.35),
                rng.uniform(0.03, 0.5),
            )
            mask = soft(w - np.abs(x - cx), 0.006) * soft(h - np.abs(y - cy), 0.006)
            thing = np.exp(rng.uniform(np.log(0.01), np.log(0.9))) * rng.uniform(0.4, 1.3, 3).astype(
                np.float32
            )
            pattern = 1 + rng.uniform(0, 0.4) * octaves(shape, rng.uniform(4, 40), 3, rng)
            picture += mask * (thing[:, None, None].astype(np.float32) * np.clip(pattern, 0.2, 2) - picture)
    picture *= 1 + 0.04 * octaves(shape, min(shape) / 8, 3, rng)
    return np.clip(picture, 0.005, 0.95).astype(np.float32)
