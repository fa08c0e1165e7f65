"""The heart rate over time: a hidden path through the spectra of overlapping windows.

Each window gives evidence over all rates; the heart changes its rate slowly. A Bayesian filter joins both,
so a window whose line is lost is carried by its neighbours, and a stray line at the double or half rate has
to speak against them. It is causal: what comes later never changes what was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..types import FloatArray
from .constants import BAND_HZ
from .rate import Spectrum

GRID_BPM: FloatArray = np.arange(40.0, 200.5, 1.0)  # the states of the path
MODEL_SPREAD_BPM = 5.0  # "the same rate" for `support`, as P(|error| ≤ 5 bpm)


@dataclass(frozen=True, slots=True)
class TrackModel:
    """How strongly a spectrum speaks, and how fast a heart may change."""

    sharpness: float = 12.0  # exponent of the evidence of one whole window
    drift_bpm: float = 4.0  # typical change of the rate in one second
    jump: float = 1e-3  # chance per second that the path starts anew anywhere
    memory_s: float = 10.0  # windows that overlap share evidence: a step of s seconds counts s / memory_s


@dataclass(frozen=True, slots=True)
class Tracked:
    """The rate of one window within its path."""

    bpm: float  # on the grid; refine it in the window's own spectrum
    support: float  # 0–1: posterior probability within 5 bpm
    sigma_bpm: float  # spread of the posterior around bpm, within 10 bpm


def log_evidence(spec: Spectrum, model: TrackModel) -> FloatArray:
    """(G,) log-likelihood of each rate of the grid for one window."""
    hz = GRID_BPM / 60
    evidence = spec.evidence(hz)
    total = float(spec.power[spec.band].sum()) * float(spec.hz[1] - spec.hz[0])
    if total <= 0:
        return np.zeros(len(GRID_BPM))
    width_hz = 1.5 / max(spec.duration_s, 1e-9)
    share = np.clip(evidence * width_hz / total, 0.0, 1.5)  # about the share of the band in that line
    return model.sharpness * share


@dataclass
class RateTracker:
    """Follow the rate window by window, using the past only. The state is one distribution over the grid."""

    model: TrackModel = field(default_factory=TrackModel)
    _belief: FloatArray | None = field(default=None, init=False)
    _last_s: float = field(default=0.0, init=False)
    _seen: FloatArray | None = field(default=None, init=False)

    def update(
        self, spectra: Sequence[Spectrum], time_s: float, weights: Sequence[float] | None = None
    ) -> Tracked:
        """Take in what the window that ends at `time_s` shows: one spectrum, or one of each way to see it.

        `weights` say how much each of them counts; all alike if there are none.
        """
        log_like = np.tensordot(
            np.ones(len(spectra)) if weights is None else np.asarray(weights, float),
            [log_evidence(spec, self.model) for spec in spectra],
            axes=1,
        )
        if self._belief is None:
            belief = np.full(len(GRID_BPM), 1 / len(GRID_BPM))
        else:
            belief = _spread(self._belief, max(time_s - self._last_s, 0.0), self.model)
        step_s = np.inf if self._belief is None else max(time_s - self._last_s, 0.0)
        self._belief = _weigh(belief, log_like, _share(step_s, self.model))
        self._last_s = time_s
        # The window itself speaks once in full; what the filter keeps is the part that is new.
        self._seen = _weigh(belief, log_like, 1.0)
        return _summarise(self._seen)

    def support(self, bpm: float) -> float:
        """0–1: how much the path as it stands speaks for a rate within 5 bpm of this one."""
        if self._seen is None:
            return 0.0
        return min(float(self._seen[np.abs(GRID_BPM - bpm) <= MODEL_SPREAD_BPM].sum()), 1.0)

    def reset(self) -> None:
        self._belief = self._seen = None


def _share(step_s: float, model: TrackModel) -> float:
    return min(step_s / model.memory_s, 1.0)


def _weigh(belief: FloatArray, log_like: FloatArray, weight: float) -> FloatArray:
    posterior = belief * np.exp(weight * (log_like - log_like.max()))
    return posterior / max(float(posterior.sum()), 1e-300)


def _spread(belief: FloatArray, step_s: float, model: TrackModel) -> FloatArray:
    """Where the rate may be one step later: a Laplace kernel, plus a small chance of a new start."""
    scale = max(model.drift_bpm * np.sqrt(max(step_s, 1e-6)), 0.2)
    reach = len(GRID_BPM) - 1
    offset = np.arange(-reach, reach + 1) * (GRID_BPM[1] - GRID_BPM[0])
    kernel = np.exp(-np.abs(offset) / scale)
    moved = np.convolve(belief, kernel, mode="full")[reach : reach + len(belief)]
    fresh = 1 - (1 - model.jump) ** step_s
    return (1 - fresh) * moved / max(float(moved.sum()), 1e-300) + fresh / len(belief)


def _summarise(posterior: FloatArray) -> Tracked:
    """The 5-bpm neighbourhood with the most mass, its centre and its spread."""
    near = np.abs(GRID_BPM[:, None] - GRID_BPM) <= MODEL_SPREAD_BPM  # (G,G)
    mass = near @ posterior
    best = int(np.argmax(mass + 1e-9 * posterior))
    window = near[best]
    centre = float(posterior[window] @ GRID_BPM[window] / max(float(posterior[window].sum()), 1e-300))
    around = np.abs(GRID_BPM - centre) <= 2 * MODEL_SPREAD_BPM
    weight = posterior[around] / max(float(posterior[around].sum()), 1e-300)
    sigma = float(np.sqrt(weight @ (GRID_BPM[around] - centre) ** 2))
    support = float(posterior[np.abs(GRID_BPM - centre) <= MODEL_SPREAD_BPM].sum())
    return Tracked(float(np.clip(centre, 60 * BAND_HZ[0], 60 * BAND_HZ[1])), min(support, 1.0), sigma)
