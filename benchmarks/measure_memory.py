"""Compare the memory of `phase measure` for a minute and for an hour of video; it must be equal.

    python benchmarks/measure_memory.py [--model pos] [--minutes 60] [--container mkv] [--out FILE]

The long video repeats a short synthetic clip without encoding it again. The command runs in its own process.
The figure is the peak resident memory of the command and its decoder (VmHWM of each, read from /proc while
they run; getrusage would include the memory of the parent process). Equal runs differ by a megabyte or two,
so the minute is measured several times and the hour is compared with their median and range.

The reader of an MP4 file holds an index of about 36 bytes per frame; a Matroska file (`--container mkv`) has
none. The buffer of frames between the two processes shrinks by the size of index and result
(`video/guard.py`).
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
_POLL_INTERVAL_S = 0.05


def peaks_mb(command: list[str], output: Path) -> tuple[float, float, int]:
    """Return (peak of the command, sum of the peaks of its children, exit code); write stdout to `output`."""
    with open(output, "wb") as out:
        child = subprocess.Popen(command, stdout=out)
    peaks: dict[int, float] = {}
    while child.poll() is None:
        for pid in process_tree(child.pid):
            if pid == child.pid or command_line(pid) != command_line(child.pid):
                peaks[pid] = max(peaks.get(pid, 0.0), high_water_mb(pid))
        time.sleep(_POLL_INTERVAL_S)
    own = peaks.pop(child.pid, 0.0)
    return own, sum(peaks.values()), child.returncode


def process_tree(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for word in task.read_text().split():
                found += process_tree(int(word))
        except OSError:  # the process has ended
            continue
    return found


def command_line(pid: int) -> bytes:
    """Return the command line. A process that is just starting has that of its parent, and its memory."""
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
    """Write a synthetic face at 15 frames per second with a whole number of beats, so that it can repeat."""
    from phase_rppg import synth
    from phase_rppg.synth.recording import make_recording
    from phase_rppg.video import write_video

    fixed = {
        "frame.face_px": 250.0, "motion.kind": "still", "light.kind": "constant", "subject.fitzpatrick": 2,
        "pulse.bpm": 72.0, "pulse.drift_bpm": 0.0, "pulse.rsa": 0.0, "pulse.amplitude": 0.015,
    }  # fmt: skip
    recording = make_recording(synth.load("studio"), 7, 0, seconds=CLIP_S, height=480, width=640, fixed=fixed)
    every_other = (picture for i, picture in enumerate(recording.frames()) if i % 2 == 0)
    write_video(path, every_other, 15, crf=20, preset="veryfast")


def figures(minutes: float, method: str, folder: Path, container: str = "mp4") -> dict[str, Any]:
    """Return the peak memory for `minutes` of video."""
    from phase_rppg.video.encode import repeat_video

    video, output = folder / f"{minutes:g}.{container}", folder / "out.json"
    if not video.exists():
        repeat_video(folder / "clip.mp4", video, round(60 * minutes / CLIP_S))
    started_s = time.monotonic()
    own, children, code = peaks_mb([*COMMAND, str(video), "--model", method, "--json"], output)
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
    """Compare the long run with the median and range of the short runs."""
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
    parser.add_argument("--repeats", type=int, default=3, help="runs of the short video")
    parser.add_argument(
        "--model", dest="method", action="append", help="may be repeated; default: pos and the network"
    )
    parser.add_argument(
        "--container", choices=["mp4", "mkv"], default="mp4", help="format of the video files"
    )
    parser.add_argument("--out", type=Path, help="add the figures to this JSON file")
    given = parser.parse_args()
    found = read_json(given.out)["methods"] if given.out is not None and given.out.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
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
