"""How often a number is shown where there is no pulse: at most in 1 % of the windows.

    python benchmarks/no_pulse.py [--n 10] [--seed 4711] [--out no_pulse.json] [--cache DIR]

Films the generator's worlds without a pulse (a photo, a mannequin, a wall, faces without a pulse, a photo
under flickering light, a photo that nods), shows each recording to every method, and counts the windows that
the gate lets pass. The seed is not the one of the calibration. Only windows in which the detector saw a face
count: a wall mostly has none, so the share is not made small by empty pictures. With `--camera` the films are
read as a camera is: no window waits for what comes after it, and none is shown in hindsight.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from phase_rppg.evaluate.fit_calibration import Observed
from phase_rppg.evaluate.world_windows import observe_worlds, replay
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.types import Estimate

WORLDS = ("photo", "mannequin", "wall", "no_pulse", "flicker_photo", "nodding_photo")
METHODS = ("phasenet-stream", "pos", "chrom")
LIMIT = 0.01


def figures(found: dict[str, list[Observed]], worlds: list[str], camera: bool) -> dict[str, Any]:
    """method → share of windows with a number, over all worlds and in each."""
    table: dict[str, Any] = {}
    for method, observed in found.items():
        by_world: dict[str, list[bool]] = {world: [] for world in worlds}
        for o, reading in zip(observed, replay(observed, method, hindsight=not camera), strict=True):
            by_world[o.world].append(isinstance(reading, Estimate))
        shown = sum(map(sum, by_world.values()))
        share = shown / max(len(observed), 1)
        table[method] = {
            "windows": len(observed),
            "shown": shown,
            "share_shown": round(share, 5),
            "within_limit": share <= LIMIT,
            "by_world": {w: {"windows": len(s), "shown": sum(s)} for w, s in by_world.items()},
        }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=10, help="recordings of each world")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each recording")
    parser.add_argument("--seed", type=int, default=4711, help="of the worlds; not that of the calibration")
    parser.add_argument("--method", action="append", help="may be repeated; default: the network, pos, chrom")
    parser.add_argument("--world", action="append", help="may be repeated; default: all without a pulse")
    parser.add_argument("--camera", action="store_true", help="read as a camera is read, not as a file")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="keep what was watched here, to go on later")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    given = parser.parse_args()
    methods, worlds = list(given.method or METHODS), list(given.world or WORLDS)
    found = observe_worlds(
        dict.fromkeys(worlds, given.n), methods,
        seed=given.seed, seconds=given.seconds, workers=given.workers, cache=given.cache, camera=given.camera,
    )  # fmt: skip
    words = f"--n {given.n} --seconds {given.seconds:g} --seed {given.seed}"
    words += "".join(f" --method {m}" for m in given.method or ())
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
