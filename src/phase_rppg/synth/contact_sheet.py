"""A contact sheet: one picture with a row of samples for each world."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..report.figure_file import save_figure
from ..report.plot_style import GREEN, RED, styled
from ..signal.filters import detrend
from ..types import FloatArray
from ..workers import map_in_order
from .sample import Sample, sample
from .world import load

SECONDS = 3.0
_CELL_IN = 1.7  # width of one sample on the sheet
_NAME_IN = 1.6  # width of the column of names
_CHARACTER_IN = 0.07  # of the line at the top
_DRIFT = 30.0  # regularisation of the detrending: it removes drift and keeps the pulse


@styled
def contact_sheet(
    path: str | Path, worlds: Sequence[str], *, columns: int = 6, size: int = 96, seed: int = 0,
    workers: int = 1, faces: Path | None = None,
) -> None:  # fmt: skip
    """Write a PNG with a row of samples for each world: crops above their traces of colour and pulse."""
    from matplotlib.figure import Figure

    jobs = [
        (world, seed, index, size, None if faces is None else str(faces))
        for world in worlds
        for index in range(columns)
    ]
    made = list(map_in_order(_make, jobs, workers, name=lambda job: f"{job[0]} {job[2]}"))
    width, row = _NAME_IN + columns * _CELL_IN, 0.85 * _CELL_IN
    height = row * len(worlds) + 0.5
    figure = Figure((width, height), dpi=130)
    legend = (
        f"First and last picture of {SECONDS:g} s. Green: negative green channel of the skin, detrended. "
        "Red: true blood volume (absent without a pulse)."
    )
    text = textwrap.fill(legend, int(width / _CHARACTER_IN))
    figure.text(0.5, 1 - 0.25 / height, text, ha="center", va="center", fontsize=8)
    left, inner = _NAME_IN / width, 1 - _NAME_IN / width
    for k, world in enumerate(worlds):
        samples = made[k * columns : (k + 1) * columns]
        bottom = 1 - (0.5 + row * (k + 1)) / height
        pictures = figure.add_axes((left, bottom + 0.38 * row / height, inner, 0.6 * row / height))
        pictures.imshow(np.concatenate([_pair(one) for one in samples], axis=1), aspect="auto")
        traces = figure.add_axes((left, bottom, inner, 0.36 * row / height))
        for column, one in enumerate(samples):
            x = column + np.linspace(0.02, 0.98, len(one.pixels))
            traces.plot(x, _scaled(_green(one)), color=GREEN, linewidth=0.8)
            if one.truth.wave.any():
                traces.plot(x, _scaled(one.truth.wave), color=RED, linewidth=0.8)
        traces.set(xlim=(0, columns), ylim=(-0.1, 1.1))
        for axes in (pictures, traces):
            axes.axis("off")
        middle = bottom + 0.5 * row / height
        figure.text(0.08 / width, middle, world, fontsize=10, fontweight="bold", va="bottom")
        about = "\n".join(textwrap.wrap(load(world).about, 30))
        figure.text(0.08 / width, middle - 0.04 / height, about, fontsize=6, va="top")
    save_figure(figure, path)


def _make(job: tuple[str, int, int, int, str | None]) -> Sample:
    world, seed, index, size, faces = job
    return sample(
        load(world), seed, index, seconds=SECONDS, size=size, faces=None if faces is None else Path(faces)
    )


def _pair(one: Sample) -> np.ndarray:
    """Return the first and the last crop side by side, with a white border."""
    both = np.concatenate([one.pixels[0], one.pixels[-1]], axis=1)
    edged: np.ndarray = np.pad(both, ((0, 0), (1, 1), (0, 0)), constant_values=255)
    return edged


def _green(one: Sample) -> FloatArray:
    """Return the detrended negative green channel of the skin, (T,)."""
    weight = one.truth.mask if one.truth.mask.any() else np.ones_like(one.truth.mask)
    return detrend(-(one.pixels[..., 1] * weight).sum((1, 2)) / weight.sum(), _DRIFT)


def _scaled(values: FloatArray) -> FloatArray:
    """Scale values to 0–1; a constant becomes 0.5."""
    span = float(np.ptp(values))
    return (values - values.min()) / span if span > 1e-9 else np.full(len(values), 0.5)
