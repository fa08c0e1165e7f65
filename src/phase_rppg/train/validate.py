"""How well a network reads whole clips it has not learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..nn.weights import Summed
from ..signal.rate import spectral_peak
from ..types import ByteArray, FloatArray
from .loader import validation_clip
from .losses import correlation
from .sources import ClipSource

WARMUP_S = 1.0  # the network has seen too little


@dataclass(frozen=True)
class Score:
    """Over the clips with a pulse."""

    pearson: float  # mean correlation with the true wave
    mae_bpm: float  # mean error of the rate over the clip
    within_5: float  # 0–1: share of clips within 5 bpm

    @property
    def value(self) -> float:
        """What "best" is chosen by: error of the rate, and correlation where rates tie."""
        return self.mae_bpm - self.pearson


def choose(sources: Sequence[ClipSource], count: int) -> list[tuple[ClipSource, int]]:
    """At most `count` clips, evenly from all sources."""
    every = [(source, index) for source in sources for index in range(len(source))]
    picks = np.unique(np.linspace(0, len(every) - 1, min(count, len(every))).astype(int))
    return [every[i] for i in picks]


@torch.no_grad()
def validate(
    network: nn.Module,
    clips: Sequence[tuple[ClipSource, int]],
    size: int,
    fps: float,
    *,
    delay_frames: int,
    frames: int,
    summed: bool = False,
) -> Score | None:
    """Read every clip; None if none has a pulse. Networks that cannot stream read `frames` at a time.

    With `summed` the network gives the slope of the pulse, which is summed up.
    """
    training = network.training
    network.eval()
    errors, correlations = [], []
    skip = delay_frames + round(WARMUP_S * fps)
    for source, index in clips:
        pixels, wave = validation_clip(source, index, size, fps)
        truth = wave[skip - delay_frames : len(wave) - delay_frames]
        true = bpm_of(truth, fps)
        if true is None:
            continue
        read = _read(Summed(network) if summed else network, pixels, frames)[:, skip:]
        truth = truth[: read.shape[1]]
        correlations.append(float(correlation(read, torch.from_numpy(truth[None]))[0]))
        answer = bpm_of(read[0].numpy().astype(float), fps)
        errors.append(abs((answer if answer is not None else 0.0) - true))
    network.train(training)
    if not errors:
        return None
    return Score(float(np.mean(correlations)), float(np.mean(errors)), float(np.mean(np.array(errors) <= 5)))


def _read(network: nn.Module, pixels: ByteArray, frames: int) -> Tensor:
    """The wave (1,T) of a clip; a network of fixed length leaves out what does not fill its last clip."""
    whole = torch.from_numpy(pixels[None])
    if streams(network) or pixels.shape[0] < frames:
        wave: Tensor = network(whole).wave
        return wave
    parts = [network(part).wave for part in whole.split(frames, 1) if part.shape[1] == frames]
    return torch.cat(parts, 1)


def streams(network: nn.Module) -> bool:
    """Whether a clip of any length can be read at once."""
    return hasattr(getattr(network, "network", network), "step")


def bpm_of(wave: FloatArray, fps: float) -> float | None:
    """The rate of a wave, None if it has none."""
    peak = spectral_peak(np.asarray(wave, float), fps)
    return None if peak is None else float(peak.bpm)
