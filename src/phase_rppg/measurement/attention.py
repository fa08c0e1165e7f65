"""Where the network looked: its masks over time, recorded while a video is measured as always."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UnknownNameError
from ..face.crop import AreaCrop, Box
from ..infer.onnx import StepModel, load
from ..registry import DEFAULT_METHOD
from ..session.config import SessionConfig
from ..session.results import FaceResult, Result
from ..session.session import Session
from ..types import ByteArray, FloatArray, Frame
from ..video.decode import VideoFile
from .measure import without_readings
from .offline import measure

_ENOUGH = 300
_PLACES = 32  # frames: more than a network is asked about at once
NEAR_S = 0.3  # a mask this far from a moment still belongs to it


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """What the network looked at in one face, on its own clock."""

    t_s: FloatArray  # (N,) rising
    masks: FloatArray  # (N,M,h,w) each sums to 1
    boxes: FloatArray  # (N,4) the square that the mask covers: x, y, width, height in pixels
    skins: tuple[FloatArray, ...]  # N times (S,S): how much each cell of that square is skin, 0–1

    def at(self, t_s: float) -> int | None:
        """The number of the mask at a moment; None when the face was not seen then."""
        index = int(np.argmin(np.abs(self.t_s - t_s)))
        return index if abs(self.t_s[index] - t_s) <= NEAR_S else None

    def on_skin(self, index: int) -> FloatArray:
        """The share (M,) of each mask's mass that lies on skin."""
        mask = self.masks[index]
        skin = area_mean(self.skins[index], mask.shape[-1])
        share: FloatArray = (mask * skin).sum((-1, -2))
        return share

    def skin_area(self, index: int) -> float:
        """The share of the square that is skin: what a mask that looks everywhere would score."""
        return float(self.skins[index].mean())

    def mean_on_skin(self) -> FloatArray:
        """`on_skin` (M,) over the whole recording."""
        mean: FloatArray = np.mean([self.on_skin(i) for i in self._some()], axis=0)
        return mean

    def mean_skin_area(self) -> float:
        return float(np.mean([self.skin_area(i) for i in self._some()]))

    def mean_skin(self) -> FloatArray:
        """How much each cell is skin (S,S), over the whole recording."""
        mean: FloatArray = np.mean([self.skins[i] for i in self._some()], axis=0)
        return mean

    def _some(self) -> range:
        """Enough pictures for a mean."""
        return range(0, len(self.t_s), max(1, len(self.t_s) // _ENOUGH))

    def moments(self, count: int) -> list[float]:
        """Evenly spaced moments in which the face was seen."""
        places = (np.arange(count) + 0.5) / count * len(self.t_s)
        return [float(self.t_s[int(place)]) for place in places]


@dataclass(frozen=True, slots=True, eq=False)
class AttentionResult:
    """A measured video, and where the network looked in each of its faces."""

    result: Result
    attentions: dict[int, Attention]  # by the number of the face
    frame_times: FloatArray  # (F,) of the video

    def face(self, which: str) -> FaceResult | None:
        """The face called "largest", or by its number; None when there is no face at all."""
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
    video: VideoFile,
    weights: str | Path = DEFAULT_METHOD,
    *,
    progress: Callable[[float], None] | None = None,
) -> AttentionResult:
    """Measure a video with a network and keep its masks; `weights` as in `infer.load`."""
    config = SessionConfig(model=AttentionRecorder(load(weights)))
    record = _Record()
    result = measure(video, config, progress=progress, watch=record.take)
    result = without_readings(result) if video.clock_is_guess else result
    return AttentionResult(result, record.attentions(), np.array(record.frame_times))


class AttentionRecorder:
    """A network that keeps its masks until they are taken."""

    def __init__(self, model: StepModel) -> None:
        self._model, self._masks = model, list[FloatArray]()
        self.name, self.fps, self.size = model.name, model.fps, model.size
        self.delay_frames = model.delay_frames

    def fresh(self) -> AttentionRecorder:
        return AttentionRecorder(self._model.fresh())

    def step(self, crops: ByteArray) -> FloatArray:
        wave, masks = self._model.look(crops)
        self._masks.extend(masks)
        return wave

    def take(self) -> list[FloatArray]:
        """The masks (M,h,w) of the last pictures, each once."""
        taken, self._masks = self._masks, []
        return taken


class _Record:
    """Writes down where the network looked, after each frame of a session."""

    def __init__(self) -> None:
        self.frame_times: list[float] = []
        self._rows: dict[int, list[tuple[float, FloatArray, Box, FloatArray]]] = {}
        # Where each face was in the last frames: a network answers for several pictures at once.
        self._places: dict[int, deque[tuple[float, Box, FloatArray]]] = {}

    def take(self, session: Session, frame: Frame) -> None:
        self.frame_times.append(frame.t_s)
        for person in session.present:
            places = self._places.setdefault(person.track.id, deque(maxlen=_PLACES))
            places.append((frame.t_s, person.meter.box, _as_share(person.meter.skin)))
            masks = person.model.take() if isinstance(person.model, AttentionRecorder) else []
            rows = self._rows.setdefault(person.track.id, [])
            for tick, mask in enumerate(masks, person.answered - len(masks)):
                t_s = person.clock.time_s(tick)
                _, box, share = min(places, key=lambda place: abs(place[0] - t_s))
                rows.append((t_s, mask.astype(np.float16), box, share))

    def attentions(self) -> dict[int, Attention]:
        found = {}
        for face, rows in self._rows.items():
            if rows:
                t_s, masks, boxes, skins = zip(*rows, strict=True)
                stacked = np.stack(masks).astype(np.float32)
                found[face] = Attention(np.array(t_s), stacked, np.array(boxes), skins)
        return found


def _as_share(weights: FloatArray) -> FloatArray:
    """Weights that sum to 1 as values from 0 to 1."""
    return (weights / max(float(weights.max()), 1e-12)).astype(np.float16)


def area_mean(picture: FloatArray, side: int) -> FloatArray:
    """A square map (S,S) as (side,side), every new cell the mean of what it covers."""
    size = picture.shape[0]
    crop = AreaCrop((0.0, 0.0, float(size), float(size)), side, picture.shape)
    return crop.mean(np.repeat(picture[..., None], 3, axis=2))[..., 0]
