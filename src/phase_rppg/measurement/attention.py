"""Record the attention masks of a network while it measures a video."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UnknownNameError
from ..face.crop import AreaCrop, Box
from ..infer.onnx import StepModel, load
from ..picture import AnyFrame
from ..registry import DEFAULT_METHOD
from ..session.config import SessionConfig
from ..session.results import FaceResult, Result
from ..session.session import Session
from ..types import ByteArray, FloatArray, FrameSource
from .measure import refuse_readings
from .offline import measure

_MEAN_COUNT = 300  # masks that are averaged for a mean
_RECENT_FRAMES = 32  # more than the batch of the network
MAX_DISTANCE_S = 0.3  # largest distance between a time and its mask


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """The attention masks of one face, on the clock of the network."""

    t_s: FloatArray  # (N,) increasing
    masks: FloatArray  # (N,M,h,w) each sums to 1
    boxes: FloatArray  # (N,4) the square of each mask: x, y, width, height in pixels
    skins: tuple[FloatArray, ...]  # N skin masks (S,S) of that square, 0–1

    def index_at(self, t_s: float) -> int | None:
        """Return the index of the mask nearest to a time; None if the face was not seen then."""
        index = int(np.argmin(np.abs(self.t_s - t_s)))
        return index if abs(self.t_s[index] - t_s) <= MAX_DISTANCE_S else None

    def on_skin(self, index: int) -> FloatArray:
        """Return the share (M,) of the sum of each mask that lies on skin."""
        mask = self.masks[index]
        skin = area_mean(self.skins[index], mask.shape[-1])
        share: FloatArray = (mask * skin).sum((-1, -2))
        return share

    def skin_area(self, index: int) -> float:
        """Return the share of the square that is skin, which is `on_skin` of a uniform mask."""
        return float(self.skins[index].mean())

    def mean_on_skin(self) -> FloatArray:
        """Return the mean of `on_skin` (M,) over the recording."""
        mean: FloatArray = np.mean([self.on_skin(i) for i in self._sampled()], axis=0)
        return mean

    def mean_skin_area(self) -> float:
        """Return the mean of `skin_area` over the recording."""
        return float(np.mean([self.skin_area(i) for i in self._sampled()]))

    def mean_skin(self) -> FloatArray:
        """Return the mean skin mask (S,S) over the recording."""
        mean: FloatArray = np.mean([self.skins[i] for i in self._sampled()], axis=0)
        return mean

    def _sampled(self) -> range:
        """Return the indices of about `_MEAN_COUNT` masks."""
        return range(0, len(self.t_s), max(1, len(self.t_s) // _MEAN_COUNT))

    def spaced_times(self, count: int) -> list[float]:
        """Return evenly spaced times at which the face was seen."""
        positions = (np.arange(count) + 0.5) / count * len(self.t_s)
        return [float(self.t_s[int(position)]) for position in positions]


@dataclass(frozen=True, slots=True, eq=False)
class AttentionResult:
    """The result of a video with the attention masks of each face."""

    result: Result
    attentions: dict[int, Attention]  # by the id of the face
    frame_times: FloatArray  # (F,) of the video

    def face(self, which: str) -> FaceResult | None:
        """Return the face with an id, or the largest; None if there is no face."""
        faces = [face for face in self.result.faces if face.id in self.attentions]
        if not faces:
            return None
        if which == "largest":
            return faces[0]
        found = {str(face.id): face for face in faces}
        if which not in found:
            raise UnknownNameError("face", which, ["largest", *found])
        return found[which]


def record_attention(
    video: FrameSource,
    weights: str | Path = DEFAULT_METHOD,
    *,
    progress: Callable[[float], None] | None = None,
) -> AttentionResult:
    """Measure a video with a network and record its attention masks; `weights` as in `infer.load`."""
    config = SessionConfig(model=AttentionRecorder(load(weights)))
    recording = _Recording()
    result = measure(video, config, progress=progress, on_frame=recording.add)
    result = refuse_readings(result) if getattr(video, "clock_is_guess", False) else result
    return AttentionResult(result, recording.attentions(), np.array(recording.frame_times))


class AttentionRecorder:
    """A network that keeps its attention masks until `take` removes them."""

    def __init__(self, model: StepModel) -> None:
        self._model, self._masks = model, list[FloatArray]()
        self.name, self.fps, self.size = model.name, model.fps, model.size
        self.delay_frames = model.delay_frames

    def fresh(self) -> AttentionRecorder:
        return AttentionRecorder(self._model.fresh())

    def step(self, crops: ByteArray) -> FloatArray:
        wave, masks = self._model.step_with_masks(crops)
        self._masks.extend(masks)
        return wave

    def take(self) -> list[FloatArray]:
        """Return the masks (M,h,w) since the last call and remove them."""
        taken, self._masks = self._masks, []
        return taken


class _Recording:
    """The masks, boxes and skin masks of all faces, frame by frame."""

    def __init__(self) -> None:
        self.frame_times: list[float] = []
        self._rows: dict[int, list[tuple[float, FloatArray, Box, FloatArray]]] = {}
        # Box and skin mask of the last frames, because the network processes several crops at once.
        self._recent: dict[int, deque[tuple[float, Box, FloatArray]]] = {}

    def add(self, session: Session, frame: AnyFrame) -> None:
        """Record the masks that the network has computed since the previous frame."""
        self.frame_times.append(frame.t_s)
        for face in session.present:
            recent = self._recent.setdefault(face.track.id, deque(maxlen=_RECENT_FRAMES))
            recent.append((frame.t_s, face.sampler.box, _as_share(face.sampler.mask)))
            network = face.network
            if network is None or not isinstance(network.model, AttentionRecorder):
                continue
            masks = network.model.take()
            rows = self._rows.setdefault(face.track.id, [])
            for tick, mask in enumerate(masks, network.done_tick - len(masks)):
                t_s = face.state.clock.time_s(tick)
                _, box, share = min(recent, key=lambda entry: abs(entry[0] - t_s))
                rows.append((t_s, mask.astype(np.float16), box, share))

    def attentions(self) -> dict[int, Attention]:
        """Return the masks of each face."""
        found = {}
        for face, rows in self._rows.items():
            if rows:
                t_s, masks, boxes, skins = zip(*rows, strict=True)
                stacked = np.stack(masks).astype(np.float32)
                found[face] = Attention(np.array(t_s), stacked, np.array(boxes), skins)
        return found


def _as_share(weights: FloatArray) -> FloatArray:
    """Scale weights so that their maximum is 1."""
    return (weights / max(float(weights.max()), 1e-12)).astype(np.float16)


def area_mean(picture: FloatArray, side: int) -> FloatArray:
    """Resize a square map (S,S) to (side,side) by area averaging."""
    size = picture.shape[0]
    crop = AreaCrop((0.0, 0.0, float(size), float(size)), side, picture.shape)
    return crop.mean(np.repeat(picture[..., None], 3, axis=2))[..., 0]
