"""Notice that a crop shows another face from one frame to the next: a cut, or a swapped picture.

The same face changes little between two frames, even when it talks, turns or is shaken. The difference of two
crops is one minus the correlation of their luma, plus the change of their colour ratios. Changes of
brightness cancel out.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..types import FloatArray

_SIDE = 9  # cells of the compared pictures
_FACE = (slice(2, 7), slice(3, 6))  # rows and columns that always show skin
_NOISE_VARIANCE = 4.0  # in squared levels; a picture without contrast has no correlation to speak of
_DARK_LEVEL = 8.0  # colour ratios of darker pictures are noise
_COLOUR_WEIGHT = 3.0
_THIRDS: FloatArray = np.full(3, 1 / 3, np.float32)
_ALL: FloatArray = np.full(_SIDE * _SIDE, 1 / _SIDE**2, np.float32)
_MIDDLE: FloatArray = np.full(15, 1 / 15, np.float32)  # the cells of _FACE
# The limit of the difference grows with the time between two frames, because heads move.
_LIMIT, _LIMIT_PER_S, _LIMIT_GROWTH_S = 0.15, 1.5, 0.2


class FaceChange:
    """Compares every crop with the last one that showed the tracked face.

    After a sudden difference the last good crop is kept, so that a hand that goes away is forgiven.
    """

    def __init__(self, picture: FloatArray) -> None:
        self.changed = False  # whether the latest crop shows something else
        self._known = _Thumbnail(picture)

    def update(self, picture: FloatArray, elapsed_s: float) -> None:
        """Compare the crop (S,S,3) of the next frame, which shows the same region."""
        now = _Thumbnail(picture)
        limit = _LIMIT + _LIMIT_PER_S * min(elapsed_s, _LIMIT_GROWTH_S)
        self.changed = now.difference(self._known) > limit
        if not self.changed:
            self._known = now

    def set_region(self, picture: FloatArray) -> None:
        """Continue with another region of the latest frame."""
        if not self.changed:
            self._known = _Thumbnail(picture)


class _Thumbnail:
    """What is compared of one crop: the luma of a small picture, and its colour ratios."""

    def __init__(self, picture: FloatArray) -> None:
        size = len(picture)
        rows = _block_means(size, 1) @ picture.reshape(size, -1)  # (9,S·3)
        small = (rows @ _block_means(size, 3).T).reshape(-1, 3)  # (81,3)
        luma = small @ _THIRDS
        self._luma = luma - luma @ _ALL  # (81,) f32 without its mean
        self._variance = float(self._luma @ self._luma) / luma.size
        self._colours = _colour_ratios(small.reshape(_SIDE, _SIDE, 3))

    def difference(self, other: _Thumbnail) -> float:
        """Return how different two crops are; 0 for the same face, up to about 2."""
        scale = math.sqrt(self._variance * other._variance)
        product = float(self._luma @ other._luma) / self._luma.size
        shape = (scale - product) / (scale + _NOISE_VARIANCE)
        change = max(abs(a - b) for a, b in zip(self._colours, other._colours, strict=True))
        return shape + _COLOUR_WEIGHT * change


@lru_cache(maxsize=8)
def _block_means(size: int, channels: int) -> FloatArray:
    """Return the matrix (9·channels,size·channels) that averages blocks of interleaved channels."""
    block = max(1, size // _SIDE)
    means = np.zeros((_SIDE, channels, size, channels), np.float32)
    for cell, channel in np.ndindex(_SIDE, channels):
        means[cell, channel, block * cell : block * (cell + 1), channel] = 1 / block
    return means.reshape(_SIDE * channels, size * channels)


def _colour_ratios(picture: FloatArray) -> tuple[float, float]:
    """Return the logarithms of red and blue over green in the middle of the face."""
    middle = picture[_FACE].reshape(-1, 3)
    red, green, blue = (_MIDDLE @ middle).tolist()
    green = math.log(green + _DARK_LEVEL)
    return math.log(red + _DARK_LEVEL) - green, math.log(blue + _DARK_LEVEL) - green
