"""What is in front of the camera: a person, a printed photo, a mannequin or a wall."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..types import FloatArray
from . import image_filters
from . import texture_layers as fig
from .head import make_head
from .random_fields import soft
from .skin import Skin


def make_subject(
    kind: str, skin: Skin, px_per_h: float, rng: np.random.Generator, faces: Path | None = None
) -> fig.Figure:
    """Make a figure of a kind in `world.SUBJECTS`; `faces` is a folder of portraits to use as people."""
    if kind == "wall":
        return _wall(px_per_h)
    if faces is not None:
        from .portrait import make_portrait

        figure = make_portrait(faces, px_per_h, rng)
    else:
        figure = make_head(skin, px_per_h, rng)
    if kind == "person":
        return figure
    figure = replace(figure, perfusion=np.zeros_like(figure.perfusion), blink=np.zeros_like(figure.blink))
    return _printed(figure, rng) if kind == "photo" else _mannequin(figure)


def smooth_skin(figure: fig.Figure, strength: float) -> fig.Figure:
    """Blur the colour of the skin, but not eyes, brows, lips and hair, like the beauty filter of a phone."""
    sigma_px = 0.025 * figure.px_per_h
    skin = figure.skin * (figure.skin > 0.8)
    planes = np.concatenate([figure.albedo * skin, skin[None]])
    for axis in (1, 2):
        planes = image_filters.gaussian_filter1d(planes, sigma_px, axis, "nearest", truncate=2.5)
    smooth = planes[:3] / np.maximum(planes[3], 1e-3)
    return replace(figure, albedo=figure.albedo + np.float32(strength) * skin * (smooth - figure.albedo))


def _printed(figure: fig.Figure, rng: np.random.Generator) -> fig.Figure:
    """Turn a person into a flat print with baked-in shading and a white margin."""
    u, v = fig.grid(figure.px_per_h)
    shade = np.clip((figure.normals * _light_direction(rng)[:, None, None]).sum(0), 0, 1) * 0.7 + 0.35
    backdrop = rng.uniform(0.1, 0.7, 3).astype(np.float32)[:, None, None]
    printed = figure.albedo * shade * figure.alpha + backdrop * (1 - figure.alpha)
    sheet = soft(0.78 - np.abs(u), 0.01) * soft(0.86 - np.abs(v), 0.01)
    margin = soft(0.74 - np.abs(u), 0.01) * soft(0.82 - np.abs(v), 0.01)
    paper = np.float32(0.75) + margin * (np.clip(printed, 0, 1) * 0.9 + 0.02 - np.float32(0.75))
    normals = np.zeros_like(figure.normals)
    normals[2] = 1
    zeros = np.zeros_like(figure.mouth)
    return replace(
        figure, albedo=paper.astype(np.float32), alpha=sheet.astype(np.float32), normals=normals, mouth=zeros,
        gloss=(0.3 * sheet).astype(np.float32), flat=True,
    )  # fmt: skip


def _mannequin(figure: fig.Figure) -> fig.Figure:
    """Turn a person into a mannequin: the relief in one glossy colour, with painted eyes and mouth."""
    colour = np.array([0.6, 0.45, 0.36], np.float32)[:, None, None]
    plastic = colour * np.ones_like(figure.albedo)
    return replace(
        figure,
        albedo=figure.albedo + figure.skin * (0.85 * plastic + 0.15 * figure.albedo - figure.albedo),
        mouth=np.zeros_like(figure.mouth),
        gloss=2 * figure.gloss,
    )


@functools.lru_cache(maxsize=4)
def _wall(px_per_h: float) -> fig.Figure:
    """Return an empty figure, so that the crop shows the background."""
    side = fig.texture_side(px_per_h)
    plane, colour = np.zeros((side, side), np.float32), np.zeros((3, side, side), np.float32)
    normals = colour.copy()
    normals[2] = 1
    return fig.Figure(
        px_per_h=px_per_h, albedo=colour, alpha=plane, perfusion=plane, delay_s=plane, normals=normals,
        gloss=plane, blink=colour, mouth=colour, skin=plane,
        box_h=np.array([-0.37, -0.5, 0.74, 1.0]), flat=True,
        tags=(("face", "none"),),
    )  # fmt: skip


def _light_direction(rng: np.random.Generator) -> FloatArray:
    vector = np.array([rng.uniform(-0.6, 0.6), rng.uniform(-0.6, 0), 1.0])
    return (vector / np.linalg.norm(vector)).astype(np.float32)
