"""Measure what the gate shows on films that neither training nor calibration used.

    python benchmarks/gate.py [--model phasenet-stream] [--n 8] [--seed 60601] [--cache DIR] [--out FILE]

Films of 8.5 to 30 s are generated with a fresh seed: ordinary videos, irregular rhythms, steps of the rate,
and films without a pulse. Each is measured as a file, or with `--camera` as a camera. The figures are the
share of right windows that is shown, the share of wrong windows among the shown ones, the coverage of the
interval, the calibration error of `p_ok`, and the windows and films without a pulse that have a number. The
bounds are those of Clopper and Pearson over films, because the windows of a film are dependent. With
`--cache` an interrupted run resumes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg.evaluate.calibration_films import SECONDS
from phase_rppg.evaluate.fit_calibration import ObservedWindow, upper_bound
from phase_rppg.evaluate.selective import reliability
from phase_rppg.evaluate.world_windows import observe_worlds, replay
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.types import Estimate, Reading

GROUPS: dict[str, tuple[str, ...]] = {
    "home": ("handheld", "laptop", "talk"),
    "ordinary": ("studio", "webcam", "phone", "wild", "coded", "street", "motion", "lux"),
    "irregular": (
        "studio,pulse.irregular=0.2", "webcam,pulse.irregular=0.15", "studio,pulse.ectopic_rate=0.1",
    ),
    "step": (
        "studio,pulse.bpm=80,pulse.step_factor=0.5,pulse.step_s=6",
        "studio,pulse.step_factor=1.5,pulse.step_s=6",
    ),
    "no pulse": (
        "flicker_face", "photo", "mannequin", "no_pulse", "flicker_photo", "nodding_photo",
        "handheld,pulse.present=false", "laptop,pulse.present=false", "talk,pulse.present=false",
    ),
}  # fmt: skip
SURE = 0.9  # p_ok of a confident reading
SHORT_S = 15.0  # films that a person would record
Pair = tuple[ObservedWindow, Reading]


def figures(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the figures of films that all have a pulse, or all have none."""
    has_pulse = any(o.truth_bpm is not None for o, _ in pairs)
    return with_pulse(pairs) if has_pulse else without_pulse(pairs)


def with_pulse(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the figures of films with a pulse."""
    shown = [(o, r) for o, r in pairs if isinstance(r, Estimate)]
    right = [(o, r) for o, r in pairs if o.right]
    sure = [o for o, r in shown if r.p_ok >= SURE]
    p_ok = np.array([r.p_ok for _, r in pairs])
    inside = [r.low <= (o.truth_bpm or 0.0) <= r.high for o, r in shown if isinstance(r, Estimate)]
    return {
        "films": len({o.group for o, _ in pairs}),
        "windows": len(pairs),
        "right": share([o.right for o, _ in pairs]),
        "shown": share([isinstance(r, Estimate) for _, r in pairs]),
        "right_windows_shown": share([isinstance(r, Estimate) for _, r in right]),
        "wrong_of_shown": share([not o.right for o, _ in shown]),
        "wrong_of_sure": share([not o.right for o in sure]),
        "interval_holds_truth": share(inside),
        "interval_width_bpm": mean([r.high - r.low for _, r in shown if isinstance(r, Estimate)]),
        "ece_of_p_ok": round(reliability(p_ok, np.array([o.right for o, _ in pairs])).ece, 4)
        if pairs
        else None,
        "short_films_read": short_films_read(pairs),
    }


def short_films_read(pairs: Sequence[Pair]) -> float | None:
    """Return the share of short films with a number, of those whose most probable window is right."""
    films: dict[str, list[Pair]] = {}
    for o, r in pairs:
        films.setdefault(o.group, []).append((o, r))
    read = [
        any(isinstance(r, Estimate) for _, r in film)
        for film in films.values()
        if max(o.end_s for o, _ in film) <= SHORT_S and max(film, key=lambda pair: pair[1].p_ok)[0].right
    ]
    return share(read)


def without_pulse(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the figures of films without a pulse."""
    films = {o.group for o, _ in pairs}
    false = {o.group for o, r in pairs if isinstance(r, Estimate)}
    return {
        "films": len(films),
        "windows": len(pairs),
        "windows_shown": share([isinstance(r, Estimate) for _, r in pairs]),
        "films_shown": len(false),
        "films_shown_upper_95": upper_bound(len(false), len(films)),
    }


def share(values: Sequence[bool]) -> float | None:
    return round(float(np.mean(values)), 4) if len(values) else None


def mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 2) if len(values) else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", dest="method", default="phasenet-stream")
    parser.add_argument(
        "--n", type=int, default=8, help="films of each world; of those without a pulse twice"
    )
    parser.add_argument("--seed", type=int, default=60601, help="must differ from that of the calibration")
    parser.add_argument("--camera", action="store_true", help="measure as a camera, not as a file")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="store films and windows here to resume later")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    counts = {w: given.n * (1 + (group == "no pulse")) for group, worlds in GROUPS.items() for w in worlds}
    mode = "camera" if given.camera else "file"
    observed = observe_worlds(
        counts, [given.method], seed=given.seed, seconds=SECONDS, workers=given.workers,
        modes=(mode,), cache=given.cache,
    )[given.method]  # fmt: skip
    readings = replay(observed, given.method, hindsight=not given.camera)
    of_world: dict[str, list[Pair]] = {}
    for o, reading in zip(observed, readings, strict=True):
        of_world.setdefault(o.world, []).append((o, reading))
    pairs = {
        group: [pair for name, found in of_world.items() if same_world(name, worlds) for pair in found]
        for group, worlds in GROUPS.items()
    }
    report = {
        "command": f"benchmarks/gate.py --model {given.method} --n {given.n} --seed {given.seed}"
        + (" --camera" if given.camera else ""),
        "groups": {group: figures(found) for group, found in pairs.items()},
        "all_with_pulse": with_pulse([p for found in pairs.values() for p in found if p[0].truth_bpm]),
        "worlds": {name: figures(found) for name, found in sorted(of_world.items())},
    }
    print(dump_json(report))
    if given.out is not None:
        write_json(given.out, report)


def same_world(name: str, worlds: Sequence[str]) -> bool:
    """Return whether the name of a film's world is that of one of these; settings may be in another order."""
    return any(parts(name) == parts(world) for world in worlds)


def parts(name: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """Return a world and its settings, with numbers in one form."""
    world, *changes = name.split(",")
    settings = (change.split("=") for change in changes)
    return world, frozenset((key, value.removesuffix(".0")) for key, value in settings)


if __name__ == "__main__":
    main()
