"""A contact sheet: one row per world, a few samples each, that a person can judge at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..fileio import write_bytes
from .sample import Sample, sample
from .work import in_order
from .world import load
from .writers.pure import png


def contact_sheet(
    path: str | Path, worlds: Sequence[str], *, columns: int = 6, size: int = 96, seed: int = 0,
    workers: int = 1, faces: Path | None = None,
) -> None:  # fmt: skip
    """Write a PNG with a row of samples for every world: crops over their traces of colour and pulse."""
    jobs = [
        (world, seed, index, size, None if faces is None else str(faces))
        for world in worlds
        for index in range(columns)
    ]
    tiles = [_tile(one) for one in in_order(_make, jobs, workers)]
    rows = [np.concatenate(tiles[k : k + columns], axis=1) for k in range(0, len(tiles), columns)]
    write_bytes(path, png(np.ascontiguousarray(np.concatenate(rows, axis=0))))


def _make(job: tuple[str, int, int, int, str | None]) -> Sample:
    world, seed, index, size, faces = job
    return sample(
        load(world), seed, index, seconds=3.0, size=size, faces=None if faces is None else Path(faces)
    )


def _tile(one: Sample) -> np.ndarray:
    """The first and the last crop, over the green trace (green) and the true wave (red)."""
    size = one.pixels.shape[1]
    height = size // 3
    plot = np.full((height, 2 * size, 3), 245, np.uint8)
    weight = one.truth.mask if one.truth.mask.any() else np.ones_like(one.truth.mask)
    green = -(one.pixels[..., 1] * weight).sum((1, 2)) / weight.sum()
    for values, colour in ((green, (0, 150, 60)), (one.truth.wave, (220, 40, 40))):
        span = float(np.ptp(values))
        level = (values - values.min()) / span if span > 1e-9 else np.full(len(values), 0.5)
        x = np.linspace(0, len(values) - 1, 2 * size).astype(int)
        y = np.rint((height - 3) * (1 - level[x]) + 1).astype(int)
        plot[y, np.arange(2 * size)] = colour
    pictures = np.concatenate([one.pixels[0], one.pixels[-1]], axis=1)
    tile: np.ndarray = np.pad(
        np.concatenate([pictures, plot], axis=0), ((1, 1), (1, 1), (0, 0)), constant_values=255
    )
    return tile
