"""Validation: correlation and heart-rate error on whole clips that are not used for training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..nn.output import IntegratedNetwork
from ..signal.rate import spectral_peak
from ..types import ByteArray, FloatArray
from .checkpoint import NetworkSpec
from .loader import validation_clip
from .losses import correlation
from .sources import ClipSource

WARMUP_S = 1.0  # at the start of a clip, without validation: too few frames precede it


@dataclass(frozen=True)
class Score:
    """The validation score over all clips with a pulse."""

    pearson: float  # mean correlation with the reference
    mae_bpm: float  # mean absolute error of the heart rate
    within_5: float  # 0–1: share of clips with an error of at most 5 bpm

    @property
    def value(self) -> float:
        """The number that selects the best checkpoint, lower is better: rate error minus correlation."""
        return self.mae_bpm - self.pearson


def choose_clips(sources: Sequence[ClipSource], count: int) -> list[tuple[ClipSource, int]]:
    """Return at most `count` clips, evenly spaced over all sources."""
    every = [(source, index) for source in sources for index in range(len(source))]
    picks = np.unique(np.linspace(0, len(every) - 1, min(count, len(every))).astype(int))
    return [every[i] for i in picks]


@torch.no_grad()
def validate(network: nn.Module, clips: Sequence[tuple[ClipSource, int]], spec: NetworkSpec) -> Score | None:
    """Score a network on whole clips; None if no clip has a pulse.

    A network that does not stream processes `spec.frames` frames at a time.
    """
    fps, delay_frames = spec.fps, spec.delay_frames
    whole = IntegratedNetwork(network) if spec.target == "difference" else network
    training = network.training
    network.eval()
    errors, correlations = [], []
    skip = delay_frames + round(WARMUP_S * fps)
    for source, index in clips:
        pixels, reference = validation_clip(source, index, spec.size, fps)
        truth = reference[skip - delay_frames : len(reference) - delay_frames]
        true = bpm_of(truth, fps)
        if true is None:
            continue
        wave = _predict(whole, pixels, spec.frames)[:, skip:]
        truth = truth[: wave.shape[1]]
        correlations.append(float(correlation(wave, torch.from_numpy(truth[None]))[0]))
        found = bpm_of(wave[0].numpy().astype(float), fps)
        errors.append(abs((found if found is not None else 0.0) - true))
    network.train(training)
    if not errors:
        return None
    return Score(float(np.mean(correlations)), float(np.mean(errors)), float(np.mean(np.array(errors) <= 5)))


def _predict(network: nn.Module, pixels: ByteArray, frames: int) -> Tensor:
    """Return the wave (1,T); a network of fixed length drops the frames that do not fill a clip."""
    parameter = next(network.parameters(), None)
    device = torch.device("cpu") if parameter is None else parameter.device
    whole = torch.from_numpy(pixels[None]).to(device)
    if streams(network) or pixels.shape[0] < frames:
        wave: Tensor = network(whole).wave
        return wave.cpu()
    parts = [network(part).wave for part in whole.split(frames, 1) if part.shape[1] == frames]
    return torch.cat(parts, 1).cpu()


def streams(network: nn.Module) -> bool:
    """Whether the network accepts clips of any length."""
    return hasattr(getattr(network, "network", network), "step")


def bpm_of(wave: FloatArray, fps: float) -> float | None:
    """Return the heart rate of a wave, or None without a spectral peak."""
    peak = spectral_peak(np.asarray(wave, float), fps)
    return None if peak is None else float(peak.bpm)
