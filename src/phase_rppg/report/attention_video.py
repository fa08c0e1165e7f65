"""The video once more, with the network's mask as heat over the face and the wave beneath."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ..face.crop import Box
from ..measurement.attention import Attention, AttentionResult
from ..session.results import FaceResult
from ..types import ByteArray, FloatArray, Frame, FrameSource
from ..video.encode import write_video
from .attention_plots import HEAT, box_of, frames_of, scale_of
from .plots import draw_wave, short

PAGE_S = 10.0  # of wave at a time
STRONGEST = 0.65  # how far the hottest cell covers the picture
_STRIP = 0.3  # height of the wave, as a share of the picture's
_BOX_COLOUR = np.array([192, 57, 43], np.uint8)


def save_mp4(
    path: str | Path,
    source: FrameSource,
    seen: AttentionResult,
    face: FaceResult,
    progress: Callable[[float], None] | None = None,
) -> int:
    """Write the film and return its number of frames; the file appears when it is complete."""
    pictures = _pictures(frames_of(source), seen.attentions[face.id], face, progress)
    return write_video(path, pictures, t_s=seen.frame_times, codec="h264", crf=20, preset="veryfast")


def _pictures(
    frames: Iterator[Frame], attention: Attention, face: FaceResult, progress: Callable[[float], None] | None
) -> Iterator[ByteArray]:
    strip = Strip(face)
    top = scale_of(attention)
    for frame in frames:
        if progress is not None:
            progress(frame.t_s)
        picture = frame.rgb.copy()
        if (index := attention.at(frame.t_s)) is not None:
            even = attention.masks[index].sum(0) * attention.masks.shape[-1] * attention.masks.shape[-2]
            lay_over(picture, even / (top * len(attention.masks[index])), box_of(attention, index))
        whole = np.concatenate([picture, strip.at(frame.t_s, picture.shape)])
        height, width = whole.shape[0] // 2 * 2, whole.shape[1] // 2 * 2  # yuv420p has even sides
        yield whole[:height, :width]


def lay_over(picture: ByteArray, heat: FloatArray, box: Box) -> None:
    """Colour the square `box` of a picture, in place, by a map (h,w) of values from 0 to 1."""
    height, width = picture.shape[:2]
    x, y, side, tall = box
    left, right = max(int(np.ceil(x)), 0), min(int(np.floor(x + side)), width)
    top, bottom = max(int(np.ceil(y)), 0), min(int(np.floor(y + tall)), height)
    if left >= right or top >= bottom:
        return
    rows = _between((np.arange(top, bottom) + 0.5 - y) / tall, heat.shape[0])  # (n,h)
    columns = _between((np.arange(left, right) + 0.5 - x) / side, heat.shape[1])  # (m,w)
    value = np.clip(rows @ heat @ columns.T, 0, 1)[..., None]  # (n,m,1)
    part = picture[top:bottom, left:right]
    cover = STRONGEST * value
    part[:] = np.rint((1 - cover) * part + cover * _colours(value[..., 0]))
    thick = max(1, round(side / 150))
    for edge in (part[:thick], part[-thick:], part[:, :thick], part[:, -thick:]):
        edge[:] = _BOX_COLOUR


def _between(place: FloatArray, cells: int) -> FloatArray:
    """Linear interpolation as a matrix (n,cells): places 0–1, values at the middles of the cells."""
    at = np.clip(place * cells - 0.5, 0, cells - 1)
    weights: FloatArray = np.maximum(0.0, 1 - np.abs(at[:, None] - np.arange(cells)[None, :]))
    return weights


def _colours(value: FloatArray) -> FloatArray:
    from matplotlib import colormaps

    colours: FloatArray = colormaps[HEAT](value)[..., :3] * 255
    return colours


class Strip:
    """The wave beneath the film, a page at a time, with a line at the present moment."""

    def __init__(self, face: FaceResult) -> None:
        self.face = face
        self._page: tuple[int, ByteArray, float, float] | None = None  # number, picture, left, right

    def at(self, t_s: float, shape: tuple[int, ...]) -> ByteArray:
        """(h,w,3) u8, as wide as the picture of that shape."""
        number = int(t_s // PAGE_S)
        if self._page is None or self._page[0] != number:
            self._page = (number, *self._draw(number, shape[1], max(96, round(_STRIP * shape[0]))))
        _, page, left, right = self._page
        strip = page.copy()
        x = round(left + (right - left) * (t_s / PAGE_S - number))
        strip[:, max(x - 1, 0) : x + 1] = _BOX_COLOUR
        return strip

    def _draw(self, number: int, width: int, height: int) -> tuple[ByteArray, float, float]:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        dpi = 100 if width >= 400 else 65
        figure = Figure(figsize=((width + 0.1) / dpi, (height + 0.1) / dpi), dpi=dpi, layout="constrained")
        axes = figure.add_subplot()
        start_s = number * PAGE_S
        draw_wave(axes, self.face, start_s, start_s + PAGE_S)
        axes.set(xlim=(start_s, start_s + PAGE_S), ylabel="", xlabel="")
        axes.set_title(short(self.face), fontsize=8, loc="left")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.array(canvas.buffer_rgba())[..., :3]
        box = axes.get_window_extent()
        return pixels, float(box.x0), float(box.x1)
