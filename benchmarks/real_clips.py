"""POS and CHROM in the pipeline against plain ones: the same recordings, windows and rate estimator.

    python benchmarks/real_clips.py ROOT [--out results.json]

ROOT holds `ubfc_rppg/` (in its own layout) and, if there is one, `pure/` with its recordings as folders or as
single videos `pure_SS-TT_*.mp4` beside them. The plain implementation is what most people would write: the
face box of the first frame enlarged ×1.5 and held, the mean of all its pixels, the equations of the paper.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from phase_rppg import registry
from phase_rppg.datasets import base, crew, generic, reference
from phase_rppg.evaluate import metrics, protocol
from phase_rppg.face.detect import Detector
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.signal import rate, resample
from phase_rppg.types import FrameSource, Waveform

WINDOW_S, STEP_S, FPS = 10.0, 1.0, 30.0
BOX_SCALE = 1.5
PLAIN_WINDOW_S = 1.6


def plain_trace(video: FrameSource) -> tuple[np.ndarray, np.ndarray]:
    """Frame times (T,) and mean colours (T,3) of the enlarged box of the first frame."""
    rows: slice | None = None
    columns: slice | None = None
    t_s, colours = [], []
    for frame in video.frames():
        if rows is None or columns is None:
            found = Detector().detect(frame.rgb)
            x, y, width, height = max(found, key=lambda d: d.box[2] * d.box[3]).box
            centre_x, centre_y = x + width / 2, y + height / 2
            half_x, half_y = BOX_SCALE * width / 2, BOX_SCALE * height / 2
            rows = slice(max(0, round(centre_y - half_y)), round(centre_y + half_y))
            columns = slice(max(0, round(centre_x - half_x)), round(centre_x + half_x))
        t_s.append(frame.t_s)
        colours.append(frame.rgb[rows, columns].mean((0, 1)))
    return np.array(t_s), np.array(colours)


def plain_pos(rgb: np.ndarray) -> np.ndarray:
    """Algorithm 1 of Wang et al. 2017, as printed."""
    length = int(PLAIN_WINDOW_S * FPS)
    wave = np.zeros(len(rgb))
    for start in range(len(rgb) - length + 1):
        window = rgb[start : start + length]
        c = (window / window.mean(0)).T
        s = np.array([[0, 1, -1], [-2, 1, 1]]) @ c
        h = s[0] + s[0].std() / s[1].std() * s[1]
        wave[start : start + length] += h - h.mean()
    return wave


def plain_chrom(rgb: np.ndarray) -> np.ndarray:
    """De Haan and Jeanne 2013: X and Y of windows of 1.6 s, overlapped by half with a Hann window."""
    length = int(PLAIN_WINDOW_S * FPS) // 2 * 2
    hann = np.hanning(length + 1)[:-1]
    wave = np.zeros(len(rgb))
    for start in range(0, len(rgb) - length + 1, length // 2):
        window = rgb[start : start + length]
        red, green, blue = (window / window.mean(0)).T
        x, y = 3 * red - 2 * green, 1.5 * red + green - 1.5 * blue
        s = x - x.std() / y.std() * y
        wave[start : start + length] += hann * (s - s.mean())
    return wave


PLAIN: dict[str, Callable[[np.ndarray], np.ndarray]] = {"pos": plain_pos, "chrom": plain_chrom}


def plain_errors(dataset: str, found: base.Found) -> dict[str, list[float]]:
    """|error| in bpm of every window that has a reference, per method."""
    recording = base.read(registry.load("datasets", dataset), found)
    t_s, colours = plain_trace(recording.video)
    uniform, start_s, valid = resample.to_uniform(t_s, colours, FPS)
    duration_s = float(t_s[-1] - t_s[0] + np.median(np.diff(t_s)))
    errors: dict[str, list[float]] = {}
    for name, extract in PLAIN.items():
        wave = Waveform(extract(uniform), FPS, start_s, valid)
        errors[name] = []
        for index in range(int((duration_s - WINDOW_S) / STEP_S + 1e-6) + 1):
            low, high = index * STEP_S, index * STEP_S + WINDOW_S
            truth = reference.window_bpm(recording.reference, low, high)
            peak = rate.spectral_peak(reference.window_of(wave, low, high))
            if truth is not None and peak is not None:
                errors[name].append(abs(peak.bpm - truth))
    return errors


def recordings(root: Path) -> list[tuple[str, base.Found]]:
    """What is there: UBFC-rPPG, whole PURE recordings, and single PURE videos with their reference."""
    every: list[tuple[str, base.Found]] = []
    if (root / "ubfc_rppg").is_dir():
        every += [("ubfc_rppg", found) for found in base.find("ubfc_rppg", root / "ubfc_rppg")]
    for video in sorted((root / "pure").glob("pure_*.mp4")) if (root / "pure").is_dir() else []:
        if match := re.match(r"pure_(\d\d-\d\d)_", video.name):
            name = match.group(1)
            every.append(("folder", generic.pair(video, root / "pure" / name / f"{name}.json")))
    return every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    chosen = recordings(arguments.root)
    if not chosen:
        parser.error(f"no recordings in {arguments.root}")
    started_s = time.time()
    rows: dict[str, dict[str, object]] = {found.name: {} for _, found in chosen}
    totals: dict[str, dict[str, list[float]]] = {}
    jobs = [crew.Job(found.name, (dataset, found)) for dataset, found in chosen]
    for job, result in crew.run(plain_errors, jobs, arguments.workers):
        if isinstance(result, Exception):
            raise result
        for name, errors in result.items():
            rows[job.name][f"plain {name}"] = {"mae": float(np.mean(errors)), "windows": len(errors)}
            totals.setdefault(f"plain {name}", {}).setdefault("mae", []).append(float(np.mean(errors)))
    for name in PLAIN:
        for dataset in dict.fromkeys(dataset for dataset, _ in chosen):
            found = [one for other, one in chosen if other == dataset]
            evaluation = protocol.evaluate(
                dataset, found, name, window_s=WINDOW_S, step_s=STEP_S, workers=arguments.workers
            )
            for result in evaluation.results:
                scores = protocol.score(result.rows)
                gated = scores.gated.mae.value if scores.gated is not None else None
                ungated = scores.ungated.mae.value if scores.ungated is not None else None
                rows[result.name][f"pipeline {name}"] = {
                    "mae": ungated, "windows": scores.windows, "found": scores.found,
                    "gated_mae": gated, "coverage": scores.coverage,
                }  # fmt: skip
                shown = [abs(r.error_bpm) for r in result.rows if r.shown and r.error_bpm is not None]
                total = totals.setdefault(f"pipeline {name}", {"mae": [], "shown": [], "coverage": []})
                total["mae"].append(float("inf") if ungated is None else ungated)
                total["shown"] += shown
                total["coverage"].append(scores.coverage)
    summary = {
        name: {
            "mean_of_recordings_mae": float(np.mean(total["mae"])),
            "shown_windows": len(total.get("shown", [])),
            "shown_windows_mae": float(np.mean(total["shown"])) if total.get("shown") else None,
            "mean_coverage": float(np.mean(total["coverage"])) if total.get("coverage") else 1.0,
        }
        for name, total in totals.items()
    }
    document = {
        "what": "MAE in bpm over windows of 10 s, step 1 s, against the contact PPG by the same estimator",
        "within_bpm": metrics.WITHIN_BPM,
        "recordings": rows,
        "summary": summary,
        "seconds": round(time.time() - started_s, 1),
    }
    print(dump_json(summary))
    if arguments.out is not None:
        write_json(arguments.out, document)


if __name__ == "__main__":
    main()
