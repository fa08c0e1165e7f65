"""From observed windows to the numbers of the gate: a logistic model, its threshold, its interval and its
limits.

Everything is computed from windows whose truth is known; nothing is chosen by hand but the promises: at most
1 % of the windows without a pulse get a number (a quarter of that here, as a margin for the unseen), at most
5 % of the shown numbers are wrong, a face has to be sure by 90 % or more once, and for a while before and
after that no number is shown that is more likely wrong than right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..session.calibration import TERMS, Calibration, Feature, Limits, Thresholds
from ..session.gate import features, off_colour, shown_windows, within_limits
from ..signal.rate import Peak
from ..types import BoolArray, FloatArray, Quality

WITHIN_BPM = 5.0  # what p_ok promises
MAX_FALSE_READINGS = 0.0025  # of the windows without a pulse
MAX_RISK = 0.05  # of the shown windows
# How much more alive than those that were seen the next photo may look. POS reads lines that its second
# opinion does not: nothing else stands between it and a photo that nods.
SAFETY_ODDS = {"pos": 8.0}
MIN_P_OK = 0.9  # a window alone shows a pulse if it is at least this likely right
MIN_KEPT_P_OK = 0.5  # and this is enough near to one that does
MEMORY_S = 20.0  # so near, before or after: two windows
INTERVAL_COVERAGE = 0.90  # of the shown windows of a new recording hold the truth within low…high
INTERVAL_SIGMAS = 3.0  # what the noise beside the line explains; the rest is the floor
LEAST_FLOOR_BPM = 0.5
# What a window must have to be judged at all.
MIN_SECONDS, MIN_FPS, MAX_GAP_S, MIN_COVERAGE = 6.0, 10.0, 1.0, 0.8
_STEPS = (0.2, 0.3, 0.4, 0.5, 0.6)
_RIDGE = 1.0
_SLACK = 0.5  # a limit lies this far beyond the last window that was right
_COLOUR_SLACK = 1 / 3  # where colour is asked: lamps begin nearer to the last blood
_CLIP = (0.005, 0.995)  # quantiles beyond which a feature says nothing more


@dataclass(frozen=True, slots=True)
class Observed:
    """One window of the pipeline before the gate, with its truth."""

    peak: Peak
    quality: Quality
    truth_bpm: float | None  # None when there was no pulse
    group: str  # windows of one recording belong together
    end_s: float = 0.0  # of the window, within its recording

    @property
    def world(self) -> str:
        return self.group.split("/")[0]

    @property
    def right(self) -> bool:
        return self.truth_bpm is not None and abs(self.peak.bpm - self.truth_bpm) <= WITHIN_BPM


def calibrate(observed: Sequence[Observed], family: str, provenance: dict[str, Any]) -> Calibration:
    """Fit the gate of one family of methods."""
    right = np.array([o.right for o in observed])
    if not right.any() or right.all():
        raise ArgumentError(
            "observed", f"{len(observed)} windows, {right.sum()} right", "some right, some wrong"
        )
    without = sum(o.truth_bpm is None for o in observed)
    odds = SAFETY_ODDS.get(family, 1.0)
    judged = max(
        (_judge(observed, limits, without, odds) for limits in _candidates(_limits(observed, right))),
        key=lambda found: found.shown_right,
    )
    limits, usable, shown = judged.limits, judged.usable, judged.shown
    right = np.array([o.right for o in usable])
    pulse = np.array([o.truth_bpm is not None for o in usable])
    names, table = _table(usable)
    low, high = np.quantile(table, _CLIP[0], axis=0), np.quantile(table, _CLIP[1], axis=0)
    clipped = np.clip(table, low, high)
    mean, std = clipped.mean(0), np.maximum(clipped.std(0), 1e-6)
    weights, bias = fit_logistic(
        (clipped - mean) / std, right, [TERMS[name] for name in names], counts=world_counts(usable)
    )
    floor_bpm = interval_floor_bpm([o for o, s in zip(usable, shown, strict=True) if s])
    return Calibration(
        family=family,
        threshold=round(judged.thresholds.threshold, 4),
        kept_threshold=round(judged.thresholds.kept_threshold, 4),
        memory_s=judged.thresholds.memory_s,
        bias=round(float(bias), 6),
        features={
            name: Feature(*(round(float(v), 6) for v in (mean[i], std[i], low[i], high[i], weights[i])))
            for i, name in enumerate(names)
        },
        interval_scale=INTERVAL_SIGMAS,
        interval_floor_bpm=round(floor_bpm, 4),
        limits=limits,
        provenance={**provenance, **_summary(observed, usable, shown, right, pulse)},
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """What one choice of limits would give, on recordings that the model did not see."""

    limits: Limits
    usable: list[Observed]
    thresholds: Thresholds
    shown: BoolArray  # (W,) which of the usable windows get a number
    shown_right: int  # how many of them get the right one


def _judge(observed: Sequence[Observed], limits: Limits, without: int, odds: float) -> _Judged:
    usable = [o for o in observed if within_limits(o.quality, limits)]
    right = np.array([o.right for o in usable], bool)
    pulse = np.array([o.truth_bpm is not None for o in usable], bool)
    if len(usable) == 0 or right.all() or not right.any():
        return _Judged(limits, usable, Thresholds(0.99, 0.99, MEMORY_S), np.zeros(len(usable), bool), 0)
    held_out = _out_of_fold(usable, right, np.array([o.group for o in usable]))
    thresholds = _thresholds(usable, held_out, right, pulse, without=without, odds=odds)
    end_s = np.array([o.end_s for o in usable])
    shown = shown_windows(held_out, end_s, recording_numbers(usable), thresholds)
    return _Judged(limits, usable, thresholds, shown, int((right & shown).sum()))


def _candidates(loosest: Limits) -> list[Limits]:
    """The limits on background and motion to choose from: the one that shows most right numbers wins."""
    return [
        replace(loosest, max_background=background, max_motion=motion)
        for background in (*_STEPS, loosest.max_background)
        for motion in (*_STEPS, loosest.max_motion)
        if background <= loosest.max_background and motion <= loosest.max_motion
    ]


def fit_logistic(
    x: FloatArray,
    y: BoolArray,
    signs: Sequence[int] | None = None,
    ridge: float = _RIDGE,
    counts: FloatArray | None = None,
) -> tuple[FloatArray, float]:
    """Weights (F,) and bias of P(y) = 1/(1+exp(−(x·w + b))), by Newton's method with an L2 penalty on w.

    With `signs` a weight that would point the other way is held at zero. `counts` (N,) says for how many
    windows each one stands.
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


def _table(observed: Sequence[Observed]) -> tuple[list[str], FloatArray]:
    rows = [features(o.peak, o.quality) for o in observed]
    names = list(rows[0])
    return names, np.array([[row[name] for name in names] for row in rows])


def _out_of_fold(
    observed: Sequence[Observed], right: BoolArray, groups: np.ndarray, folds: int = 5
) -> FloatArray:
    """p_ok of every window by a model that never saw its recording."""
    names, table = _table(observed)
    signs, counts = [TERMS[name] for name in names], world_counts(observed)
    unique = sorted(set(groups.tolist()))
    fold_of = {group: i % folds for i, group in enumerate(unique)}
    fold = np.array([fold_of[g] for g in groups])
    p = np.full(len(observed), float(right.mean()))
    for k in range(min(folds, len(unique))):
        train, test = fold != k, fold == k
        if not test.any() or right[train].all() or not right[train].any():
            continue
        low, high = np.quantile(table[train], _CLIP[0], axis=0), np.quantile(table[train], _CLIP[1], axis=0)
        clipped = np.clip(table, low, high)
        mean, std = clipped[train].mean(0), np.maximum(clipped[train].std(0), 1e-6)
        w, b = fit_logistic((clipped[train] - mean) / std, right[train], signs, counts=counts[train])
        p[test] = 1 / (1 + np.exp(-np.clip((clipped[test] - mean) / std @ w + b, -30, 30)))
    return p


def world_counts(observed: Sequence[Observed]) -> FloatArray:
    """(W,) for how many windows each one stands: every world counts alike, however often it was filmed.

    `p_ok` depends on how common photos are. Filming more of them shall tell what they look like, not that
    there are more of them in life.
    """
    recordings: dict[str, set[str]] = {}
    for o in observed:
        recordings.setdefault(o.world, set()).add(o.group)
    fewest = min(map(len, recordings.values()))
    return np.array([fewest / len(recordings[o.world]) for o in observed])


def recording_numbers(observed: Sequence[Observed]) -> np.ndarray:
    """(W,) the number of the recording that each window belongs to."""
    number = {group: i for i, group in enumerate(dict.fromkeys(o.group for o in observed))}
    return np.array([number[o.group] for o in observed], np.int64)


def _thresholds(
    usable: Sequence[Observed],
    p: FloatArray,
    right: BoolArray,
    pulse: BoolArray,
    *,
    without: int,
    odds: float,
) -> Thresholds:
    """The thresholds that show most right numbers while the promises hold on held-out recordings.

    Few recordings without a pulse come close to a reading, and later ones may come closer. Their odds are
    therefore multiplied by `odds`.
    """
    best, most = Thresholds(0.99, 0.99, MEMORY_S), -1
    end_s, recording = np.array([o.end_s for o in usable]), recording_numbers(usable)
    inflated_p = np.where(pulse, p, odds * p / (1 + (odds - 1) * p))
    for threshold in np.arange(MIN_P_OK, 0.991, 0.01):
        for kept in np.arange(MIN_KEPT_P_OK, threshold + 1e-9, 0.05):
            chosen = Thresholds(float(threshold), float(kept), MEMORY_S)
            shown = shown_windows(p, end_s, recording, chosen)
            false_positives = shown_windows(inflated_p, end_s, recording, chosen) & ~pulse
            false_readings = float(false_positives.sum()) / max(without, 1)
            risk = float((shown & ~right).sum()) / max(int(shown.sum()), 1)
            count = int((shown & right).sum())
            if false_readings <= MAX_FALSE_READINGS and risk <= MAX_RISK and count > most:
                best, most = chosen, count
    return best


def interval_floor_bpm(shown: Sequence[Observed]) -> float:
    """How far beyond the noise of their line the numbers of a new recording may be off, nine times of ten.

    Split-conformal over recordings: windows of one recording fail together, so every recording counts the
    same, and the level is raised by (n+1)/n because the next recording is one more than the n that were seen
    (Vovk et al. 2005; Lei et al. 2018).
    """
    rows = [
        (abs(o.peak.bpm - o.truth_bpm) - INTERVAL_SIGMAS * o.peak.sigma_bpm, o.group)
        for o in shown
        if o.truth_bpm is not None
    ]
    if not rows:
        return WITHIN_BPM
    beyond = np.array([row[0] for row in rows])
    _, owner, sizes = np.unique([row[1] for row in rows], return_inverse=True, return_counts=True)
    order = np.argsort(beyond, kind="stable")
    reached = np.cumsum((1 / sizes[owner])[order]) / len(sizes)
    level = min(INTERVAL_COVERAGE * (len(sizes) + 1) / len(sizes), 1.0)
    at = min(int(np.searchsorted(reached, level - 1e-9)), len(order) - 1)
    return max(float(beyond[order[at]]), LEAST_FLOOR_BPM)


def _limits(observed: Sequence[Observed], right: BoolArray) -> Limits:
    """A little beyond the windows that were right: further out nothing was ever seen to work."""
    good = [o.quality for o, ok in zip(observed, right, strict=True) if ok]

    def least(name: str) -> float:
        return round(_SLACK * float(np.quantile([getattr(q, name) for q in good], 1 - _CLIP[1])), 4)

    def most(name: str) -> float:
        return _beyond([getattr(q, name) for q in good])

    return Limits(
        min_seconds=MIN_SECONDS, min_fps=MIN_FPS, max_gap_s=MAX_GAP_S, min_coverage=MIN_COVERAGE,
        min_face_px=least("face_px"), min_luma=least("luma"), max_clipped=most("clipped"),
        min_colourfulness=least("colourfulness"),
        max_background=most("background"), max_motion=most("motion"),
        max_off_colour=_beyond([off_colour(q) for q in good], _COLOUR_SLACK),
    )  # fmt: skip


def _beyond(values: Sequence[float], slack: float = _SLACK) -> float:
    """A part of the way from the largest of these to 1."""
    largest = float(np.quantile(values, _CLIP[1]))
    return round(largest + slack * (1 - largest), 4)


def _summary(
    observed: Sequence[Observed],
    usable: Sequence[Observed],
    shown: BoolArray,
    right: BoolArray,
    pulse: BoolArray,
) -> dict[str, Any]:
    """What the gate reached on recordings that its model did not see."""
    without = sum(o.truth_bpm is None for o in observed)
    errors = [
        abs(o.peak.bpm - o.truth_bpm)
        for o, s in zip(usable, shown, strict=True)
        if s and o.truth_bpm is not None
    ]
    return {
        "windows": len(observed),
        "windows_without_pulse": without,
        "recordings": len({o.group for o in observed}),
        "shown_of_windows_with_pulse": round(len(errors) / max(len(observed) - without, 1), 4),
        "right_without_gate": round(
            float(np.mean([o.right for o in observed if o.truth_bpm is not None])), 4
        ),
        "false_readings": round(float((shown & ~pulse).sum()) / max(without, 1), 5),
        "risk": round(float((shown & ~right).sum()) / max(int(shown.sum()), 1), 5),
        "mae_bpm_of_shown": round(float(np.mean(errors)), 3) if errors else None,
    }
