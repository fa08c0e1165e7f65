"""Fit the gate to windows with known heart rates: two logistic models, thresholds, interval and limits.

The rule of the gate itself is in `session.gate`; this module calls it. `p_alive` is fitted to windows whose
peak is a true pulse and to windows of films without a pulse. `p_ok` is fitted to films with a pulse alone.
The thresholds maximise the number of correct readings under these constraints:

- At most 1 % of the windows without a pulse, and 3 % of the films, get a reading. The fit uses a half and
  a third of this as a margin.
- At most a share `MAX_RISK` of the readings is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import infer
from ..errors import ArgumentError
from ..session import calibration as calibrations
from ..session.calibration import (
    ALIVE_SIGNS,
    INTERVAL_TERMS,
    OK_SIGNS,
    Calibration,
    Feature,
    Interval,
    LogisticModel,
    QualityLimits,
    Thresholds,
)
from ..session.gate import colour_deviation, features, interval_terms, shown_windows, within_limits
from ..signal.rate import Peak
from ..types import BoolArray, FloatArray, Quality
from .metrics import WITHIN_BPM
from .selective import reliability

MAX_FALSE_READINGS = 0.005  # share of the windows without a pulse
MAX_FALSE_FILMS = 0.01  # share of the films without a pulse that have a reading
MAX_SHOWN_FILMS = 0.03  # the same if only p_ok is fitted
MAX_RISK = 0.1  # share of wrong readings; p_ok stands beside each of them
# Factor on the odds of windows without a pulse, because unseen recordings may resemble a pulse more closely.
# A network is compared with POS as its second method. POS is used alone, so it needs a larger margin.
SAFETY_ODDS = {"pos": 8.0}
MIN_P_OK = 0.5  # smallest threshold of p_ok
MIN_P_ALIVE = 0.5  # smallest threshold of p_alive of a confident window
MIN_KEPT_P_ALIVE = 0.1  # smallest threshold of p_alive near a confident window
MEMORY_S = 20.0  # largest distance to a confident window, before or after: two windows
INTERVAL_COVERAGE = 0.90  # share of the intervals of a new recording that contain the true rate
INTERVAL_LEVEL = 0.92  # quantile of the error that the half width is fitted to
RECORDING_COVERAGE, RECORDING_SHARE = 0.8, 0.95  # coverage that this share of the recordings reaches
MIN_FLOOR_BPM = 0.5
# Limits that are conventions, not fitted.
MIN_SECONDS, MIN_FPS, MAX_GAP_S, MIN_COVERAGE = 6.0, 10.0, 1.0, 0.8
_RIDGE = 1.0
_SLACK = 0.5  # distance of a limit from the extreme correct window, as a share of the remaining range
_COLOUR_SLACK = 1 / 3  # the same for the colour limit, which light flicker approaches more closely
_CLIP = (0.005, 0.995)  # quantiles at which features are clipped
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class ObservedWindow:
    """One window before the gate, with its true rate."""

    peak: Peak
    quality: Quality
    truth_bpm: float | None  # None for a recording without a pulse
    group: str  # recording that the window belongs to: world/seed/index
    end_s: float = 0.0  # end of the window within its recording
    mode: str = "file"  # how the recording was measured: "file" or "camera"

    @property
    def world(self) -> str:
        """The world that the recording was drawn from, with its settings."""
        return self.group.split("/")[0]

    @property
    def right(self) -> bool:
        """Whether the rate is correct within 5 bpm."""
        return self.truth_bpm is not None and abs(self.peak.bpm - self.truth_bpm) <= WITHIN_BPM

    @property
    def error_bpm(self) -> float:
        """The absolute error; infinite without a pulse."""
        return np.inf if self.truth_bpm is None else abs(self.peak.bpm - self.truth_bpm)


def calibrate_method(
    method: str,
    observed: Sequence[ObservedWindow],
    provenance: Mapping[str, Any],
    *,
    only_p_ok: bool = False,
) -> Calibration:
    """Fit the gate of a method; `provenance` records how the windows were made.

    With `only_p_ok` the bundled calibration gives `p_alive`, its thresholds, the interval and the limits.
    """
    family = calibrations.family(method)
    facts = dict(provenance)
    if family == calibrations.NETWORKS:
        facts["weights_sha256"] = infer.load(method).manifest.sha256
    if only_p_ok:
        return refit_ok(observed, calibrations.kept_part(method), facts)
    return calibrate(observed, family, facts)


def refit_ok(
    observed: Sequence[ObservedWindow], known: calibrations.KeptPart, provenance: dict[str, Any]
) -> Calibration:
    """Fit `p_ok` and its threshold; `known` gives everything else."""
    table = _Table([o for o in observed if within_limits(o.quality, known.limits)])
    table.check()
    p_ok, _ = table.out_of_fold()
    p_alive = table.predict(known.alive)
    thresholds = _threshold_of_ok(table, p_ok, p_alive, known.thresholds)
    shown = table.shown(p_ok, p_alive, thresholds)
    return Calibration(
        family=known.family,
        alive=known.alive,
        ok=table.fit_ok().rounded(),
        thresholds=thresholds,
        interval=known.interval,
        limits=known.limits,
        provenance={**provenance, **_summary(observed, table, p_ok, shown), "kept_from": known.provenance},
    )


def calibrate(observed: Sequence[ObservedWindow], family: str, provenance: dict[str, Any]) -> Calibration:
    """Fit the gate of one family of methods."""
    right = np.array([o.right for o in observed])
    if not right.any() or right.all():
        raise ArgumentError(
            "observed", f"{len(observed)} windows, {right.sum()} right", "some right, some wrong"
        )
    limits = _limits(observed, right)
    table = _Table(list(filter(lambda o: within_limits(o.quality, limits), observed)))
    table.check()
    p_ok, p_alive = table.out_of_fold()
    without = [o for o in observed if o.truth_bpm is None]
    thresholds = _thresholds(table, p_ok, p_alive, without, SAFETY_ODDS.get(family, 1.0))
    shown = table.shown(p_ok, p_alive, thresholds)
    return Calibration(
        family=family,
        alive=table.fit_alive().rounded(),
        ok=table.fit_ok().rounded(),
        thresholds=thresholds,
        interval=fit_interval([o for o, s in zip(table.windows, shown, strict=True) if s]),
        limits=limits,
        provenance={**provenance, **_summary(observed, table, p_ok, shown)},
    )


class _Table:
    """The windows within the limits as arrays, and the fits to them."""

    def __init__(self, windows: Sequence[ObservedWindow]) -> None:
        self.windows = windows
        self.right = np.array([o.right for o in windows], bool)
        self.pulse = np.array([o.truth_bpm is not None for o in windows], bool)
        self.end_s = np.array([o.end_s for o in windows])
        self.recording = recording_numbers(windows)
        self.counts = film_counts(windows)
        rows = [features(o.peak, o.quality) for o in windows]
        self._values = {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}

    def check(self) -> None:
        """Raise an ArgumentError if a model cannot be fitted."""
        wrong = self.pulse & ~self.right
        for mask, what in ((self.right, "right"), (wrong, "wrong"), (~self.pulse, "without a pulse")):
            if not mask.any():
                raise ArgumentError("observed", f"no window {what} within the limits", "at least one")

    def fit_ok(self, among: BoolArray | None = None) -> _Model:
        """Fit P(right) to the windows of films with a pulse."""
        return self._fit(OK_SIGNS, self.right, self._select(self.pulse, among))

    def fit_alive(self, among: BoolArray | None = None) -> _Model:
        """Fit P(pulse) to correct windows and to windows of films without a pulse."""
        return self._fit(ALIVE_SIGNS, self.pulse, self._select(self.right | ~self.pulse, among))

    def out_of_fold(self) -> tuple[FloatArray, FloatArray]:
        """Return `p_ok` and `p_alive` (W,) of every window by models that were fitted to other recordings."""
        fold_of = {group: i % _FOLDS for i, group in enumerate(sorted({o.group for o in self.windows}))}
        fold = np.array([fold_of[o.group] for o in self.windows])
        p_ok, p_alive = np.zeros(len(fold)), np.zeros(len(fold))
        for k in range(_FOLDS):
            if (fold == k).any():
                p_ok[fold == k] = self.fit_ok(fold != k).predict(self._values)[fold == k]
                p_alive[fold == k] = self.fit_alive(fold != k).predict(self._values)[fold == k]
        return p_ok, p_alive

    def films_of(self, chosen: BoolArray) -> set[str]:
        """Return the films that these windows (W,) belong to."""
        return {o.group for o, one in zip(self.windows, chosen, strict=True) if one}

    def predict(self, model: LogisticModel) -> FloatArray:
        """Return the probability (W,) of every window by a model."""
        return _Model(model).predict(self._values)

    def shown(self, p_ok: FloatArray, p_alive: FloatArray, thresholds: Thresholds) -> BoolArray:
        """Return which windows (W,) the gate shows."""
        return shown_windows(p_ok, p_alive, self.end_s, self.recording, thresholds)

    def _select(self, mask: BoolArray, among: BoolArray | None) -> BoolArray:
        chosen = mask if among is None else mask & among
        return chosen if chosen.any() else mask

    def _fit(self, signs: Mapping[str, int], y: BoolArray, chosen: BoolArray) -> _Model:
        values = {name: self._values[name][chosen] for name in signs}
        positive = y[chosen]
        counts = self.counts[chosen]
        return _fit_model(values, positive, signs, counts * len(counts) / counts.sum())


@dataclass(frozen=True, slots=True)
class _Model:
    """A logistic model of clipped and standardised features."""

    model: LogisticModel

    def predict(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """Return the probability (W,) of windows with these features (W,)."""
        logit: FloatArray = np.full(len(next(iter(values.values()))), self.model.bias)
        for name, f in self.model.features.items():
            logit = logit + f.weight * (np.clip(values[name], f.low, f.high) - f.mean) / f.std
        p: FloatArray = 1 / (1 + np.exp(-np.clip(logit, -30, 30)))
        return p

    def rounded(self) -> LogisticModel:
        """Return the model with six decimals."""
        chosen = {
            name: Feature(*(round(v, 6) for v in (f.mean, f.std, f.low, f.high, f.weight)))
            for name, f in self.model.features.items()
        }
        return LogisticModel(round(self.model.bias, 6), chosen)


def _fit_model(
    values: Mapping[str, FloatArray], y: BoolArray, signs: Mapping[str, int], counts: FloatArray
) -> _Model:
    names = list(signs)
    table = np.stack([values[name] for name in names], 1)  # (W,F)
    low, high = np.quantile(table, _CLIP[0], axis=0), np.quantile(table, _CLIP[1], axis=0)
    clipped = np.clip(table, low, high)
    mean, std = clipped.mean(0), np.maximum(clipped.std(0), 1e-6)
    weights, bias = fit_logistic((clipped - mean) / std, y, [signs[name] for name in names], counts=counts)
    columns = np.stack([mean, std, low, high, weights], axis=1).tolist()  # (F,5)
    return _Model(
        LogisticModel(bias, {name: Feature(*row) for name, row in zip(names, columns, strict=True)})
    )


def fit_logistic(
    x: FloatArray,
    y: BoolArray,
    signs: Sequence[int] | None = None,
    ridge: float = _RIDGE,
    counts: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Return weights (F,) and bias of P(y) = 1/(1+exp(−(x·w + b))), by Newton's method with an L2 penalty.

    A weight whose sign differs from `signs` is set to zero. `counts` (N,) are the weights of the windows.
    """
    counts = np.ones(len(x)) if counts is None else counts
    count = x.shape[1]
    free = np.ones(count, bool)
    while True:
        fitted, bias = _newton(x[:, free], y, counts, ridge)
        weights = np.zeros(count)
        weights[free] = fitted
        wrong = free & (weights * np.asarray(signs) < 0) if signs is not None else np.zeros(count, bool)
        if not wrong.any():
            return weights, bias
        free &= ~wrong


def _newton(x: FloatArray, y: BoolArray, counts: FloatArray, ridge: float) -> tuple[FloatArray, float]:
    design = np.concatenate([x, np.ones((len(x), 1))], 1)
    penalty = np.append(np.full(x.shape[1], ridge), 1e-6)
    w = np.zeros(design.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-np.clip(design @ w, -30, 30)))
        gradient = design.T @ (counts * (p - y)) + penalty * w
        hessian = (design * (counts * p * (1 - p))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        w = w - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return w[:-1], float(w[-1])


def film_counts(observed: Sequence[ObservedWindow]) -> FloatArray:
    """Return the weights (W,): films with and without a pulse have equal totals, and all films of a kind too.

    The windows of a film are dependent, and long films have more of them.
    """
    sizes: dict[str, int] = {}
    films: dict[bool, set[str]] = {True: set(), False: set()}
    for o in observed:
        sizes[o.group] = sizes.get(o.group, 0) + 1
        films[o.truth_bpm is not None].add(o.group)
    return np.array([1 / (sizes[o.group] * len(films[o.truth_bpm is not None])) for o in observed])


def recording_numbers(observed: Sequence[ObservedWindow]) -> np.ndarray:
    """Return the number (W,) of the measured recording that each window belongs to."""
    number = {key: i for i, key in enumerate(dict.fromkeys((o.group, o.mode) for o in observed))}
    return np.array([number[o.group, o.mode] for o in observed], np.int64)


def _thresholds(
    table: _Table,
    p_ok: FloatArray,
    p_alive: FloatArray,
    without: Sequence[ObservedWindow],
    odds: float,
) -> Thresholds:
    """Return the thresholds with the most correct readings under the constraints, by grid search.

    The probabilities come from models that were fitted to other recordings. The odds of windows without a
    pulse are multiplied by `odds`, because unseen recordings may resemble a pulse more closely.
    """
    best, most = Thresholds(0.99, 0.99, 0.99, MEMORY_S), -1.0
    inflated = np.where(table.pulse, p_alive, odds * p_alive / (1 + (odds - 1) * p_alive))
    films = len({o.group for o in without})
    for alive in (*np.arange(MIN_P_ALIVE, 0.951, 0.05), 0.97, 0.98, 0.99, 0.995):
        for kept in np.arange(MIN_KEPT_P_ALIVE, alive + 1e-9, 0.1):
            for ok in np.arange(MIN_P_OK, 0.951, 0.05):
                chosen = Thresholds(
                    round(float(ok), 4), round(float(alive), 4), round(float(kept), 4), MEMORY_S
                )
                false = table.shown(p_ok, inflated, chosen) & ~table.pulse
                false_films = len(set(table.recording[false].tolist()))
                if false.sum() > MAX_FALSE_READINGS * len(without) or false_films > MAX_FALSE_FILMS * films:
                    continue
                shown = table.shown(p_ok, p_alive, chosen) & table.pulse
                weight = table.counts[shown].sum()
                correct = float(table.counts[shown & table.right].sum())
                if weight - correct <= MAX_RISK * weight and correct > most:
                    best, most = chosen, correct
    return best


def _threshold_of_ok(table: _Table, p_ok: FloatArray, p_alive: FloatArray, known: Thresholds) -> Thresholds:
    """Return the thresholds with the lowest one of `p_ok` that shows few enough wrong readings.

    At most `MAX_SHOWN_FILMS` of the films without a pulse may be shown as well.
    """
    films = len(table.films_of(~table.pulse))
    for ok in np.arange(MIN_P_OK, 0.951, 0.05):
        chosen = replace(known, ok=round(float(ok), 4))
        found = table.shown(p_ok, p_alive, chosen)
        false_films = len(table.films_of(found & ~table.pulse))
        shown = found & table.pulse
        wrong = table.counts[shown & ~table.right].sum()
        if wrong <= MAX_RISK * table.counts[shown].sum() and false_films <= MAX_SHOWN_FILMS * films:
            break
    return chosen


def fit_interval(shown: Sequence[ObservedWindow]) -> Interval:
    """Fit the half width of the interval: quantile regression on its terms, then a conformal floor.

    The regression (Koenker and Bassett 1978) has weights of at least 0. Every recording has the same total.
    """
    known = [o for o in shown if o.truth_bpm is not None]
    if not known:
        return Interval(WITHIN_BPM, dict.fromkeys(INTERVAL_TERMS, 0.0))
    rows = [interval_terms(o.peak, o.quality) for o in known]
    terms = np.array([[row[name] for name in INTERVAL_TERMS] for row in rows])  # (N,K)
    error = np.array([o.error_bpm for o in known])
    groups = [o.group for o in known]
    scales = _quantile_regression(terms, error, _equal_weights(groups))
    scales = np.round(scales, 4)
    floor = interval_floor_bpm(error - terms @ scales, groups)
    return Interval(round(floor, 4), dict(zip(INTERVAL_TERMS, scales.tolist(), strict=True)))


def _quantile_regression(terms: FloatArray, error: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the scales (K,) ≥ 0 that minimise the pinball loss of error − constant − terms · scales."""
    from scipy.optimize import linprog

    count, names = terms.shape
    # Variables: constant, scales, and the positive and negative part of each residual.
    cost = np.concatenate([np.zeros(1 + names), INTERVAL_LEVEL * weights, (1 - INTERVAL_LEVEL) * weights])
    equal = np.concatenate([np.ones((count, 1)), terms, np.eye(count), -np.eye(count)], 1)
    found = linprog(cost, A_eq=equal, b_eq=error, bounds=(0, None), method="highs")
    return np.asarray(found.x[1 : 1 + names]) if found.success else np.zeros(names)


def interval_floor_bpm(beyond: FloatArray, groups: Sequence[str]) -> float:
    """Return the constant part of the half width; `beyond` (N,) is the error beyond the other part.

    This is split-conformal prediction over recordings (Vovk et al. 2005; Lei et al. 2018). Errors within a
    recording are dependent, so every recording has the same weight. The level is multiplied by (n+1)/n for
    n recordings. The floor also gives 95 % of the recordings a coverage of 80 % or more.
    """
    weights = _equal_weights(groups)
    order = np.argsort(beyond, kind="stable")
    count = len(set(groups))
    level = min(INTERVAL_COVERAGE * (count + 1) / count, 1.0)
    at = min(int(np.searchsorted(np.cumsum(weights[order]), level - 1e-9)), len(order) - 1)
    of_group: dict[str, list[float]] = {}
    for value, group in zip(beyond.tolist(), groups, strict=True):
        of_group.setdefault(group, []).append(value)
    needed = [float(np.quantile(v, RECORDING_COVERAGE, method="higher")) for v in of_group.values()]
    of_recordings = float(np.quantile(needed, min(RECORDING_SHARE * (count + 1) / count, 1.0)))
    return max(float(beyond[order[at]]), min(of_recordings, WITHIN_BPM), MIN_FLOOR_BPM)


def _equal_weights(groups: Sequence[str]) -> FloatArray:
    """Return weights (N,), sum 1, that give every group the same total."""
    _, owner, sizes = np.unique(list(groups), return_inverse=True, return_counts=True)
    return np.asarray(1 / (sizes[owner] * len(sizes)))


def _limits(observed: Sequence[ObservedWindow], right: BoolArray) -> QualityLimits:
    """Return the limits: slightly beyond the range of the windows that were correct."""
    good = [o.quality for o, ok in zip(observed, right, strict=True) if ok]

    def least(name: str) -> float:
        return round(_SLACK * float(np.quantile([getattr(q, name) for q in good], 1 - _CLIP[1])), 4)

    def most(name: str) -> float:
        return _beyond([getattr(q, name) for q in good])

    return QualityLimits(
        min_seconds=MIN_SECONDS, min_fps=MIN_FPS, max_gap_s=MAX_GAP_S, min_coverage=MIN_COVERAGE,
        min_face_px=least("face_px"), min_luma=least("luma"), max_clipped=most("clipped"),
        min_colourfulness=least("colourfulness"),
        max_background=most("background"), max_motion=most("motion"),
        max_colour_deviation=_beyond([colour_deviation(q) for q in good], _COLOUR_SLACK),
    )  # fmt: skip


def _beyond(values: Sequence[float], slack: float = _SLACK) -> float:
    """Return a value between the largest of `values` and 1; `slack` is the share of this distance."""
    largest = float(np.quantile(values, _CLIP[1]))
    return round(largest + slack * (1 - largest), 4)


def upper_bound(hits: int, count: int) -> float | None:
    """Return the upper 95 % bound of a share by Clopper and Pearson (1934); None without observations."""
    from scipy.stats import beta

    if count == 0:
        return None
    return 1.0 if hits == count else round(float(beta.ppf(0.95, hits + 1, count - hits)), 4)


def _summary(
    observed: Sequence[ObservedWindow], table: _Table, p_ok: FloatArray, shown: BoolArray
) -> dict[str, Any]:
    """Return the performance of the gate on recordings that its models were not fitted to."""
    without = [o for o in observed if o.truth_bpm is None]
    false = shown & ~table.pulse
    films = {o.group for o in without}
    false_films = {o.group for o, f in zip(table.windows, false, strict=True) if f}
    errors = [o.error_bpm for o, s in zip(table.windows, shown, strict=True) if s and o.truth_bpm is not None]
    right = sum(o.right for o in observed)
    pulse = table.pulse
    return {
        "windows": len(observed),
        "windows_without_pulse": len(without),
        "recordings": len({o.group for o in observed}),
        "recordings_without_pulse": len(films),
        "shown_of_windows_with_pulse": round(len(errors) / max(len(observed) - len(without), 1), 4),
        "shown_of_right_windows": round(float((shown & table.right).sum()) / max(right, 1), 4),
        "right_without_gate": round(
            float(np.mean([o.right for o in observed if o.truth_bpm is not None])), 4
        ),
        "false_readings": round(float(false.sum()) / max(len(without), 1), 5),
        "false_films": len(false_films),
        "false_films_upper_95": upper_bound(len(false_films), len(films)),
        "risk": round(float((shown & pulse & ~table.right).sum()) / max(len(errors), 1), 5),
        "mae_bpm_of_shown": round(float(np.mean(errors)), 3) if errors else None,
        "ece_of_p_ok": round(reliability(p_ok[pulse], table.right[pulse]).ece, 4),
    }
