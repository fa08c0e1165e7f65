"""Figures of the attention masks of a network at selected times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError, VideoError
from ..face.crop import Box, resize_area
from ..measurement.attention import Attention, AttentionResult
from ..session.results import FaceResult
from ..types import ByteArray, FloatArray, Frame, FrameSource
from .figure_file import save_figure
from .plot_style import INK, PULSE, styled
from .plots import best_window, draw_wave, plotted_interval, short_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CROP_PX = 220  # side of a face in the figure
COLOURMAP = "inferno"
_FRAME_PX = 480  # largest side of a drawn frame
_MAX_WAVE_S = 20.0  # longest waveform below the masks


def save(
    path: str | Path, source: FrameSource, recorded: AttentionResult, face: FaceResult, at_s: Sequence[float]
) -> None:
    """Write the masks at the times `at_s` as PNG, SVG or PDF, by the suffix of the path."""
    attention = recorded.attentions[face.id]
    frames = frames_at(readable_frames(source), at_s)
    save_figure(figure(recorded, face, attention, frames), path, dpi=100)


def readable_frames(source: FrameSource) -> Iterator[Frame]:
    """Yield frames up to the first damaged one; the measurement has already reported the damage."""
    count = 0
    try:
        for count, frame in enumerate(source.frames(), 1):  # noqa: B007
            yield frame
    except VideoError:
        if not count:
            raise


def frames_at(frames: Iterable[Frame], at_s: Sequence[float]) -> list[Frame]:
    """Return the frame nearest to each time; frames after the last time are not read."""
    times_s = sorted(at_s)
    found: list[Frame] = []
    previous: Frame | None = None
    for frame in frames:
        while len(found) < len(times_s) and frame.t_s >= times_s[len(found)]:
            t_s = times_s[len(found)]
            closer = previous is not None and t_s - previous.t_s < frame.t_s - t_s
            found.append(previous if closer and previous is not None else frame)
        if len(found) == len(times_s):
            break
        previous = frame
    if previous is not None:
        found += [previous] * (len(times_s) - len(found))
    if not found:
        raise ArgumentError("frames", "none", "at least one frame")
    return found


@styled
def figure(
    recorded: AttentionResult, face: FaceResult, attention: Attention, frames: Sequence[Frame]
) -> Figure:
    """Return a figure with frames, masks over the faces, the mean mask and the waveform."""
    from matplotlib.figure import Figure

    masks = attention.masks.shape[1]
    columns, rows = len(frames) + 1, masks + 1
    fig = Figure(figsize=(max(2.35 * columns, 7.0), 2.35 * rows + 2.1), layout="constrained")
    name = Path(recorded.result.video).name
    fig.suptitle(f"{name}  ·  {recorded.result.method}  ·  {short_text(face)}", fontsize=11, color=INK)
    grid = fig.add_gridspec(rows + 1, columns, height_ratios=[1.0] * rows + [0.75])
    indices = [attention.index_at(frame.t_s) for frame in frames]
    scale = colour_scale_max(attention)
    for column, (frame, index) in enumerate(zip(frames, indices, strict=True)):
        box = None if index is None else face_box(attention, index)
        _draw_frame(fig.add_subplot(grid[0, column]), frame, box)
        for number in range(masks):
            axes = fig.add_subplot(grid[1 + number, column])
            if index is None or box is None:
                axes.axis("off")
                axes.text(0.5, 0.5, "no face", ha="center", va="center", color=INK)
                continue
            crop = resize_area(frame.rgb, box, CROP_PX)
            _draw_mask(axes, crop, attention.masks[index, number], attention.skins[index], scale)
            share = f"{100 * attention.on_skin(index)[number]:.0f} % on skin"
            axes.set_title(share, fontsize=9, color=INK)
    note = fig.add_subplot(grid[0, -1])
    note.axis("off")
    note.text(0.0, 0.5, _caption(attention), fontsize=8.5, color=INK, va="center", linespacing=1.5)
    for number in range(masks):
        _draw_mean_mask(fig, fig.add_subplot(grid[1 + number, -1]), attention, number, scale)
    wave = fig.add_subplot(grid[-1, :])
    start_s, end_s = _wave_interval(face, frames)
    draw_wave(wave, face, start_s, end_s)
    wave.set_xlim(start_s, end_s)
    for frame in frames:
        if start_s <= frame.t_s <= end_s:
            wave.axvline(frame.t_s, color=INK, lw=0.8, ls=":")
    return fig


def _wave_interval(face: FaceResult, frames: Sequence[Frame]) -> tuple[float, float]:
    """Return the plotted interval: all frames if they are close together, otherwise the best window."""
    start_s = max(face.wave.start_s, min(frame.t_s for frame in frames) - 1.0)
    end_s = max(start_s + 4.0, max(frame.t_s for frame in frames) + 1.0)
    if end_s - start_s <= _MAX_WAVE_S:
        return start_s, end_s
    return plotted_interval(face, best_window(face))


def _draw_frame(axes: Axes, frame: Frame, box: Box | None) -> None:
    from matplotlib.patches import Rectangle

    height, width = frame.rgb.shape[:2]
    step = max(1, -(-max(height, width) // _FRAME_PX))
    axes.imshow(frame.rgb[::step, ::step], extent=(0, width, height, 0))
    if box is not None:
        left, top = max(box[0], 1.0), max(box[1], 1.0)
        right, bottom = min(box[0] + box[2], width - 1.0), min(box[1] + box[3], height - 1.0)
        axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, color=PULSE, lw=1.5))
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    axes.set_title(f"{frame.t_s:.1f} s", fontsize=9, color=INK)


def _draw_mask(axes: Axes, crop: ByteArray, mask: FloatArray, skin: FloatArray, scale: float) -> None:
    """Draw a face in grey, the mask as a heat map over it, and the outline of the skin."""
    extent = (0.0, 1.0, 1.0, 0.0)
    axes.imshow(crop.mean(-1), cmap="gray", vmin=0, vmax=255, extent=extent)
    axes.imshow(
        mask * mask.size, cmap=COLOURMAP, vmin=0, vmax=scale, alpha=0.6, extent=extent,
        interpolation="bilinear",
    )  # fmt: skip
    axes.contour(*_skin_contour(skin), levels=[0.5], colors="white", linewidths=0.8)
    axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(1, 0))


def _draw_mean_mask(fig: Figure, axes: Axes, attention: Attention, number: int, scale: float) -> None:
    """Draw the mean of a mask over all frames, with its colour bar."""
    mean = attention.masks[:, number].mean(0)
    image = axes.imshow(mean * mean.size, cmap=COLOURMAP, vmin=0, vmax=scale, extent=(0, 1, 1, 0))
    axes.contour(*_skin_contour(attention.mean_skin()), levels=[0.5], colors="white", linewidths=0.8)
    name = f"mean of mask {number + 1}" if attention.masks.shape[1] > 1 else "mean mask"
    axes.set_title(f"{name}, {len(attention.t_s)} frames", fontsize=9, color=INK)
    axes.set(xticks=[], yticks=[])
    bar = fig.colorbar(image, ax=axes, fraction=0.06, pad=0.03)
    bar.set_label("relative to a uniform mask", fontsize=8, color=INK)
    bar.ax.tick_params(labelsize=7, colors=INK)


def _skin_contour(skin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    centres = (np.arange(skin.shape[0]) + 0.5) / skin.shape[0]
    return centres, centres, skin


def _caption(attention: Attention) -> str:
    area, shares = 100 * attention.mean_skin_area(), 100 * attention.mean_on_skin()
    numbers = [f" {i + 1}" if len(shares) > 1 else "" for i in range(len(shares))]
    lines = [f"mask{number}: {share:.0f} % on skin" for number, share in zip(numbers, shares, strict=True)]
    return "\n".join([*lines, f"skin: {area:.0f} % of the crop", "", "white line: skin"])


def colour_scale_max(attention: Attention) -> float:
    """Return the maximum of the colour scale, relative to a uniform mask; it is the same for all frames."""
    cells = attention.masks.shape[-1] * attention.masks.shape[-2]
    return max(1.5, float(np.quantile(attention.masks, 0.998)) * cells)


def face_box(attention: Attention, index: int) -> Box:
    """Return the crop of the face as (x, y, width, height) in pixels."""
    x, y, width, height = (float(value) for value in attention.boxes[index])
    return x, y, width, height
