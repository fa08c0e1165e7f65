"""Measure how often the first estimate of `phase live` is shown and how far it is from the truth.

    python benchmarks/provisional.py --ubfc DIR --out benchmarks/results/provisional.json

The page analyses the first seconds of a face as one short window. Here each recording is cut into parts of 6
and 8 s, and a session of its own measures each part. The reference is the contact PPG of the same seconds.
Synthetic photographs have no pulse: each number shown for one is a false estimate.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg import Session, synth
from phase_rppg.datasets import ubfc_rppg
from phase_rppg.datasets.base import to_waveform
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.session.results import WindowResult
from phase_rppg.signal.rate import spectral_bpm
from phase_rppg.synth.recording import make_recording
from phase_rppg.types import Estimate, Frame

LENGTHS_S = (6, 8)
STEP_S = 12.0  # between the starts of two parts
PHOTOS = 12
FPS = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ubfc", type=Path, required=True, help="UBFC-rPPG, or a part of it")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = {f"{length} s": summary(options.ubfc, float(length)) for length in LENGTHS_S}
    found = {"lengths": rows, "photos": photos(6.0)}
    print(dump_json(found))
    if options.out:
        write_json(options.out, found)


def summary(root: Path, length_s: float) -> dict[str, Any]:
    """Return the share of shown parts and their errors, for all recordings."""
    errors: list[float] = []
    count = 0
    for found in ubfc_rppg.find(root):
        reference = to_waveform(found.name, ubfc_rppg.read_reference(found))
        source = ubfc_rppg.open_video(found)
        for frames in parts(source.frames(), length_s):
            count += 1
            reading = estimate(frames)
            if reading is None:
                continue
            first = round((frames[0].t_s - reference.start_s) * reference.fps)
            wave = reference.values[max(first, 0) : first + round(length_s * reference.fps)]
            errors.append(abs(reading - spectral_bpm(wave, reference.fps)))
    within = float(np.mean(np.array(errors) <= 5)) if errors else None
    mean = round(float(np.mean(errors)), 2) if errors else None
    return {"parts": count, "shown": len(errors), "mean_error_bpm": mean, "within_5_bpm": within}


def parts(frames: Iterable[Frame], length_s: float) -> Iterator[list[Frame]]:
    """Yield the frames of parts that begin every STEP_S seconds; a part that is too short is left out."""
    for _, group in itertools.groupby(frames, key=lambda frame: int(frame.t_s // STEP_S)):
        kept = list(group)
        part = [frame for frame in kept if frame.t_s < kept[0].t_s + length_s + 1 / FPS]
        if part[-1].t_s - part[0].t_s >= length_s - 1 / FPS:
            yield part


def estimate(frames: Iterable[Frame]) -> float | None:
    """Return the number that the page would show after these frames."""
    session = Session(faces="largest")
    events = [event for frame in frames for event in session.push(frame)] + session.finish()
    readings = [event.reading for event in events if isinstance(event, WindowResult)]
    return readings[0].bpm if readings and isinstance(readings[0], Estimate) else None


def photos(length_s: float) -> dict[str, int]:
    """Return how many photographs got a number."""
    shown = 0
    for seed in range(PHOTOS):
        made = make_recording(synth.load("photo"), seed, 0, seconds=length_s, height=240, width=320)
        frames = (Frame(rgb, float(t)) for rgb, t in zip(made.frames(), made.t_s, strict=True))
        shown += estimate(frames) is not None
    return {"photos": PHOTOS, "shown": shown}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
