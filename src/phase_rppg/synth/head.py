"""Procedural heads: a height map for the shading, and painted layers for the colours.

The proportions match the boxes of the face detector on real faces: eyes at 40 %, mouth at 74 % of the box
height, box width 0.74 of its height. Every feature is drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import FloatArray
from . import texture_layers as fig
from .random_fields import octaves, smooth_field, soft
from .skin import BLOOD, MELANIN, Skin

# Linear-light colours.
HAIR = (
    (0.012, 0.010, 0.009),
    (0.03, 0.018, 0.011),
    (0.075, 0.042, 0.022),
    (0.22, 0.14, 0.065),
    (0.4, 0.38, 0.36),
)
# The measured box of the detector on these heads, in drawing units. The figure is scaled to box height 1.
DETECTED_HEIGHT, DETECTED_CENTRE = 0.911, 0.027
IRIS = ((0.05, 0.025, 0.012), (0.03, 0.018, 0.01), (0.09, 0.13, 0.18), (0.08, 0.11, 0.06))


@dataclass(frozen=True, slots=True)
class Shape:
    """The positions and sizes of the features of one face, in box heights."""

    width: float  # half width at the cheeks
    chin: float
    jaw: float  # 2 pointed … 3.4 square
    eye_u: float
    eye_v: float
    eye_w: float
    eye_open: float
    nose_v: float
    nose_w: float
    mouth_v: float
    mouth_w: float
    hairline: float
    hair_length: float  # v down to which the hair falls at the sides
    beard: float  # 0–1
    brow: float  # 0–1 strength
    glasses: bool
    bald: bool

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Shape:
        long_hair = rng.random() < 0.4
        return cls(
            width=rng.uniform(0.325, 0.385), chin=rng.uniform(0.46, 0.51), jaw=rng.uniform(2.0, 3.2),
            eye_u=rng.uniform(0.16, 0.19), eye_v=rng.uniform(-0.115, -0.085), eye_w=rng.uniform(0.06, 0.078),
            eye_open=rng.uniform(0.3, 0.48), nose_v=rng.uniform(0.09, 0.125), nose_w=rng.uniform(0.05, 0.075),
            mouth_v=rng.uniform(0.23, 0.26), mouth_w=rng.uniform(0.115, 0.16),
            hairline=rng.uniform(-0.46, -0.3),
            hair_length=rng.uniform(0.3, 0.9) if long_hair else rng.uniform(-0.2, 0.02),
            beard=0.0 if long_hair or rng.random() < 0.5 else rng.uniform(0.15, 1.0),
            brow=rng.uniform(0.4, 0.95),
            glasses=bool(rng.random() < 0.18), bald=bool(not long_hair and rng.random() < 0.12),
        )  # fmt: skip


def make_head(skin: Skin, px_per_h: float, rng: np.random.Generator) -> fig.Figure:
    """Draw one person at random."""
    shape = Shape.draw(rng)
    u, v = fig.grid(px_per_h)
    u, v = DETECTED_HEIGHT * u, DETECTED_HEIGHT * v + DETECTED_CENTRE
    canvas = _Canvas(skin, u, v, px_per_h / DETECTED_HEIGHT, rng)
    face = canvas.face_mask(shape)
    _body(canvas, shape, rng)
    _face(canvas, shape, face, rng)
    opened = canvas.albedo.copy()
    lids = _eyes(canvas, shape)
    closed = opened * (
        1 - np.float32(0.06) * lids
    )  # a lid has the colour of the skin around it, slightly darker
    closed *= 1 - 0.6 * canvas.lash_line(shape)
    blink = closed - canvas.albedo
    _mouth_and_brows(canvas, shape, rng)
    blink *= soft(np.abs(np.abs(u) - shape.eye_u) * -1 + 0.1, 0.02) * soft(
        0.06 - np.abs(v - shape.eye_v), 0.02
    )
    _hair(canvas, shape, rng)
    if shape.glasses:
        _glasses(canvas, shape, rng)
        blink *= 0.8
    perfusion, delay_s = _perfusion(canvas, shape, rng)
    inner = np.exp(-(((u) / (0.6 * shape.mouth_w)) ** 2) - ((v - shape.mouth_v - 0.012) / 0.028) ** 2)
    mouth = (
        np.float32(0.92)
        * soft(inner - 0.5, 0.5)
        * (np.array([0.03, 0.012, 0.01], np.float32)[:, None, None] - canvas.albedo)
    )
    width = 1.91 * shape.width / 0.911
    return fig.Figure(
        px_per_h=px_per_h,
        albedo=np.clip(canvas.albedo, 0.003, 1),
        alpha=canvas.alpha,
        perfusion=perfusion,
        delay_s=delay_s,
        normals=fig.normals_of(_relief(canvas, shape), px_per_h / DETECTED_HEIGHT),
        gloss=(canvas.skin_mask * (0.6 + 0.4 * np.exp(-((u / 0.2) ** 2) - ((v + 0.1) / 0.3) ** 2))).astype(
            np.float32
        ),
        blink=blink.astype(np.float32),
        mouth=mouth.astype(np.float32),
        skin=canvas.skin_mask,
        box_h=np.array([-width / 2, -0.5, width, 1.0]),
        tags=(
            ("face", "procedural"),
            ("glasses", str(shape.glasses).lower()),
            ("beard", f"{shape.beard:.2f}"),
        ),
    )


class _Canvas:
    """The layers while they are painted: later strokes cover earlier ones."""

    def __init__(
        self, skin: Skin, u: FloatArray, v: FloatArray, px_per_h: float, rng: np.random.Generator
    ) -> None:
        self.skin, self.u, self.v = skin, u, v
        self.edge = 1.6 / px_per_h
        self.size = (v.shape[0], u.shape[1])
        self.albedo = np.zeros((3, *self.size), np.float32)
        self.alpha = np.zeros(self.size, np.float32)
        self.skin_mask = np.zeros(self.size, np.float32)
        self.perfused = np.zeros(self.size, np.float32)
        redness = 0.05 * octaves(self.size, 6, 3, rng) + 0.04 * octaves(self.size, min(self.size) / 6, 2, rng)
        pigment = 0.03 * octaves(self.size, 10, 3, rng) + 0.02 * octaves(
            self.size, min(self.size) / 4, 2, rng
        )
        if rng.random() < 0.3:  # freckles
            pigment += 0.12 * soft(octaves(self.size, min(self.size) / 5, 1, rng) - 1.6, 0.6)
        cheeks = np.exp(-(((np.abs(u) - 0.2) / 0.09) ** 2) - ((v - 0.1) / 0.09) ** 2)
        nose = np.exp(-((u / 0.06) ** 2) - ((v - 0.1) / 0.05) ** 2)
        redness = redness + rng.uniform(0.05, 0.3) * (cheeks + 0.8 * nose)
        exponent = redness * BLOOD[:, None, None] + pigment * MELANIN[:, None, None]
        self.complexion = (skin.albedo[:, None, None] * np.exp(-exponent)).astype(np.float32)
        self.iris = np.array(IRIS[rng.integers(2 if skin.fitzpatrick > 3 else 4)], np.float32)
        self.hair_colour = np.array(HAIR[rng.integers(2 if skin.fitzpatrick > 3 else 5)], np.float32)
        self.hair_colour *= np.float32(rng.uniform(0.7, 1.5))

    def paint(self, mask: FloatArray, colour: FloatArray, skin: float = 0.0, opaque: bool = True) -> None:
        """Paint a colour over the mask; `skin` is the share of perfused skin in the colour."""
        rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
        if not len(rows):
            return
        # Most strokes are small. Only the part of the canvas inside the mask is changed.
        here = np.s_[..., rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        mask = mask[here]
        self.albedo[here] += mask * (
            (colour[:, None, None] if colour.ndim == 1 else colour[here]) - self.albedo[here]
        )
        self.skin_mask[here] += mask * (np.float32(skin) - self.skin_mask[here])
        if opaque:
            self.alpha[here] += mask * (1 - self.alpha[here])

    def oval(self, cu: float, cv: float, ru: float, rv: float, edge: float = 0.0) -> FloatArray:
        d = 1 - np.sqrt(((self.u - cu) / ru) ** 2 + ((self.v - cv) / rv) ** 2)
        return soft(d * np.float32(min(ru, rv)), max(edge, self.edge))

    def face_mask(self, s: Shape) -> FloatArray:
        middle, top = -0.05, -0.63
        above = np.sqrt(np.clip(1 - ((middle - self.v) / (middle - top)) ** 2, 0, 1))
        below = np.clip(1 - np.clip((self.v - middle) / (s.chin - middle), 0, 1) ** s.jaw, 0, 1) ** 0.55
        half = s.width * np.where(self.v < middle, above, below)
        inside = soft(half - np.abs(self.u), 1.5 * self.edge) * soft(self.v - top, self.edge)
        return inside * soft(s.chin - self.v, 1.5 * self.edge)

    def lash_line(self, s: Shape) -> FloatArray:
        x = (np.abs(self.u) - s.eye_u) / s.eye_w
        line = s.eye_v + s.eye_w * s.eye_open * (0.9 - 0.5 * x * x)
        return soft(0.008 - np.abs(self.v - line), 2 * self.edge) * soft(1 - np.abs(x), 0.3)


def _body(c: _Canvas, s: Shape, rng: np.random.Generator) -> None:
    """Paint the hair behind the head, the neck, the shoulders and the clothes."""
    if s.hair_length > 0.1:
        behind = soft(0.46 + 0.06 * smooth_field(c.size, (5, 2), rng) - np.abs(c.u), 0.02)
        behind = behind * soft(s.hair_length - c.v, 0.06) * soft(c.v + 0.4, 0.1)
        c.paint(behind, c.hair_colour * np.float32(0.6))
    neck = rng.uniform(0.19, 0.26)
    half = neck + 0.25 * np.clip(c.v - 0.52, 0, 1) ** 1.5
    c.paint(soft(half - np.abs(c.u), c.edge) * soft(c.v - 0.2, 0.1), c.complexion * np.float32(0.88), skin=1)
    slope = rng.uniform(0.25, 0.5)
    collar = rng.uniform(0.6, 0.72)
    line = (
        collar
        + slope * np.clip(np.abs(c.u) - neck, 0, 2)
        - rng.uniform(-0.25, 0.1) * np.clip(neck - np.abs(c.u), 0, 1)
    )
    colour = np.exp(rng.uniform(np.log(0.015), np.log(0.7))) * rng.uniform(0.5, 1.2, 3).astype(np.float32)
    weave = 1 + 0.15 * octaves(c.size, 5, 4, rng)
    if rng.random() < 0.3:
        weave = weave * (
            1
            + rng.uniform(0.1, 0.4)
            * np.sign(np.sin(rng.uniform(20, 120) * (c.v + rng.choice([0.0, 1.0]) * c.u)))
        )
    clothes = np.clip(colour, 0.01, 0.85).astype(np.float32)[:, None, None] * np.clip(weave, 0.3, 1.7)
    arms = soft(rng.uniform(0.76, 0.82) - np.abs(c.u), 0.03)  # the body ends within the texture
    c.paint(soft(c.v - line, c.edge) * arms, clothes.astype(np.float32))


def _face(c: _Canvas, s: Shape, face: FloatArray, rng: np.random.Generator) -> None:
    """Paint the ears, the facial skin and the beard."""
    for side in (-1, 1):
        c.paint(c.oval(side * (s.width + 0.015), -0.03, 0.045, 0.1), c.complexion * np.float32(0.85), skin=1)
    c.paint(face, c.complexion, skin=1)
    sockets = np.exp(-(((np.abs(c.u) - s.eye_u) / 0.085) ** 2) - ((c.v - s.eye_v - 0.01) / 0.055) ** 2)
    c.albedo *= 1 - np.float32(rng.uniform(0.1, 0.3)) * sockets
    if s.beard > 0:
        jaw = soft(c.v - 0.16 - 0.1 * (1 - np.abs(c.u) / s.width), 0.1)
        moustache = np.exp(-((c.u / (0.9 * s.mouth_w)) ** 4) - ((c.v - s.mouth_v + 0.06) / 0.03) ** 2)
        sides = soft(np.abs(c.u) - s.width * 0.82, 0.05) * soft(c.v + 0.02, 0.1)
        stubble = 0.75 + 0.25 * octaves(c.size, min(c.size) / 5, 2, rng)
        mask = face * np.clip(np.maximum(np.maximum(jaw, moustache), sides), 0, 1) * np.clip(stubble, 0, 1)
        c.paint(
            mask * np.float32(0.85 * s.beard), c.hair_colour * np.float32(1.3), skin=1 - s.beard, opaque=False
        )


def _eyes(c: _Canvas, s: Shape) -> FloatArray:
    """Paint both open eyes and return the mask of the closed lids."""
    lids = np.zeros(c.size, np.float32)
    for side in (-1, 1):
        x = (c.u - side * s.eye_u) / s.eye_w
        y = (c.v - s.eye_v) / s.eye_w
        opening = s.eye_open * np.sqrt(np.clip(1 - x * x, 0, 1))
        white = soft(opening - np.abs(y), 0.12) * soft(1 - np.abs(x), 0.1)
        c.paint(white, np.array([0.5, 0.47, 0.45], np.float32), opaque=False)
        r = np.sqrt(x * x + y * y)
        c.paint(white * soft(0.42 - r, 0.1), c.iris, opaque=False)
        c.paint(white * soft(0.19 - r, 0.08), np.full(3, 0.006, np.float32), opaque=False)
        c.paint(
            white * soft(0.09 - np.hypot(x - 0.15, y + 0.15), 0.08), np.full(3, 0.9, np.float32), opaque=False
        )
        lash = soft(0.14 - np.abs(y + opening), 0.12) * soft(1.05 - np.abs(x), 0.15)
        c.paint(lash * np.float32(0.8), c.hair_colour * np.float32(0.5), opaque=False)
        crease = np.exp(-(((y + opening + 0.35) / 0.1) ** 2)) * soft(1.1 - np.abs(x), 0.3)
        c.albedo *= 1 - np.float32(0.25) * crease
        lids = np.maximum(lids, soft(s.eye_open * 1.6 - np.abs(y), 0.4) * soft(1.1 - np.abs(x), 0.2))
    return lids


def _mouth_and_brows(c: _Canvas, s: Shape, rng: np.random.Generator) -> None:
    for side in (-1, 1):
        x = (c.u - side * s.eye_u * 1.03) / (s.eye_w * 1.45)
        arch = s.eye_v - 0.085 - 0.018 * (1 - x * x) + 0.01 * side * x
        hairs = 0.85 + 0.25 * smooth_field(c.size, (c.size[0] // 10, c.size[1] // 3), rng)
        brow = soft(0.017 * (1 - 0.35 * x * side) - np.abs(c.v - arch), 0.016) * soft(1 - np.abs(x), 0.25)
        c.paint(
            np.clip(brow * s.brow * hairs, 0, 1).astype(np.float32),
            c.hair_colour * np.float32(1.2),
            opaque=False,
        )
    x = c.u / s.mouth_w
    full = rng.uniform(0.024, 0.042)
    bow = 1 - 0.25 * np.exp(-((x / 0.18) ** 2))
    upper = soft(
        full * 0.8 * bow * np.sqrt(np.clip(1 - x * x, 0, 1)) - np.abs(c.v - s.mouth_v + 0.4 * full), 0.012
    )
    lower = soft(full * np.sqrt(np.clip(1 - x * x, 0, 1)) - np.abs(c.v - s.mouth_v - 0.5 * full), 0.012)
    lips = c.skin.albedo * np.exp(-rng.uniform(0.5, 1.3) * BLOOD - np.float32(0.15))
    c.paint(
        np.maximum(upper, lower) * soft(1 - np.abs(x), 0.1), lips.astype(np.float32), skin=0.5, opaque=False
    )
    seam = soft(0.006 - np.abs(c.v - s.mouth_v - 0.006 * np.cos(3 * x)), 0.008) * soft(1.05 - np.abs(x), 0.1)
    c.albedo *= 1 - np.float32(0.75) * seam
    for side in (-1, 1):  # nostrils and the wings of the nose
        c.albedo *= 1 - np.float32(0.7) * c.oval(side * s.nose_w * 0.45, s.nose_v + 0.03, 0.018, 0.009, 0.012)
        wing = np.hypot((c.u - side * s.nose_w) / 0.02, (c.v - s.nose_v - 0.01) / 0.03)
        c.albedo *= 1 - np.float32(0.3) * np.exp(-((wing - 0.8) ** 2) / 0.15)
        fold = np.abs(c.u) - (s.nose_w + 0.45 * np.clip(c.v - s.nose_v + 0.01, 0, 1))
        c.albedo *= 1 - np.float32(0.1) * np.exp(-((fold / 0.012) ** 2)) * soft(c.v - s.nose_v, 0.04) * soft(
            s.mouth_v - c.v, 0.05
        )


def _hair(c: _Canvas, s: Shape, rng: np.random.Generator) -> None:
    if s.bald:
        return
    puff = rng.uniform(0.03, 0.14)
    outer = np.sqrt((c.u / (s.width + 0.05 + 0.5 * puff)) ** 2 + ((c.v + 0.12) / (0.5 + puff)) ** 2)
    ragged = rng.uniform(0.01, 0.05) * octaves(c.size, 9, 3, rng)
    cap = soft((1 - outer) * 0.5 + ragged, 2 * c.edge)
    fringe = s.hairline + rng.uniform(0.1, 0.9) * c.u**2 / s.width + rng.uniform(-0.25, 0.25) * c.u
    above = soft(fringe + ragged - c.v, 0.02)
    temple = soft(np.abs(c.u) - s.width * rng.uniform(0.86, 0.98) + 0.5 * ragged, 0.02) * soft(
        s.hair_length - c.v, 0.05
    )
    sides = np.where(c.v < -0.12, cap, soft(s.width + 0.05 + 0.5 * puff - np.abs(c.u), 0.02))
    mask = np.maximum(cap * above, sides * temple)
    strands = 1 + 0.35 * smooth_field(c.size, (6, c.size[1] // 3), rng) + 0.25 * octaves(c.size, 6, 3, rng)
    shine = 1 + 1.2 * np.exp(-(((c.v + 0.5) / 0.08) ** 2) - (c.u / 0.3) ** 2)
    colour = c.hair_colour[:, None, None] * np.clip(strands * shine, 0.3, 3)
    c.paint(mask.astype(np.float32), colour.astype(np.float32))


def _glasses(c: _Canvas, s: Shape, rng: np.random.Generator) -> None:
    colour = np.array([0.02, 0.02, 0.025], np.float32) * np.float32(rng.uniform(0.5, 6))
    power = rng.uniform(2, 5)
    thick = rng.uniform(0.006, 0.016)
    for side in (-1, 1):
        r = (
            np.abs((c.u - side * s.eye_u) / 0.125) ** power + np.abs((c.v - s.eye_v - 0.01) / 0.085) ** power
        ) ** (1 / power)
        c.paint(soft(thick - np.abs(r - 1) * 0.1, 1.5 * c.edge), colour, opaque=False)
    bridge = soft(thick - np.abs(c.v - s.eye_v + 0.01), c.edge) * soft(s.eye_u - 0.12 - np.abs(c.u), c.edge)
    arms = (
        soft(thick - np.abs(c.v - s.eye_v + 0.02), c.edge)
        * soft(np.abs(c.u) - s.eye_u - 0.12, c.edge)
        * soft(s.width - np.abs(c.u), c.edge)
    )
    c.paint(np.maximum(bridge, arms), colour, opaque=False)


def _relief(c: _Canvas, s: Shape) -> FloatArray:
    """Return the height map of the face, from which the normals are computed."""
    a = np.abs(c.u)
    inside = 1 - (c.u / (s.width * 1.12)) ** 2 - ((c.v + 0.06) / 0.66) ** 2
    height = 0.34 * np.sqrt(np.clip(inside, 0.02, 1))
    ridge = np.clip((c.v + 0.1) / (s.nose_v + 0.1), 0, 1)
    width = 0.028 + (s.nose_w - 0.028) * ridge**2
    height = height + 0.085 * ridge * np.exp(-((c.u / width) ** 2)) * soft(s.nose_v + 0.025 - c.v, 0.035)
    height = height - 0.035 * np.exp(-(((a - s.eye_u) / 0.075) ** 2) - ((c.v - s.eye_v) / 0.045) ** 2)
    height = height + 0.022 * np.exp(-(((a - s.eye_u) / 0.05) ** 2) - ((c.v - s.eye_v) / 0.025) ** 2)
    height = height + 0.012 * np.exp(-(((c.v - s.eye_v + 0.085) / 0.03) ** 2)) * soft(s.width * 0.8 - a, 0.1)
    height = height + 0.02 * np.exp(-(((a - 0.2) / 0.08) ** 2) - ((c.v - 0.08) / 0.08) ** 2)
    height = height + 0.014 * np.exp(-((c.u / s.mouth_w) ** 2) - ((c.v - s.mouth_v) / 0.035) ** 2)
    height = height - 0.012 * np.exp(-((c.u / 0.08) ** 2) - ((c.v - s.mouth_v - 0.07) / 0.02) ** 2)
    height = height + 0.025 * np.exp(-((c.u / 0.08) ** 2) - ((c.v - s.chin + 0.09) / 0.05) ** 2)
    below = 0.2 * np.sqrt(np.clip(1 - (c.u / 0.34) ** 2, 0.1, 1)) - 0.1  # neck, then the flatter shoulders
    below = below + soft(c.v - 0.62, 0.2) * (-0.15 - 0.1 * c.u**2 - below)
    return (height + soft(c.v - s.chin, 0.05) * (below - height)).astype(np.float32)


def _perfusion(c: _Canvas, s: Shape, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return perfusion and pulse delay: strong on forehead and cheeks, zero in eyes, brows and hair."""
    a = np.abs(c.u)
    forehead = np.exp(-((c.u / 0.26) ** 2) - ((c.v + 0.3) / 0.14) ** 2)
    cheeks = np.exp(-(((a - 0.18) / 0.1) ** 2) - ((c.v - 0.1) / 0.12) ** 2)
    base = rng.uniform(0.35, 0.8)
    weight = base + rng.uniform(0.3, 0.8) * forehead + rng.uniform(0.3, 0.8) * cheeks
    weight = weight * np.clip(1 + 0.22 * octaves(c.size, 5, 3, rng), 0.2, 2)
    weight = weight * np.where(c.v > s.chin, 0.5, 1.0) * c.skin_mask
    down = rng.uniform(
        -0.03, 0.05
    )  # s per box height: the pulse arrives later at the chin, or at the forehead
    delay_s = down * c.v + 0.012 * smooth_field(c.size, (4, 4), rng)
    return fig.normalise_perfusion(weight.astype(np.float32), delay_s.astype(np.float32))
