"""Rate tracking: a Bayesian filter of the heart rate over the spectra of overlapping windows.

Each window gives a likelihood over all rates, and the prior allows slow changes of the rate. Earlier windows
therefore support a window without a clear peak, and they outweigh single peaks at the double or half rate.
The filter is causal: later windows never change earlier results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..types import FloatArray
from .constants import BAND_HZ
from .rate import Spectrum

GRID_BPM: FloatArray = np.arange(40.0, 200.5, 1.0)  # the states of the filter
_DOUBLES = GRID_BPM >= 75.0  # rates whose half is on the grid, or so near to it that 40 bpm is right
_HALVES = (
    np.maximum(GRID_BPM[_DOUBLES] / 2 - GRID_BPM[0], 0).round().astype(np.int64)
)  # their places on the grid
_NOISE_SUBHARMONIC = 0.2  # the subharmonic excess of noise is rarely above this
SUPPORT_BPM = 5.0  # half width of the interval whose probability is `support`
_NEAR: FloatArray = (np.abs(GRID_BPM[:, None] - GRID_BPM) <= SUPPORT_BPM).astype(float)  # (G,G)


@dataclass(frozen=True, slots=True)
class RateModel:
    """Parameters of the likelihood and of the change of the rate."""

    sharpness: float = 12.0  # scale of the log-likelihood of one window
    drift_bpm: float = 4.0  # scale of the change of the rate in one second
    jump: float = 1e-3  # probability per second of a change to any rate
    halving: float = 2e-2  # probability per second that the tracked line is the second harmonic of the rate
    subharmonic: float = 25.0  # loss of log-likelihood of a rate at which only every second period repeats
    memory_s: float = 10.0  # overlapping windows share data, so a step of s seconds has weight s / memory_s


@dataclass(frozen=True, slots=True)
class TrackedRate:
    """The filtered rate of one window."""

    bpm: float  # mean of the posterior near its mode; refine it in the spectrum of the window
    support: float  # 0–1: posterior probability within 5 bpm
    sigma_bpm: float  # standard deviation of the posterior within 10 bpm of `bpm`


@lru_cache(maxsize=4)  # two trackers of a window use the same spectra
def log_evidence(spec: Spectrum, model: RateModel) -> FloatArray:
    """Return the log-likelihood (G,) of each rate of the grid for one window."""
    hz = GRID_BPM / 60
    evidence = spec.evidence(hz)
    total = float(spec.power[spec.band].sum()) * float(spec.hz[1] - spec.hz[0])
    if total <= 0:
        return np.zeros(len(GRID_BPM))
    width_hz = 1.5 / max(spec.duration_s, 1e-9)
    share = np.clip(evidence * width_hz / total, 0.0, 1.5)  # approximate share of the band power in the line
    return model.sharpness * share - model.subharmonic * _subharmonic_excess(spec)


def _subharmonic_excess(spec: Spectrum) -> FloatArray:
    """Return the excess (G,) of the rates that may be the double of another one, above that of noise."""
    found = np.zeros(len(GRID_BPM))
    found[_DOUBLES] = np.clip(spec.subharmonic_excess(GRID_BPM[_DOUBLES] / 60) - _NOISE_SUBHARMONIC, 0.0, 1.0)
    return found


@dataclass
class RateTracker:
    """Filters the rate window by window. The state is one probability distribution over the grid."""

    model: RateModel = field(default_factory=RateModel)
    _belief: FloatArray | None = field(default=None, init=False)
    _last_s: float = field(default=0.0, init=False)
    _posterior: FloatArray | None = field(default=None, init=False)

    def update(
        self, spectra: Sequence[Spectrum], time_s: float, weights: Sequence[float] | None = None
    ) -> TrackedRate:
        """Add the window that ends at `time_s`, with one spectrum per method, and return its rate.

        `weights` are the weights of the spectra; they are equal by default.
        """
        log_like = np.tensordot(
            np.ones(len(spectra)) if weights is None else np.asarray(weights, float),
            [log_evidence(spec, self.model) for spec in spectra],
            axes=1,
        )
        if self._belief is None:
            belief = np.full(len(GRID_BPM), 1 / len(GRID_BPM))
        else:
            belief = _predict(self._belief, max(time_s - self._last_s, 0.0), self.model)
        step_s = np.inf if self._belief is None else max(time_s - self._last_s, 0.0)
        self._belief = _multiply(belief, log_like, _new_share(step_s, self.model))
        self._last_s = time_s
        # The result of a window uses its full likelihood. The state uses only the share of its new data.
        self._posterior = _multiply(belief, log_like, 1.0)
        return _summarise(self._posterior)

    def support(self, bpm: float) -> float:
        """Return the posterior probability, 0–1, of a rate within 5 bpm of this one."""
        if self._posterior is None:
            return 0.0
        return min(float(self._posterior[np.abs(GRID_BPM - bpm) <= SUPPORT_BPM].sum()), 1.0)

    def reset(self) -> None:
        """Forget all windows."""
        self._belief = self._posterior = None


def _new_share(step_s: float, model: RateModel) -> float:
    """Return the share of new data in a window after a step."""
    return min(step_s / model.memory_s, 1.0)


def _multiply(belief: FloatArray, log_like: FloatArray, weight: float) -> FloatArray:
    """Return the posterior of a belief and a weighted log-likelihood."""
    posterior = belief * np.exp(weight * (log_like - log_like.max()))
    return posterior / max(float(posterior.sum()), 1e-300)


def _predict(belief: FloatArray, step_s: float, model: RateModel) -> FloatArray:
    """Return the belief one step later: a Laplace kernel, plus small parts at half the rates and at all."""
    scale = max(model.drift_bpm * np.sqrt(max(step_s, 1e-6)), 0.2)
    half = len(GRID_BPM) - 1
    offset = np.arange(-half, half + 1) * (GRID_BPM[1] - GRID_BPM[0])
    kernel = np.exp(-np.abs(offset) / scale)
    moved = np.convolve(belief, kernel, mode="full")[half : half + len(belief)]
    moved /= max(float(moved.sum()), 1e-300)
    halved = 1 - (1 - model.halving) ** step_s
    half_rates = np.bincount(_HALVES, moved[_DOUBLES], len(belief))
    moved = moved * np.where(_DOUBLES, 1 - halved, 1.0) + halved * half_rates
    uniform = 1 - (1 - model.jump) ** step_s
    return (1 - uniform) * moved + uniform / len(belief)


def _summarise(posterior: FloatArray) -> TrackedRate:
    """Return mean, probability and spread of the 5-bpm neighbourhood with the highest probability."""
    mass = _NEAR @ posterior
    best = int(np.argmax(mass + 1e-9 * posterior))
    window = _NEAR[best] > 0
    centre = float(posterior[window] @ GRID_BPM[window] / max(float(posterior[window].sum()), 1e-300))
    around = np.abs(GRID_BPM - centre) <= 2 * SUPPORT_BPM
    weight = posterior[around] / max(float(posterior[around].sum()), 1e-300)
    sigma = float(np.sqrt(weight @ (GRID_BPM[around] - centre) ** 2))
    support = float(posterior[np.abs(GRID_BPM - centre) <= SUPPORT_BPM].sum())
    return TrackedRate(float(np.clip(centre, 60 * BAND_HZ[0], 60 * BAND_HZ[1])), min(support, 1.0), sigma)
