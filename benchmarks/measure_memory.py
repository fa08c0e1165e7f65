"""How much memory `phase measure` takes for a minute and for an hour of video: it must be the same.

    python benchmarks/measure_memory.py [--method pos] [--minutes 60] [--container mkv] [--out FILE]

The long video is a short clip of the generator repeated without encoding it again. The real command runs in a
process of its own; what counts is the highest resident memory of it and of its decoder (VmHWM of each, read
from /proc while they run: the figures of getrusage also hold the memory of whoever started the process).
Equal runs differ by a megabyte or two, so the minute is measured several times; the hour is compared with
their median and their range. An MP4 file has a list of its frames, which its reader holds: about 36 bytes per
frame. A Matroska file (`--container mkv`) has none. What that list and the answer take is saved on the ring
of pictures between the two processes (`video/guard.py`).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from phase_rppg.fileio import dump_json, read_json, write_json

COMMAND = [sys.executable, "-c", "from phase_rppg.cli import main; main()", "measure"]
CLIP_S = 20.0
_LOOK_EVERY_S = 0.05


def peaks_mb(command: list[str], output: Path) -> tuple[float, float, int]:
    """(the command's own peak, that of its children together, exit code); stdout goes to `output`."""
    with open(output, "wb") as out:
        child = subprocess.Popen(command, stdout=out)
    peaks: dict[int, float] = {}
    while child.poll() is None:
        for pid in family(child.pid):
            if pid == child.pid or command_line(pid) != command_line(child.pid):
                peaks[pid] = max(peaks.get(pid, 0.0), high_water_mb(pid))
        time.sleep(_LOOK_EVERY_S)
    own = peaks.pop(child.pid, 0.0)
    return own, sum(peaks.values()), child.returncode


def family(pid: int) -> list[int]:
    """A process and everything it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for word in task.read_text().split():
                found += family(int(word))
        except OSError:  # it ended while we looked
            continue
    return found


def command_line(pid: int) -> bytes:
    """What a process runs; one that is just being started has its parent's, and its parent's memory."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def high_water_mb(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def make_clip(path: Path) -> None:
    """A generated face at 15 frames per second; a whole number of beats, so that it can be repeated."""
    from phase_rppg import synth
    from phase_rppg.synth.film import film
    from phase_rppg.video import write_video

    fixed = {
        "frame.face_px": 250.0, "motion.kind": "still", "light.kind": "constant", "subject.fitzpatrick": 2,
        "pulse.bpm": 72.0, "pulse.drift_bpm": 0.0, "pulse.rsa": 0.0, "pulse.amplitude": 0.015,
    }  # fmt: skip
    recording = film(synth.load("studio"), 7, 0, seconds=CLIP_S, height=480, width=640, fixed=fixed)
    every_other = (picture for i, picture in enumerate(recording.frames()) if i % 2 == 0)
    write_video(path, every_other, 15, crf=20, preset="veryfast")


def figures(minutes: float, method: str, folder: Path, container: str = "mp4") -> dict[str, Any]:
    """Peak memory of `minutes` of video."""
    from phase_rppg.video.encode import repeat_video

    video, output = folder / f"{minutes:g}.{container}", folder / "out.json"
    if not video.exists():
        repeat_video(folder / "clip.mp4", video, round(60 * minutes / CLIP_S))
    started_s = time.monotonic()
    own, children, code = peaks_mb([*COMMAND, str(video), "--method", method, "--json"], output)
    document = read_json(output)
    return {
        "minutes": minutes,
        "peak_mb": round(own, 1),
        "decoder_peak_mb": round(children, 1),
        "together_mb": round(own + children, 1),
        "exit_code": code,
        "duration_s": document["duration_s"],
        "windows": sum(len(face["windows"]) for face in document["faces"]),
        "wall_s": round(time.monotonic() - started_s, 1),
    }


def compared(short: list[dict[str, Any]], long: dict[str, Any]) -> dict[str, Any]:
    """By how much the long run lies above the middle of the short ones, and how far those lie apart."""
    found: dict[str, Any] = {}
    for key in ("peak_mb", "decoder_peak_mb", "together_mb"):
        runs = [run[key] for run in short]
        found[key] = {
            "short_median": round(statistics.median(runs), 1),
            "short_range": [min(runs), max(runs)],
            "long": long[key],
            "grown": round(long[key] - statistics.median(runs), 1),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="length of the long video")
    parser.add_argument("--repeats", type=int, default=3, help="runs of the minute")
    parser.add_argument("--method", action="append", help="may be repeated; default: pos and the network")
    parser.add_argument("--container", choices=["mp4", "mkv"], default="mp4", help="of the video files")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file, beside those in it")
    given = parser.parse_args()
    found = read_json(given.out)["methods"] if given.out is not None and given.out.exists() else {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_clip(folder / "clip.mp4")
        for method in given.method or ["pos", "phasenet-stream"]:
            name = method if given.container == "mp4" else f"{method} {given.container}"
            short = [figures(1.0, method, folder, given.container) for _ in range(given.repeats)]
            long = figures(given.minutes, method, folder, given.container)
            found[name] = {**compared(short, long), "runs": [*short, long]}
            print(dump_json({name: found[name]}), flush=True)
    if given.out is not None:
        write_json(given.out, {"command": "python benchmarks/measure_memory.py", "methods": found})


if __name__ == "__main__":
    main()
