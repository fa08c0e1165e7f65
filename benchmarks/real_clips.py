"""Compare POS and CHROM of this package with plain implementations on real recordings.

    python benchmarks/real_clips.py ROOT [--out results.json] [--cache DIR]

Both use the same recordings, windows and rate estimators. Every window with a reference counts; for this
package the windows that the gate shows are also reported. There are two conventions: `ours` is the
interpolated peak for the plain waveform and the number of the session with its rate track; `toolbox` is the
padded periodogram of the rPPG-Toolbox on both waveforms and on the reference. With --cache an interrupted run
resumes, as long as the code is unchanged.

ROOT contains `ubfc_rppg/` in its own layout and optionally `pure/` with recordings as folders or as single
videos `pure_SS-TT_*.mp4` in it. The plain implementation uses the face box of the first frame, the mean of
all its pixels and the equations of the paper. "×1.5" enlarges the box as the rPPG-Toolbox does.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import phase_rppg
from phase_rppg import registry
from phase_rppg.datasets import base, folder, reference_rate
from phase_rppg.evaluate import session_evaluation
from phase_rppg.face.detector import Detector
from phase_rppg.fileio import dump_json, read_json, write_json
from phase_rppg.measurement.measure import MeasureOptions, run
from phase_rppg.session.results import Result
from phase_rppg.signal import rate, resample
from phase_rppg.types import Estimate, FloatArray, FrameSource, Recording, Waveform

WINDOW_S, STEP_S, FPS = 10.0, 1.0, 30.0
BOX_SCALES = {"": 1.0, " ×1.5": 1.5}
PLAIN_WINDOW_S = 1.6


def plain_traces(video: FrameSource) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return frame times (T,) and the mean colours (T,3) in the box of the first frame, by box size."""
    boxes: dict[str, tuple[slice, slice]] = {}
    t_s: list[float] = []
    colours: dict[str, list[np.ndarray]] = {name: [] for name in BOX_SCALES}
    for frame in video.frames():
        if not boxes:
            found = Detector().detect(frame.rgb)
            x, y, width, height = max(found, key=lambda d: d.box[2] * d.box[3]).box
            for name, scale in BOX_SCALES.items():
                half_x, half_y = scale * width / 2, scale * height / 2
                boxes[name] = (
                    slice(max(0, round(y + height / 2 - half_y)), round(y + height / 2 + half_y)),
                    slice(max(0, round(x + width / 2 - half_x)), round(x + width / 2 + half_x)),
                )
        t_s.append(frame.t_s)
        for name, box in boxes.items():
            colours[name].append(frame.rgb[box].mean((0, 1)))
    return np.array(t_s), {name: np.array(rows) for name, rows in colours.items()}


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
# Packages whose code determines a result.
PACKAGES = ("signal", "video", "face", "methods", "session", "measurement", "datasets", "evaluate")


def evaluate_plain(recording: Recording) -> dict[str, dict[str, list[float]]]:
    """Return |error| in bpm of every window with a reference, by method and convention."""
    t_s, traces = plain_traces(recording.video)
    duration_s = float(t_s[-1] - t_s[0] + np.median(np.diff(t_s)))
    found: dict[str, dict[str, list[float]]] = {}
    for size, colours in traces.items():
        uniform, start_s, valid = resample.to_uniform(t_s, colours, FPS)
        for name, extract in PLAIN.items():
            wave = Waveform(extract(uniform), FPS, start_s, valid)
            ours: list[float] = []
            for low, high in windows(duration_s):
                truth = reference_rate.window_bpm(recording.reference, low, high)
                peak = rate.spectral_peak(reference_rate.window_of(wave, low, high))
                if truth is not None and peak is not None:
                    ours.append(abs(peak.bpm - truth))
            errors = {"ours": ours, "toolbox": toolbox_errors(recording, wave, duration_s)}
            found[f"{name}{size}"] = errors
    return found


def evaluate_session(recording: Recording, name: str) -> dict[str, Any]:
    """Return |error| in bpm of every window by both conventions, and of the shown windows."""
    source = base.CompleteVideo(recording.video, recording.name)
    result = run(source, MeasureOptions(name, WINDOW_S, STEP_S))
    rows = session_evaluation.compare_with_reference(recording, result, WINDOW_S, STEP_S).rows
    wave = result.faces[0].wave if result.faces else None
    return {
        "windows": len(rows),
        "ours": [abs(r.error_bpm) for r in rows if r.error_bpm is not None],
        "shown": [abs(r.error_bpm) for r in rows if r.shown and r.error_bpm is not None],
        "toolbox": [] if wave is None else toolbox_errors(recording, wave, result.duration_s),
        "interval": interval_facts(recording, result),
    }


def interval_facts(recording: Recording, result: Result) -> list[tuple[float, float, float]]:
    """Return (|error|, half of the interval, sigma) in bpm of every shown window of the main face."""
    found = []
    for window in result.faces[0].windows if result.faces else ():
        truth = reference_rate.window_bpm(recording.reference, window.start_s, window.end_s)
        reading = window.reading
        if truth is not None and isinstance(reading, Estimate) and window.peak is not None:
            half = (reading.high - reading.low) / 2
            found.append((abs(reading.bpm - truth), half, window.peak.sigma_bpm))
    return found


def toolbox_errors(recording: Recording, wave: Waveform, duration_s: float) -> list[float]:
    errors = []
    for low, high in windows(duration_s):
        label = reference_rate.window_of(recording.reference, low, high)
        part = reference_rate.window_of(wave, low, high)
        if reference_rate.window_bpm(recording.reference, low, high) is not None and len(part.values) > FPS:
            errors.append(
                abs(
                    rate.toolbox_bpm(without_gaps(part), part.fps)
                    - rate.toolbox_bpm(without_gaps(label), label.fps)
                )
            )
    return errors


def without_gaps(wave: Waveform) -> FloatArray:
    """Return the values with gaps interpolated, because the filters of the toolbox need all samples."""
    return resample.interpolate_invalid(wave.values, wave.valid & np.isfinite(wave.values))


def windows(duration_s: float) -> list[tuple[float, float]]:
    starts = np.arange(int((duration_s - WINDOW_S) / STEP_S + 1e-6) + 1) * STEP_S
    return [(float(s), float(s) + WINDOW_S) for s in starts]


def recordings(root: Path) -> list[tuple[str, base.Found]]:
    """List the recordings: UBFC-rPPG and single PURE videos with their reference."""
    every: list[tuple[str, base.Found]] = []
    if (root / "ubfc_rppg").is_dir():
        every += [("ubfc_rppg", found) for found in base.find("ubfc_rppg", root / "ubfc_rppg")]
    for video in sorted((root / "pure").glob("pure_*.mp4")) if (root / "pure").is_dir() else []:
        if match := re.match(r"pure_(\d\d-\d\d)_", video.name):
            name = match.group(1)
            every.append(("folder", folder.pair(video, root / "pure" / name / f"{name}.json")))
    return every


def evaluate(dataset: str, found: base.Found) -> dict[str, Any]:
    """Evaluate all methods on one recording: "plain pos", "pipeline pos", …"""
    recording = base.read(registry.load("datasets", dataset), found)
    plain = {f"plain {name}": errors for name, errors in evaluate_plain(recording).items()}
    return plain | {f"pipeline {name}": evaluate_session(recording, name) for name in PLAIN}


def code_hash() -> str:
    """Return a hash of the code that determines a result."""
    folder, digest = Path(phase_rppg.__file__).parent, hashlib.sha256(Path(__file__).read_bytes())
    for file in sorted(
        f for package in PACKAGES for f in (folder / package).rglob("*") if f.suffix in (".py", ".json")
    ):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def mean(errors: list[float]) -> float | None:
    return round(float(np.mean(errors)), 3) if errors else None


def row(errors: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one method on one recording."""
    found = {
        "windows": len(errors["ours"]),
        "mae": mean(errors["ours"]),
        "mae_toolbox": mean(errors["toolbox"]),
    }
    if "shown" in errors:
        found["windows"] = errors["windows"]
        found["found"] = len(errors["ours"])
        found["shown"], found["mae_shown"] = len(errors["shown"]), mean(errors["shown"])
    return found


def summarise(evaluated: list[dict[str, Any]]) -> dict[str, Any]:
    """Average over recordings; pool the shown windows."""
    table: dict[str, Any] = {}
    for name in evaluated[0]:
        each = [one[name] for one in evaluated]
        table[name] = {
            f"mean_of_recordings_mae_{convention}": mean([float(np.mean(e[convention])) for e in each])
            for convention in ("ours", "toolbox")
        }
        if "shown" in each[0]:
            shown = [error for e in each for error in e["shown"]]
            table[name]["shown_windows"] = len(shown)
            table[name]["shown_windows_mae"] = mean(shown)
            table[name]["coverage"] = round(len(shown) / sum(e["windows"] for e in each), 4)
            inside = [error <= half for e in each for error, half, _ in e["interval"]]
            table[name]["truth_within_interval"] = mean([float(one) for one in inside])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cache", type=Path, help="store the errors of each recording here to resume later")
    arguments = parser.parse_args()
    chosen = recordings(arguments.root)
    if not chosen:
        parser.error(f"no recordings in {arguments.root}")
    code = code_hash()
    evaluated: dict[str, dict[str, Any]] = {}
    for dataset, found in chosen:
        kept = arguments.cache / f"{found.name}-{code}.json" if arguments.cache is not None else None
        if kept is not None and kept.exists():
            evaluated[found.name] = read_json(kept)
        else:
            evaluated[found.name] = evaluate(dataset, found)
            if kept is not None:
                write_json(kept, evaluated[found.name])
        print(found.name, {name: mean(errors["ours"]) for name, errors in evaluated[found.name].items()},
              file=sys.stderr, flush=True)  # fmt: skip
    document = {
        "command": "python benchmarks/real_clips.py ROOT",
        "what": "MAE in bpm over windows of 10 s, step 1 s, against the contact PPG by the same estimator",
        "recordings": {
            name: {method: row(errors) for method, errors in one.items()} for name, one in evaluated.items()
        },
        "summary": summarise(list(evaluated.values())),
    }
    print(dump_json(document["summary"]))
    if arguments.out is not None:
        write_json(arguments.out, document)


if __name__ == "__main__":
    main()
