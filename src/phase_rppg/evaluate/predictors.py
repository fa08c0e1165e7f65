"""Classical methods and streaming networks as predictors for `evaluate_clip`.

`train.predict.NetworkPredictor` is the predictor of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from .. import registry
from ..errors import InputError, UnknownNameError
from ..face.crop import AreaCrop, to_bytes
from ..face.skin_mask import clip_skin_weights
from ..infer import onnx
from ..methods import toolbox_variants
from ..session.pulse_model import PulseModel
from ..types import ByteArray, Clip, FloatArray, RgbTrace, Waveform
from .clip_evaluation import Prediction, Predictor
from .conventions import Convention

TOOLBOX_PX = 72  # crop of classical methods in rPPG-Toolbox
TRACE_PX = 48  # image size for classical methods; the mean colour does not need more pixels
CLIP_FRAMES = 128  # clip of a streaming network in conventions that join clips: that of PHASE-Net
_CHUNK = 64  # frames that are resized together

Loader = Callable[[str], Predictor]


def load(model: str, loader: Loader | None = None) -> Predictor:
    """Return the predictor of a method, a bundled or exported network, or what `loader` opens."""
    if loader is not None:
        return loader(model)
    if model in registry.names("methods"):
        return MethodPredictor(model)
    if model not in onnx.names() and Path(model).suffix not in (".json", ".onnx"):
        raise UnknownNameError("method", model, [*onnx.names(), *registry.names("methods")])
    return StreamPredictor(onnx.load(model))


class MethodPredictor:
    """A classical method on the mean colour of the skin, or in the variant of rPPG-Toolbox."""

    size = TOOLBOX_PX

    def __init__(self, name: str) -> None:
        self.name = name
        self.method = registry.load("methods", name)

    def predict(self, pixels: ByteArray, fps: float, convention: Convention) -> Prediction:
        if convention.toolbox_methods:
            return self._variant(pixels, fps, convention.name)
        small = shrink(pixels, min(TRACE_PX, pixels.shape[1]))
        valid = np.ones(len(small), bool)
        if self.method.INPUT == "clip":
            wave: Waveform = self.method.extract(Clip(small, np.arange(len(small)) / fps, fps, valid))
        else:
            weights = clip_skin_weights(small).reshape(-1)
            colours = small.reshape(len(small), -1, 3).transpose(0, 2, 1) @ (weights / weights.sum())
            wave = self.method.extract(RgbTrace(colours, fps, 0.0, valid))
        return Prediction(np.asarray(wave.values, float))

    def _variant(self, pixels: ByteArray, fps: float, convention: str) -> Prediction:
        if self.name not in toolbox_variants.VARIANTS:
            raise InputError(
                f"{self.name}: rPPG-Toolbox has no such method, so the convention {convention} does not "
                "apply; use --convention ours"
            )
        colours = np.stack([frame.mean((0, 1)) for frame in pixels])  # (T,3)
        wave = toolbox_variants.extract(self.name, RgbTrace(colours, fps, 0.0, np.ones(len(colours), bool)))
        ends = int(np.flatnonzero(wave.valid)[-1]) + 1  # CHROM has no value after its last window
        return Prediction(np.asarray(wave.values[:ends], float), ends_early=True)


class StreamPredictor:
    """A streaming network without torch: bundled or exported."""

    def __init__(self, model: PulseModel) -> None:
        self.model, self.size = model, model.size

    def predict(self, pixels: ByteArray, fps: float, convention: Convention) -> Prediction:
        check_fps(fps, self.model.fps)
        delay = self.model.delay_frames
        if convention.joining == "stream":
            return Prediction(self._run(pixels)[delay:])
        parts = [self._run(part)[delay:] for part in clips(pixels, CLIP_FRAMES, delay)]
        return Prediction(np.concatenate(parts))

    def _run(self, pixels: ByteArray) -> FloatArray:
        model = self.model.fresh()
        parts = [
            model.step(shrink(pixels[first : first + _CHUNK], model.size))
            for first in range(0, len(pixels), _CHUNK)
        ]
        return np.concatenate(parts).astype(float)


def check_fps(fps: float, needed: float) -> None:
    """Raise an error if the recording has another frame rate than the network."""
    if abs(fps - needed) > 1e-6:
        raise InputError(f"the recordings have {fps:g} fps, but the network needs {needed:g} fps")


def clips(pixels: ByteArray, length: int, delay: int = 0) -> Iterator[ByteArray]:
    """Yield clips of `length` frames and the `delay` frames after each; a shorter recording is one clip.

    Frames at the end that do not fill a clip are dropped.
    """
    length = min(length, len(pixels) - delay)
    for first in range(0, len(pixels) - delay - length + 1, length):
        yield pixels[first : first + length + delay]


def shrink(pixels: ByteArray, size: int) -> ByteArray:
    """Return images (T,S,S,3) area-averaged to (T,size,size,3)."""
    side = pixels.shape[1]
    if side == size:
        return np.asarray(pixels)
    crop = AreaCrop((0, 0, side, side), size, pixels.shape[1:3])
    parts = [np.asarray(pixels[first : first + _CHUNK]) for first in range(0, len(pixels), _CHUNK)]
    return np.concatenate([to_bytes(crop.mean(part)) for part in parts])
