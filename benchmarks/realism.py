"""Compare the pulse signal of real recordings with that of synthetic clips.

    python benchmarks/realism.py ROOT [--dataset NAME] [--clips DIR] [--world W …] [--n 24] [--json OUT]

ROOT is a data set in its own layout. Real and synthetic videos are cut into the same square crops, and 10 s
of the middle of the crop (mostly skin) are averaged. The report gives medians over windows:
    green_pct       amplitude of green at the known rate, in percent of its level
    noise_pct       root mean square of the spectrum of green elsewhere in the band
    red, blue       amplitude of red and of blue at that rate, in phase with green, relative to green
    change          mean change of a pixel from frame to frame, in 8-bit steps
    unchanged       share of green pixels that do not change from frame to frame
--clips reads clips of `phase synth --as clips`. Only H.264 clips with little motion are used, because most
real recordings are like that.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import detrend

from phase_rppg.datasets import base, prepare
from phase_rppg.datasets.face_crops import crop_faces, resample_crops
from phase_rppg.fileio import read_json, write_json
from phase_rppg.signal.constants import BAND_HZ
from phase_rppg.signal.rate import spectral_bpm
from phase_rppg.synth import ClipJob, Clips

FPS, WINDOW_S, STEP_S, SIZE = 30.0, 10.0, 5.0, 64
NAMES = ("green_pct", "noise_pct", "red", "blue", "change", "unchanged")

Window = tuple[np.ndarray, float]  # pixels (T,S,S,3), the rate in Hz


def recorded(root: Path, dataset: str) -> Iterator[tuple[str, list[Window]]]:
    """Yield the windows of each recording of a data set with their reference rates."""
    for recording in base.load(dataset, root):
        ticks = list(resample_crops(crop_faces(recording.video, SIZE), FPS))
        pixels = np.stack([tick.picture for tick in ticks])
        wave, known = prepare.reference_at(recording.reference, np.array([tick.t_s for tick in ticks]))
        seen = known & np.array([tick.valid for tick in ticks])
        length, step = int(FPS * WINDOW_S), int(FPS * STEP_S)
        windows = []
        for start in range(0, len(ticks) - length + 1, step):
            part = slice(start, start + length)
            if seen[part].all():
                windows.append((pixels[part], spectral_bpm(wave[part], FPS) / 60))
        yield recording.name, windows


def stored(folder: Path, n: int) -> list[Window]:
    """Return stored H.264 clips with little motion."""
    clips = Clips(folder)
    windows: list[Window] = []
    for index in range(len(clips)):
        pixels, _, _, conditions = clips.clip(index)
        if conditions["codec"] == "h264" and conditions["motion"] == "still" and len(windows) < n:
            windows.append((np.asarray(pixels), float(clips.bpm(index).mean()) / 60))
    return windows


def made(world: str, n: int) -> list[Window]:
    """Generate clips of a world."""
    job = ClipJob(world, WINDOW_S, SIZE, seed=1)
    samples = (job.make(index) for index in range(n))
    return [(sample.pixels, float(sample.truth.bpm.mean()) / 60) for sample in samples]


def signal_figures(pixels: np.ndarray, rate_hz: float) -> list[float]:
    """Return the figures of one window in the order of NAMES."""
    side = pixels.shape[1]
    middle = pixels[:, int(0.19 * side) : int(0.81 * side), int(0.25 * side) : int(0.75 * side)]
    colours = middle.mean((1, 2), dtype=np.float64)
    relative = detrend(colours / colours.mean(0), axis=0) * np.hanning(len(colours))[:, None]
    spectrum = np.fft.rfft(relative, 8192, axis=0) * 4 / len(relative)  # a sine of amplitude 1 gives 1
    hz = np.fft.rfftfreq(8192, 1 / FPS)
    near = np.flatnonzero(np.abs(hz - rate_hz) < 0.12)
    line = spectrum[near[np.argmax(np.abs(spectrum[near, 1]))]]  # (3,) complex
    beside = (hz > BAND_HZ[0]) & (hz < BAND_HZ[1])
    for harmonic in (1, 2):
        beside &= np.abs(hz - harmonic * rate_hz) > 0.25
    change = np.diff(middle.astype(np.int16), axis=0)
    in_phase = (line * np.conj(line[1])).real / np.abs(line[1]) ** 2
    return [
        100 * float(np.abs(line[1])),
        100 * float(np.sqrt(np.mean(np.abs(spectrum[beside, 1]) ** 2))),
        float(in_phase[0]),
        float(in_phase[2]),
        float(np.abs(change).mean()),
        float((change[..., 1] == 0).mean()),
    ]


def summary(windows: list[Window]) -> dict[str, Any]:
    medians = np.median([signal_figures(*window) for window in windows], axis=0)
    return {"windows": len(windows)} | {
        name: round(float(value), 4) for name, value in zip(NAMES, medians, strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("--dataset", default="ubfc_rppg")
    parser.add_argument(
        "--clips", type=Path, action="append", default=[], help="folder of stored clips; may be repeated"
    )
    parser.add_argument(
        "--world", action="append", default=[], help="world to generate clips of; may be repeated"
    )
    parser.add_argument("--n", type=int, default=24, help="clips of each world")
    parser.add_argument("--json", type=Path, help="add the results to this file")
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    if arguments.json is not None and arguments.json.is_file():
        report = read_json(arguments.json)
    print(f"{'':28}", *(f"{name:>10}" for name in NAMES))

    def report_windows(name: str, windows: list[Window]) -> None:
        if not windows:
            return
        report[name] = summary(windows)
        print(f"{name:28}", *(f"{report[name][key]:10.3f}" for key in NAMES), flush=True)

    for name, windows in recorded(arguments.root, arguments.dataset):
        report_windows(f"{arguments.dataset}/{name}", windows)
    for folder in arguments.clips:
        report_windows(f"{Clips(folder).job['world']}, h264, still", stored(folder, arguments.n))
    for world in arguments.world:
        report_windows(world, made(world, arguments.n))
    if arguments.json is not None:
        write_json(arguments.json, report)


if __name__ == "__main__":
    main()
