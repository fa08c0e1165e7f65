"""A copy of the video with the attention mask over the face and the waveform below."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ..face.crop import Box
from ..measurement.attention import Attention, AttentionResult
from ..session.results import FaceResult
from ..types import ByteArray, FloatArray, Frame, FrameSource
from ..video.encode import write_video
from .attention_plots import COLOURMAP, colour_scale_max, face_box, readable_frames
from .plots import draw_wave, short_text

PAGE_S = 10.0  # length of the waveform that is visible at a time
MAX_OPACITY = 0.65  # of the heat map, at the top of the colour scale
_STRIP_HEIGHT = 0.3  # of the waveform, relative to the frame
_BOX_COLOUR = np.array([192, 57, 43], np.uint8)


def save_mp4(
    path: str | Path,
    source: FrameSource,
    recorded: AttentionResult,
    face: FaceResult,
    progress: Callable[[float], None] | None = None,
) -> int:
    """Write the video atomically and return its number of frames."""
    images = _images(readable_frames(source), recorded.attentions[face.id], face, progress)
    return write_video(path, images, t_s=recorded.frame_times, codec="h264", crf=20, preset="veryfast")


def _images(
    frames: Iterator[Frame], attention: Attention, face: FaceResult, progress: Callable[[float], None] | None
) -> Iterator[ByteArray]:
    strip = WaveformStrip(face)
    scale = colour_scale_max(attention)
    for frame in frames:
        if progress is not None:
            progress(frame.t_s)
        image = frame.rgb.copy()
        if (index := attention.index_at(frame.t_s)) is not None:
            relative = attention.masks[index].sum(0) * attention.masks.shape[-1] * attention.masks.shape[-2]
            overlay_heatmap(
                image, relative / (scale * len(attention.masks[index])), face_box(attention, index)
            )
        stacked = np.concatenate([image, strip.at(frame.t_s, image.shape)])
        height, width = stacked.shape[0] // 2 * 2, stacked.shape[1] // 2 * 2  # yuv420p needs even sides
        yield stacked[:height, :width]


def overlay_heatmap(image: ByteArray, heat: FloatArray, box: Box) -> None:
    """Blend a heat map (h,w) with values from 0 to 1 into the area `box` of an image, in place."""
    height, width = image.shape[:2]
    x, y, side, tall = box
    left, right = max(int(np.ceil(x)), 0), min(int(np.floor(x + side)), width)
    top, bottom = max(int(np.ceil(y)), 0), min(int(np.floor(y + tall)), height)
    if left >= right or top >= bottom:
        return
    rows = _interpolation_matrix((np.arange(top, bottom) + 0.5 - y) / tall, heat.shape[0])  # (n,h)
    columns = _interpolation_matrix((np.arange(left, right) + 0.5 - x) / side, heat.shape[1])  # (m,w)
    value = np.clip(rows @ heat @ columns.T, 0, 1)[..., None]  # (n,m,1)
    area = image[top:bottom, left:right]
    opacity = MAX_OPACITY * value
    area[:] = np.rint((1 - opacity) * area + opacity * _colours(value[..., 0]))
    line_px = max(1, round(side / 150))
    for edge in (area[:line_px], area[-line_px:], area[:, :line_px], area[:, -line_px:]):
        edge[:] = _BOX_COLOUR


def _interpolation_matrix(position: FloatArray, cells: int) -> FloatArray:
    """Return the matrix (n,cells) that interpolates cell centres linearly at positions (n,) from 0 to 1."""
    at = np.clip(position * cells - 0.5, 0, cells - 1)
    weights: FloatArray = np.maximum(0.0, 1 - np.abs(at[:, None] - np.arange(cells)[None, :]))
    return weights


def _colours(value: FloatArray) -> FloatArray:
    from matplotlib import colormaps

    colours: FloatArray = colormaps[COLOURMAP](value)[..., :3] * 255
    return colours


class WaveformStrip:
    """The waveform below the video, one page at a time, with a line at the current time."""

    def __init__(self, face: FaceResult) -> None:
        self.face = face
        self._page: tuple[int, ByteArray, float, float] | None = None  # number, image, left, right

    def at(self, t_s: float, shape: tuple[int, ...]) -> ByteArray:
        """Return the strip (h,w,3) u8 at `t_s`, as wide as a frame of the given shape."""
        number = int(t_s // PAGE_S)
        if self._page is None or self._page[0] != number:
            self._page = (number, *self._draw(number, shape[1], max(96, round(_STRIP_HEIGHT * shape[0]))))
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
        axes.set_title(short_text(self.face), fontsize=8, loc="left")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.array(canvas.buffer_rgba())[..., :3]
        box = axes.get_window_extent()
        return pixels, float(box.x0), float(box.x1)
