"""Pictures of where the network looked: moments in a row, or a film with the mask over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError, VideoError
from ..face.crop import Box, resize_area
from ..fileio import atomic_path
from ..measurement.attention import Attention, AttentionResult
from ..session.results import FaceResult
from ..types import ByteArray, FloatArray, Frame, FrameSource
from .plots import INK, PULSE, clearest, draw_wave, short, shown_span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CROP_PX = 220  # side of a face in the picture
HEAT = "inferno"
_FRAME_PX = 480  # frames are drawn no wider than this
_WAVE_S = 20.0  # of wave beneath them, at most


def save_png(
    path: str | Path, source: FrameSource, seen: AttentionResult, face: FaceResult, moments: Sequence[float]
) -> None:
    """Write the picture of some moments as PNG; whole or not at all."""
    attention = seen.attentions[face.id]
    frames = frames_at(frames_of(source), moments)
    with atomic_path(path) as temporary:
        figure(seen, face, attention, frames).savefig(temporary, format="png", dpi=100)


def frames_of(source: FrameSource) -> Iterator[Frame]:
    """The frames as far as they go: measuring has already told of a damaged end."""
    count = 0
    try:
        for count, frame in enumerate(source.frames(), 1):  # noqa: B007
            yield frame
    except VideoError:
        if not count:
            raise


def frames_at(frames: Iterable[Frame], moments: Sequence[float]) -> list[Frame]:
    """The frame nearest to each moment; nothing is read after the last one."""
    wanted = sorted(moments)
    found: list[Frame] = []
    before: Frame | None = None
    for frame in frames:
        while len(found) < len(wanted) and frame.t_s >= wanted[len(found)]:
            closer = before is not None and wanted[len(found)] - before.t_s < frame.t_s - wanted[len(found)]
            found.append(before if closer and before is not None else frame)
        if len(found) == len(wanted):
            break
        before = frame
    if before is not None:
        found += [before] * (len(wanted) - len(found))
    if not found:
        raise ArgumentError("frames", "none", "at least one frame")
    return found


def figure(seen: AttentionResult, face: FaceResult, attention: Attention, frames: Sequence[Frame]) -> Figure:
    """Frames, masks over the faces, the mean mask, and the wave beneath."""
    from matplotlib.figure import Figure

    masks = attention.masks.shape[1]
    columns, rows = len(frames) + 1, masks + 1
    fig = Figure(figsize=(max(2.35 * columns, 7.0), 2.35 * rows + 2.1), layout="constrained")
    name = Path(seen.result.video).name
    fig.suptitle(f"{name}  ·  {seen.result.method}  ·  {short(face)}", fontsize=11, color=INK)
    grid = fig.add_gridspec(rows + 1, columns, height_ratios=[1.0] * rows + [0.75])
    indices = [attention.at(frame.t_s) for frame in frames]
    scale = scale_of(attention)
    image = None
    for column, (frame, index) in enumerate(zip(frames, indices, strict=True)):
        box = None if index is None else box_of(attention, index)
        _draw_frame(fig.add_subplot(grid[0, column]), frame, box)
        for number in range(masks):
            axes = fig.add_subplot(grid[1 + number, column])
            if index is None or box is None:
                axes.axis("off")
                axes.text(0.5, 0.5, "no face", ha="center", va="center", color=INK)
                continue
            picture = resize_area(frame.rgb, box, CROP_PX)
            image = _draw_mask(axes, picture, attention.masks[index, number], attention.skins[index], scale)
            words = f"{100 * attention.on_skin(index)[number]:.0f} % on skin"
            axes.set_title(words, fontsize=9, color=INK)
    note = fig.add_subplot(grid[0, -1])
    note.axis("off")
    note.text(0.0, 0.5, _words(attention), fontsize=8.5, color=INK, va="center", linespacing=1.5)
    for number in range(masks):
        axes = fig.add_subplot(grid[1 + number, -1])
        mean = attention.masks[:, number].mean(0)
        image = axes.imshow(mean * mean.size, cmap=HEAT, vmin=0, vmax=scale, extent=(0, 1, 1, 0))
        axes.contour(*_skin_lines(attention.mean_skin()), levels=[0.5], colors="white", linewidths=0.8)
        which = f"mean of mask {number + 1}" if masks > 1 else "mean mask"
        axes.set_title(f"{which}, {len(attention.t_s)} pictures", fontsize=9, color=INK)
        axes.set(xticks=[], yticks=[])
        bar = fig.colorbar(image, ax=axes, fraction=0.06, pad=0.03)
        bar.set_label("times an even look", fontsize=8, color=INK)
        bar.ax.tick_params(labelsize=7, colors=INK)
    wave = fig.add_subplot(grid[-1, :])
    start_s, end_s = _span(face, frames)
    draw_wave(wave, face, start_s, end_s)
    wave.set_xlim(start_s, end_s)
    for frame in frames:
        if start_s <= frame.t_s <= end_s:
            wave.axvline(frame.t_s, color=INK, lw=0.8, ls=":")
    return fig


def _span(face: FaceResult, frames: Sequence[Frame]) -> tuple[float, float]:
    """The part of the wave to show: all moments if they are close together, or the clearest window."""
    start_s = max(face.wave.start_s, min(frame.t_s for frame in frames) - 1.0)
    end_s = max(start_s + 4.0, max(frame.t_s for frame in frames) + 1.0)
    return (start_s, end_s) if end_s - start_s <= _WAVE_S else shown_span(face, clearest(face))


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


def _draw_mask(axes: Axes, picture: ByteArray, mask: FloatArray, skin: FloatArray, scale: float) -> object:
    """A grey face with the mask as heat over it, and a line around the skin."""
    grey = picture.mean(-1)
    where = (0.0, 1.0, 1.0, 0.0)
    axes.imshow(grey, cmap="gray", vmin=0, vmax=255, extent=where)
    image = axes.imshow(
        mask * mask.size, cmap=HEAT, vmin=0, vmax=scale, alpha=0.6, extent=where, interpolation="bilinear"
    )
    axes.contour(*_skin_lines(skin), levels=[0.5], colors="white", linewidths=0.8)
    axes.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(1, 0))
    return image


def _skin_lines(skin: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    at = (np.arange(skin.shape[0]) + 0.5) / skin.shape[0]
    return at, at, skin


def _words(attention: Attention) -> str:
    area, shares = 100 * attention.mean_skin_area(), 100 * attention.mean_on_skin()
    lines = [f"{share:.0f} % of the mask{_ordinal(i, shares)} on skin," for i, share in enumerate(shares)]
    return "\n".join([*lines, f"which is {area:.0f} % of the square", "", "white line: skin"])


def _ordinal(number: int, of: FloatArray) -> str:
    return f" {number + 1}" if len(of) > 1 else ""


def scale_of(attention: Attention) -> float:
    """The top of the colour scale, in units of an even look: the same for all moments."""
    cells = attention.masks.shape[-1] * attention.masks.shape[-2]
    return max(1.5, float(np.quantile(attention.masks, 0.998)) * cells)


def box_of(attention: Attention, index: int) -> Box:
    x, y, width, height = (float(value) for value in attention.boxes[index])
    return x, y, width, height
