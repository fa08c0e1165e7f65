"""Figures from portrait photos: a detector finds the face, and a colour model finds the skin."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from scipy import ndimage

from ..errors import InputError, VideoError
from ..face.detector import Detection, Detector
from ..types import ByteArray, FloatArray
from ..video.decode import ImageSequence
from . import texture_layers as fig
from .random_fields import octaves, smooth_field, soft

SUFFIXES = (".jpg", ".jpeg", ".png")
LID_HALF_H = 0.042  # distance from the centre of an eye to the skin above and below it, in box heights
LID_SHADE = 0.94  # brightness of a lid relative to the skin around it, as in procedural heads


def make_portrait(folder: Path, px_per_h: float, rng: np.random.Generator) -> fig.Figure:
    """Make a figure from a random portrait of the folder."""
    faces = portraits(folder)
    name = faces[int(rng.integers(len(faces)))]
    rgb, found = _load(folder / name)
    if rng.random() < 0.5:
        rgb, found = _mirrored(rgb, found)
    albedo = _texture(rgb, found, px_per_h)
    u, v = fig.grid(px_per_h)
    size = (v.shape[0], u.shape[1])
    marks = _in_head(found)
    skin = _skin(albedo, marks, u, v)
    weight = skin * np.clip(1 + 0.25 * octaves(size, 5, 3, rng), 0.2, 2)
    cheeks = np.exp(-(((np.abs(u) - 0.18) / 0.1) ** 2) - ((v - 0.1) / 0.12) ** 2)
    weight = weight * (rng.uniform(0.5, 1) + 0.6 * cheeks) * np.where(v > 0.52, 0.5, 1)
    delay_s = rng.uniform(-0.03, 0.05) * v + 0.012 * smooth_field(size, (4, 4), rng)
    perfusion, delay_s = fig.normalise_perfusion(weight.astype(np.float32), delay_s.astype(np.float32))
    height = 0.6 * fig.depth(u, v) + 0 * albedo[0]
    lids = _lids(albedo, marks, u, v)
    mouth_u, mouth_v = marks[3:].mean(0)
    inner = np.exp(-(((u - mouth_u) / 0.09) ** 2) - ((v - mouth_v - 0.012) / 0.028) ** 2)
    dark = np.array([0.03, 0.012, 0.01], np.float32)[:, None, None]
    return fig.Figure(
        px_per_h=px_per_h,
        albedo=albedo,
        alpha=np.ones(size, np.float32),
        perfusion=perfusion,
        delay_s=delay_s,
        # The photo already contains shading, so only a part of the relief is added.
        normals=fig.normals_of(0.5 * height, px_per_h),
        gloss=(0.7 * skin).astype(np.float32),
        blink=lids,
        mouth=(0.9 * soft(inner - 0.5, 0.5) * (dark - albedo)).astype(np.float32),
        skin=skin,
        box_h=_box(found),
        tags=(("face", name),),
    )


@functools.lru_cache(maxsize=8)
def portraits(folder: Path) -> tuple[str, ...]:
    """Return the names of the portraits in a folder, sorted."""
    if not folder.is_dir():
        raise InputError(f"{folder}: the folder of portraits does not exist")
    files = sorted(file.name for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise InputError(f"{folder}: the folder holds no portraits ({' '.join(SUFFIXES)})")
    return tuple(files)


@functools.lru_cache(maxsize=1)
def _detector() -> Detector:
    return Detector()


@functools.lru_cache(maxsize=256)
def _load(path: Path) -> tuple[ByteArray, Detection]:
    try:
        rgb: ByteArray = next(iter(ImageSequence([path], [0.0]).frames())).rgb
    except (VideoError, StopIteration) as error:
        raise InputError(f"{path}: is not an image that can be read ({error})") from error
    found = _detector().detect(rgb)
    if not found:
        raise InputError(f"{path}: no face found in this portrait; remove it from the folder")
    return rgb, found[0]


def _mirrored(rgb: ByteArray, found: Detection) -> tuple[ByteArray, Detection]:
    x, y, w, h = found.box
    marks = found.landmarks.copy()
    marks[:, 0] = rgb.shape[1] - marks[:, 0]
    return rgb[:, ::-1], Detection((rgb.shape[1] - x - w, y, w, h), found.score, marks[[1, 0, 2, 4, 3]])


def _texture(rgb: ByteArray, found: Detection, px_per_h: float) -> FloatArray:
    """Return the portrait in head coordinates and linear light, (3,H,W); edge pixels are repeated."""
    x, y, w, h = found.box
    u, v = fig.grid(px_per_h)
    linear = (rgb.astype(np.float32) / 255) ** np.float32(2.2)
    if h > 1.5 * px_per_h:  # average before the portrait is reduced in size
        linear = ndimage.gaussian_filter(linear, (0.4 * h / px_per_h,) * 2 + (0,))
    rows = (y + h / 2 + v * h) + 0 * u
    columns = (x + w / 2 + u * h) + 0 * v
    planes = [
        ndimage.map_coordinates(linear[:, :, c], [rows, columns], order=1, mode="nearest") for c in range(3)
    ]
    return np.clip(np.stack(planes), 0.003, 1).astype(np.float32)


def _in_head(found: Detection) -> FloatArray:
    """Return the landmarks in head coordinates, (5,2)."""
    x, y, w, h = found.box
    return (found.landmarks - np.array([x + w / 2, y + h / 2])) / h


def _box(found: Detection) -> FloatArray:
    _, _, w, h = found.box
    return np.array([-w / h / 2, -0.5, w / h, 1.0])


def _skin(albedo: FloatArray, marks: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
    """Return the probability of skin (H,W), from the distance to the colour of cheeks and forehead."""
    log = np.log(albedo + 0.01)
    chroma = np.stack([log[0] - log[1], log[1] - log[2], 0.35 * log.mean(0)])
    right, left, nose = marks[0], marks[1], marks[2]
    seeds = np.zeros(albedo.shape[1:], bool)
    for spot in (
        0.5 * (right + nose) + [-0.05, 0.06],
        0.5 * (left + nose) + [0.05, 0.06],
        0.5 * (right + left) - [0, 0.14],
    ):
        seeds |= (u - spot[0]) ** 2 + (v - spot[1]) ** 2 < 0.05**2
    samples = chroma[:, seeds]
    centre = np.median(samples, axis=1)
    spread = 1.5 * np.median(np.abs(samples - centre[:, None]), axis=1) + 0.05
    distance = (((chroma - centre[:, None, None]) / (2.6 * spread[:, None, None])) ** 2).sum(0)
    likely = np.exp(-0.5 * distance**2)
    near = soft(1.15 - np.sqrt((u / 0.42) ** 2 + ((v - 0.02) / 0.55) ** 2), 0.15)
    neck = soft(0.3 - np.abs(u), 0.1) * soft(v - 0.4, 0.1) * 0.8
    likely = ndimage.gaussian_filter(likely, 1.0) * np.maximum(near, neck)
    for eye in (right, left):
        likely = likely * soft(np.hypot((u - eye[0]) / 0.085, (v - eye[1]) / 0.045) - 1, 0.4)
    return np.clip(likely, 0, 1).astype(np.float32)


def _lids(albedo: FloatArray, marks: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
    """Return the change of the albedo by closed lids (3,H,W), interpolated from the skin around each eye."""
    change = np.zeros_like(albedo)
    px_per_h = 1 / float(v[1, 0] - v[0, 0])
    for eye in marks[:2]:
        rows = [int(np.argmin(np.abs(v[:, 0] - eye[1] - side * LID_HALF_H))) for side in (-1, 1)]
        reach = max(1, round(0.012 * px_per_h))
        above, below = (
            ndimage.gaussian_filter1d(
                albedo[:, max(row - reach, 0) : row + reach + 1].mean(1), 2.0 * reach, axis=-1, mode="nearest"
            )[:, None, :]
            for row in rows
        )  # (3,1,W)
        share = np.clip((v - eye[1]) / (2 * LID_HALF_H) + 0.5, 0, 1)  # (H,1) 0 above the eye, 1 below it
        lid = np.float32(LID_SHADE) * (above + share * (below - above))
        mask = soft(1 - np.hypot((u - eye[0]) / 0.075, (v - eye[1]) / (0.75 * LID_HALF_H)), 0.35)
        change += mask * (lid - albedo)
    return change.astype(np.float32)
