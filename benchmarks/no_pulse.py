"""Count the windows without a pulse for which a number is shown; the limit is 1 %.

    python benchmarks/no_pulse.py [--n 10] [--seed 4711] [--out no_pulse.json] [--cache DIR]

Generates recordings of the worlds without a pulse (a photo, a mannequin, a wall, faces without a pulse, a
photo under flickering light, a nodding photo, light on the face alone), measures each with every method, and
counts the windows and films that pass the gate. The seed differs from that of the calibration. Only windows
with a detected face count, so that empty pictures do not reduce the share. `--camera` measures as with a
camera: without later frames and without hindsight.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from phase_rppg.evaluate.fit_calibration import ObservedWindow, upper_bound
from phase_rppg.evaluate.world_windows import observe_worlds, replay
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.types import Estimate

WORLDS = ("photo", "mannequin", "wall", "no_pulse", "flicker_photo", "nodding_photo", "flicker_face")
METHODS = ("phasenet-stream", "pos", "chrom")
LIMIT = 0.01


def figures(found: dict[str, list[ObservedWindow]], worlds: list[str], camera: bool) -> dict[str, Any]:
    """Return the share of shown windows by method, over all worlds and for each world."""
    table: dict[str, Any] = {}
    for method, observed in found.items():
        by_world: dict[str, list[bool]] = {world: [] for world in worlds}
        false_films = set()
        for o, reading in zip(observed, replay(observed, method, hindsight=not camera), strict=True):
            by_world[o.world].append(isinstance(reading, Estimate))
            if isinstance(reading, Estimate):
                false_films.add(o.group)
        shown = sum(map(sum, by_world.values()))
        share = shown / max(len(observed), 1)
        films = {o.group for o in observed}
        table[method] = {
            "windows": len(observed),
            "shown": shown,
            "films": len(films),
            "films_with_a_number": len(false_films),
            "films_upper_95": upper_bound(len(false_films), len(films)),
            "share_shown": round(share, 5),
            "within_limit": share <= LIMIT,
            "by_world": {w: {"windows": len(s), "shown": sum(s)} for w, s in by_world.items()},
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=10, help="recordings of each world")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each recording")
    parser.add_argument(
        "--seed", type=int, default=4711, help="seed of the worlds; must differ from the calibration"
    )
    parser.add_argument(
        "--model", dest="method", action="append", help="may be repeated; default: the network, pos, chrom"
    )
    parser.add_argument("--world", action="append", help="may be repeated; default: all without a pulse")
    parser.add_argument("--camera", action="store_true", help="measure as a camera, not as a file")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="store measured windows here to resume later")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    given = parser.parse_args()
    methods, worlds = list(given.method or METHODS), list(given.world or WORLDS)
    found = observe_worlds(
        dict.fromkeys(worlds, given.n), methods,
        seed=given.seed, seconds=given.seconds, workers=given.workers,
        cache=given.cache, modes=("camera" if given.camera else "file",),
    )  # fmt: skip
    words = f"--n {given.n} --seconds {given.seconds:g} --seed {given.seed}"
    words += "".join(f" --model {m}" for m in given.method or ())
    words += "".join(f" --world {w}" for w in given.world or ())
    words += " --camera" if given.camera else ""
    document = {
        "command": f"python benchmarks/no_pulse.py {words}",
        "worlds": worlds,
        "recordings": given.n * len(worlds),
        "limit": LIMIT,
        "methods": figures(found, worlds, given.camera),
    }
    print(dump_json(document))
    if given.out is not None:
        write_json(given.out, document)


if __name__ == "__main__":
    main()
