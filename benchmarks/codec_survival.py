"""Measure how much of a pulse a codec preserves, by skin type.

    python benchmarks/codec_survival.py [--n 16] [--world phone] [--crf 18 …] [--skin 6 …] [--out FILE]

Every recording is generated twice with the same face, light, motion and sensor noise: once with a pulse and
once without. Both are stored uncompressed and through H.264. The difference in the mean colour of the face
is the effect of the pulse without motion. The report contains

- the amplitude of green at the true rate, with the codec relative to without it;
- the same for green minus red, which separates blood from light;
- the spectral peak at the true rate over its surroundings, in dB;
- the error of the rate from the difference in green, window by window with a causal rate track.

`--crf` sets the quality of the encoder instead of the value that the world draws.

The seed is for development: training, calibration and the held-out worlds do not use it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from held_out_worlds import LOST_BPM, SKINS
from line_strength import amplitude, line_db
from phase_rppg.evaluate.world_windows import generate
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.signal import rate
from phase_rppg.signal.rate_tracking import RateTracker
from phase_rppg.synth.codec import transcode
from phase_rppg.synth.recording import SyntheticRecording
from phase_rppg.types import ByteArray, FloatArray
from phase_rppg.workers import map_in_order

NO_PULSE = 1e-9  # pulse amplitude of the copy without a pulse
INNER = (0.2, 0.8)  # inner part of the face box in both directions, mostly skin
WINDOW_S, STEP_S, FPS = 10.0, 1.0, 30.0


@dataclass(frozen=True)
class Job:
    """One recording, generated with and without a pulse."""

    world: str
    index: int
    skin: int
    crf: float | None  # None: drawn by the world
    seconds: float
    seed: int


def evaluate(job: Job) -> dict[str, float]:
    """Return how much of the pulse of one recording is preserved."""
    fixed: dict[str, Any] = {"subject.fitzpatrick": job.skin, "codec.name": "h264"}
    if job.crf is not None:
        fixed["codec.crf"] = job.crf
    source = (job.world, job.seed, job.index)
    with_pulse, _ = generate(*source, seconds=job.seconds, fixed=fixed)
    without_pulse, _ = generate(*source, seconds=job.seconds, fixed={**fixed, "pulse.amplitude": NO_PULSE})
    plain, coded = (
        one - other for one, other in zip(colours(with_pulse), colours(without_pulse), strict=True)
    )
    t_s = np.arange(0.0, with_pulse.t_s[-1], 1 / FPS)
    bpm = with_pulse.bpm(t_s)
    before, after = (uniform_colours(with_pulse, values, t_s) for values in (plain, coded))
    return {
        "left": amplitude(after[:, 1], bpm, FPS) / amplitude(before[:, 1], bpm, FPS),
        "colour_left": amplitude(after[:, 1] - after[:, 0], bpm, FPS)
        / amplitude(before[:, 1] - before[:, 0], bpm, FPS),
        "line_db_raw": line_db(before[:, 1], bpm, FPS),
        "line_db": line_db(after[:, 1], bpm, FPS),
        "error_bpm_raw": error_bpm(-before[:, 1], bpm),
        "error_bpm": error_bpm(-after[:, 1], bpm),
    }


def colours(film: SyntheticRecording) -> tuple[FloatArray, FloatArray]:
    """Return the mean colour of the inner face, (T,3) before and (T,3) after the codec."""
    boxes = film.boxes()
    before: list[FloatArray] = []

    def recorded() -> Iterator[ByteArray]:
        for rgb in film.frames():
            before.append(inner(rgb, boxes[len(before)]))
            yield rgb

    pictures = transcode(recorded(), film.codec, film.fps)
    after = [inner(rgb, box) for rgb, box in zip(pictures, boxes, strict=False)]
    return np.array(before), np.array(after)


def inner(rgb: ByteArray, box: FloatArray) -> FloatArray:
    """Return the mean colour (3,) of the inner part of a box."""
    x, y, width, height = box
    rows = slice(*(max(0, round(y + share * height)) for share in INNER))
    columns = slice(*(max(0, round(x + share * width)) for share in INNER))
    return np.asarray(rgb[rows, columns].mean((0, 1)))


def uniform_colours(film: SyntheticRecording, values: FloatArray, t_s: FloatArray) -> FloatArray:
    """Resample the colours (T,3) to a uniform clock."""
    times = film.t_s[: len(values)]
    return np.stack([np.interp(t_s, times, values[:, c]) for c in range(3)], 1)


def error_bpm(wave: FloatArray, bpm: FloatArray) -> float:
    """Return the mean error of all windows with one rate track."""
    tracker, errors = RateTracker(), []
    length = round(WINDOW_S * FPS)
    for stop in range(length, len(wave) + 1, round(STEP_S * FPS)):
        window = wave[stop - length : stop]
        tracked = tracker.update([rate.spectrum(window, FPS)], stop / FPS)
        peak = rate.spectral_peak(window, FPS, near_bpm=tracked.bpm)
        estimate = tracked.bpm if peak is None else peak.bpm
        errors.append(abs(estimate - bpm[stop - length : stop].mean()))
    return float(np.mean(errors))


def summary(found: list[dict[str, float]]) -> dict[str, Any]:
    def of(name: str) -> FloatArray:
        return np.array([one[name] for one in found])

    return {
        "recordings": len(found),
        "pulse_left": round(float(np.median(of("left"))), 3),
        "colour_left": round(float(np.median(of("colour_left"))), 3),
        **{
            when: {
                "line_db": round(float(of(f"line_db{end}").mean()), 1),
                "mae_bpm": round(float(of(f"error_bpm{end}").mean()), 2),
                "lost": int((of(f"error_bpm{end}") > LOST_BPM).sum()),
            }
            for when, end in (("stored_as_it_is", "_raw"), ("through_h264", ""))
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=16, help="recordings of each skin type")
    parser.add_argument("--world", default="phone")
    parser.add_argument("--crf", type=float, action="append", help="CRF of the encoder; may be repeated")
    parser.add_argument(
        "--skin", type=int, action="append", choices=SKINS, help="may be repeated; default: all"
    )
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=9005)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.n < 1:
        parser.error("--n: at least 1")
    crfs, skins = options.crf or [None], options.skin or SKINS
    jobs = [
        Job(options.world, index, skin, crf, options.seconds, options.seed)
        for crf in crfs
        for skin in skins
        for index in range(options.n)
    ]
    done = iter(list(track(map_in_order(evaluate, jobs, options.workers), "measuring", total=len(jobs))))
    found = {
        "as drawn" if crf is None else f"{crf:g}": {
            str(skin): summary([next(done) for _ in range(options.n)]) for skin in skins
        }
        for crf in crfs
    }
    asked = "".join(f" --crf {crf:g}" for crf in options.crf or ())
    asked += "".join(f" --skin {skin}" for skin in options.skin or ())
    report = {
        "command": f"benchmarks/codec_survival.py --n {options.n} --world {options.world}{asked} "
        f"--seconds {options.seconds:g} --seed {options.seed}",
        "by_crf_and_skin": found,
    }
    print(dump_json(report))
    if options.out:
        write_json(options.out, report)


if __name__ == "__main__":
    main()
