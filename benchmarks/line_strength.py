"""Measure the strength of the true spectral peak in the waveforms of several methods, on hard recordings.

    python benchmarks/line_strength.py [--model phasenet-stream] [--model run/last.onnx] [--n 24] [--out F]

The power at the true rate over the power beside it compares networks better than an error in bpm: a lost
recording has an arbitrary error, so means over recordings differ by chance. Every recording is generated once
and measured by all methods. Motion is removed from each waveform as before a rate estimate. The waveform is
then demodulated with the true phase, so that a changing rate keeps its peak.

The seed is for development: training, calibration and the held-out worlds do not use it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from phase_rppg.evaluate.world_windows import generate
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.session.session import Session
from phase_rppg.signal.motion_removal import remove_motion
from phase_rppg.types import FloatArray, Frame
from phase_rppg.workers import map_in_order

# name → world and fixed settings
GROUPS: dict[str, tuple[str, dict[str, Any]]] = {
    "motion VI": ("motion", {"subject.fitzpatrick": 6}),
    "phone III through H.264": ("phone", {"subject.fitzpatrick": 3, "codec.name": "h264"}),
    "phone VI through H.264": ("phone", {"subject.fitzpatrick": 6, "codec.name": "h264"}),
}
BESIDE_HZ = (0.25, 0.9)  # range of distances from the peak that count as noise
WARM_UP_S = 1.0  # start of the waveform that is ignored


@dataclass(frozen=True)
class Job:
    """One recording and the methods to compare."""

    group: str
    index: int
    methods: tuple[str, ...]
    seconds: float
    seed: int


def evaluate(job: Job) -> dict[str, float | None]:
    """Return the strength of the true peak in dB by method; None if the face was lost."""
    world, fixed = GROUPS[job.group]
    recording, pictures = generate(world, job.seed, job.index, seconds=job.seconds, fixed=fixed)
    sessions = {
        name: Session(
            MeasureOptions(name, window_s=job.seconds, faces="largest", gated=False, alone=True).config()
        )
        for name in job.methods
    }
    for rgb, t_s in zip(pictures, recording.t_s, strict=False):
        for session in sessions.values():
            session.push(Frame(rgb, float(t_s)))
    found: dict[str, float | None] = {}
    for name, session in sessions.items():
        faces = session.present
        session.finish()
        found[name] = None
        if faces:
            wave = faces[0].state.recent_wave(job.seconds - WARM_UP_S)
            path = faces[0].state.recent_path(job.seconds - WARM_UP_S)
            if wave.valid.mean() > 0.9:
                found[name] = line_db(remove_motion(wave, path).values, recording.bpm(wave.t_s), wave.fps)
    return found


def amplitude(values: FloatArray, bpm: FloatArray, fps: float, off_hz: float = 0.0) -> float:
    """Return the amplitude of a tone with rate (T,), shifted by `off_hz`."""
    taper = np.hanning(len(values))
    phase = 2 * np.pi * (np.cumsum(bpm) / 60 / fps + off_hz * np.arange(len(values)) / fps)
    return float(np.abs((taper * (values - values.mean())) @ np.exp(-1j * phase)) * 2 / taper.sum())


def line_db(values: FloatArray, bpm: FloatArray, fps: float) -> float:
    """Return the power at the true rate (T,) over the mean power beside it, in dB."""
    beside = np.linspace(*BESIDE_HZ, 9)
    noise = np.mean([amplitude(values, bpm, fps, hz) ** 2 for hz in (*beside, *-beside)])
    return 10 * float(np.log10(max(amplitude(values, bpm, fps) ** 2, 1e-30) / max(float(noise), 1e-30)))


def summary(found: list[float | None]) -> dict[str, Any]:
    """Return mean, median and worst third of the recordings with a face."""
    known = np.sort([db for db in found if db is not None])
    counts = {"recordings": len(found), "without_a_face": len(found) - len(known)}
    if not len(known):
        return counts
    return {
        **counts,
        "mean_db": round(float(known.mean()), 2),
        "median_db": round(float(np.median(known)), 2),
        "worst_third_db": round(float(known[: max(len(known) // 3, 1)].mean()), 2),
        "below_6_db": int((known < 6).sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", dest="method", action="append", help="a method, a network or its file; may be repeated"
    )
    parser.add_argument("--n", type=int, default=24, help="recordings of each group")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=9001)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.n < 1:
        parser.error("--n: at least 1")
    methods = tuple(options.method or ("phasenet-stream", "pos"))
    jobs = [
        Job(group, index, methods, options.seconds, options.seed)
        for group in GROUPS
        for index in range(options.n)
    ]
    found = list(track(map_in_order(evaluate, jobs, options.workers), "measuring", total=len(jobs)))
    asked = " ".join(f"--model {method}" for method in methods)
    report = {
        "command": f"benchmarks/line_strength.py {asked} --n {options.n} --seconds {options.seconds:g} "
        f"--seed {options.seed}",
        "line_over_beside": {
            group: {
                method: summary([f[method] for job, f in zip(jobs, found, strict=True) if job.group == group])
                for method in methods
            }
            for group in GROUPS
        },
    }
    print(dump_json(report))
    if options.out:
        write_json(options.out, report)


if __name__ == "__main__":
    main()
