"""Measure real colour traces: rates by activity, and beats against marks.

    python benchmarks/traces.py FOLDER [--method pos] [--out benchmarks/results/traces.json]

FOLDER holds `lgi_ppgi/` (NN_ACTIVITY_rgb.csv with t_s,r,g,b and NN_ACTIVITY_hr.csv with t_s,hr_bpm),
`vicarppg2/` (NN_rgb_fhck.csv with t_ms,r,g,b and NN_ppg.csv with t_ms,ppg,peak) and `bp4d/` (rgb.csv and a
blood pressure at 1 kHz). Each is optional; the data are not part of this repository. The environment variable
PHASE_TRACES may name the folder. Windows are those of `measure_trace`: 10 s, step 1 s. The truth of a window
is the mean of the oximeter, or the median interval of the reference beats.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg.evaluate.beat_agreement import interval_errors_s, variability_ratios
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.measurement.trace import TraceOptions, run_trace_file
from phase_rppg.session.results import FaceResult
from phase_rppg.signal import rate
from phase_rppg.signal.hrv import hrv
from phase_rppg.types import FloatArray, Waveform

WITHIN_BPM = 5.0
Truth = Callable[[float, float], float | None]


def window_rows(face: FaceResult, truth: Truth) -> list[dict[str, Any]]:
    """Return the error of every window with a spectral peak and a truth, and whether it is shown."""
    rows = []
    for window in face.windows:
        true_bpm = truth(window.start_s, window.end_s)
        if window.peak is not None and true_bpm is not None:
            inside = window.low is not None and window.high is not None
            rows.append({
                "error": abs(window.peak.bpm - true_bpm),
                "shown": window.bpm is not None,
                "inside": inside and window.low <= true_bpm <= window.high,
            })  # fmt: skip
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return errors of all and of the shown windows."""
    errors = np.array([row["error"] for row in rows])
    shown = np.array([row["shown"] for row in rows], bool)
    inside = np.array([row["inside"] for row in rows], bool)
    found: dict[str, Any] = {
        "windows": len(rows),
        "mae_bpm": rounded(errors),
        "within_5": rounded(errors <= WITHIN_BPM),
        "coverage": rounded(shown),
        "mae_bpm_of_shown": rounded(errors[shown]),
        "within_5_of_shown": rounded(errors[shown] <= WITHIN_BPM),
        "interval_holds_truth": rounded(inside[shown]),
    }
    return found


def rounded(values: FloatArray) -> float | None:
    return round(float(np.mean(values)), 3) if len(values) else None


def by_beats(beats_s: FloatArray) -> Truth:
    """Return the rate of a window from the median interval of its beats."""

    def truth(start_s: float, end_s: float) -> float | None:
        return rate.beat_bpm(beats_s[(beats_s >= start_s) & (beats_s <= end_s)])

    return truth


def by_table(table: FloatArray) -> Truth:
    """Return the mean of an oximeter (T,2) in a window."""

    def truth(start_s: float, end_s: float) -> float | None:
        inside = (table[:, 0] >= start_s) & (table[:, 0] <= end_s)
        return float(table[inside, 1].mean()) if inside.any() else None

    return truth


def numbers(path: Path, skip: int = 1) -> FloatArray:
    return np.loadtxt(path, delimiter=",", skiprows=skip, ndmin=2)


def lgi_ppgi(folder: Path, options: TraceOptions) -> dict[str, Any]:
    """Return the figures by recording, by activity and in all."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(folder.glob("*_rgb.csv")):
        name = file.name.removesuffix("_rgb.csv")
        face = run_trace_file(file, options, None).faces[0]
        rows[name] = window_rows(face, by_table(numbers(folder / f"{name}_hr.csv")))
    activities = sorted({name.partition("_")[2] for name in rows})
    return {
        "recordings": {name: summary(found) for name, found in rows.items()},
        "activities": {
            activity: summary([r for name, found in rows.items() if name.endswith(activity) for r in found])
            for activity in activities
        },
        "all": summary([row for found in rows.values() for row in found]),
    }


def vicarppg2(folder: Path, options: TraceOptions) -> dict[str, Any]:
    """Return rates, interval errors and variability against the marked peaks."""
    table = {}
    for file in sorted(folder.glob("*_rgb_fhck.csv")):
        name = file.name.removesuffix("_rgb_fhck.csv")
        reference = numbers(folder / f"{name}_ppg.csv")
        marks_s = refined_marks(reference)
        face = run_trace_file(file, options, None).faces[0]
        errors_s = interval_errors_s(face.beats_s, marks_s)
        ratios = variability_ratios(face.hrv, face.beats_s, marks_s)
        true = hrv(marks_s)
        table[name] = summary(window_rows(face, by_beats(marks_s))) | {
            "beats": len(face.beats_s),
            "marks": len(marks_s),
            "intervals": len(errors_s),
            "interval_mae_ms": rounded(1000 * np.abs(errors_s)),
            "rmssd_of_marks_ms": None if true is None else true.rmssd_ms,
            "sdnn_of_marks_ms": None if true is None else true.sdnn_ms,
            **{f"{key[:-3]}_ratio": value for key, value in ratios.items()},
            "limits": {key: limit.name for key, limit in face.hrv_limits.items()},
        }
    return table


def refined_marks(reference: FloatArray) -> FloatArray:
    """Return the times of marked peaks (T,3: t_ms, ppg, peak), interpolated between samples by a parabola."""
    t_s, ppg = reference[:, 0] / 1000, reference[:, 1]
    at = np.flatnonzero(reference[:, 2] > 0)
    at = at[(at > 0) & (at < len(ppg) - 1)]
    left, top, right = ppg[at - 1], ppg[at], ppg[at + 1]
    bend = left - 2 * top + right
    shift = np.divide(0.5 * (left - right), bend, out=np.zeros(len(at)), where=bend < 0)
    step_s = float(np.median(np.diff(t_s)))
    return t_s[at] + np.clip(shift, -1, 1) * step_s


def bp4d(folder: Path, options: TraceOptions) -> dict[str, Any]:
    """Return rates against the beats of the blood pressure."""
    pressure = np.loadtxt(folder / "reference_bp_1000hz.txt")[::10]
    wave = Waveform(pressure, 100.0, 0.0, np.ones(len(pressure), bool))
    face = run_trace_file(folder / "rgb.csv", options, None).faces[0]
    return summary(window_rows(face, by_beats(rate.find_beats(wave))))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("PHASE_TRACES")
    parser.add_argument("folder", type=Path, nargs="?" if default else None, default=default)
    parser.add_argument("--method", default="pos")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = TraceOptions(options.method)
    parts = {"lgi_ppgi": lgi_ppgi, "vicarppg2": vicarppg2, "bp4d": bp4d}
    found = {
        name: part(options.folder / name, chosen)
        for name, part in parts.items()
        if (options.folder / name).is_dir()
    }
    if not found:
        parser.error(f"{options.folder}: holds none of {', '.join(parts)}")
    document = {"command": f"python benchmarks/traces.py FOLDER --method {options.method}", **found}
    print(dump_json(document))
    if options.out is not None:
        write_json(options.out, document)


if __name__ == "__main__":
    main()
