"""The colour of skin from melanin and blood, and the amplitude of the pulse in each channel.

Reflectance falls exponentially with each absorber (Beer–Lambert):
    albedo = dermis · exp(−m·melanin − b·blood)
The pulse changes b, so the relative change of each channel follows the blood-volume vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import FloatArray

DERMIS = np.array([0.74, 0.54, 0.44], np.float32)  # linear-light RGB without melanin
MELANIN = np.array([1.85, 2.25, 2.5], np.float32)  # absorbance from type I (0) to the darkest (1)
BLOOD = np.array([0.12, 0.75, 0.55], np.float32)  # static redness
BLOOD_VOLUME = np.array([0.33, 0.77, 0.53], np.float32)  # relative pulsation of R, G, B (normalised)
# Share of melanin of the six Fitzpatrick types: lowest and highest.
MELANIN_OF_TYPE = ((0.0, 0.07), (0.07, 0.17), (0.17, 0.32), (0.32, 0.5), (0.5, 0.74), (0.74, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Skin:
    """One person's skin."""

    fitzpatrick: int  # 1–6
    melanin: float  # 0–1
    albedo: FloatArray  # (3,) linear light
    pulsation: FloatArray  # (3,) relative AC per channel; the green one is 1
    amplitude: float  # peak-to-peak AC/DC of green in linear light where perfusion is 1


def make_skin(fitzpatrick: int, green_ac: float, spread: float, rng: np.random.Generator) -> Skin:
    """Draw skin of one Fitzpatrick type; `green_ac` is the amplitude of type I, which melanin reduces."""
    low, high = MELANIN_OF_TYPE[fitzpatrick - 1]
    melanin = float(rng.uniform(low, high))
    blood = float(rng.normal(0, 0.18))
    tint = rng.normal(0, 0.015, 3).astype(np.float32)
    albedo = DERMIS * np.exp(-melanin * MELANIN - blood * BLOOD + tint)
    vector = BLOOD_VOLUME * np.exp(rng.normal(0, spread, 3).astype(np.float32))
    amplitude = green_ac * float(np.exp(-0.8 * melanin))
    return Skin(fitzpatrick, melanin, albedo.astype(np.float32), vector / vector[1], amplitude)
