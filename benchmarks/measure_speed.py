"""How fast and how large `measure` is, against decoding alone, in one run on one machine.

    python benchmarks/measure_speed.py --out measure_speed.json            # clips of the generator
    python benchmarks/measure_speed.py --video face.mp4 --out speed.json   # your own

Every figure comes from a fresh process. Decoding alone is PyAV in one process, every frame to RGB. Both are
run in turn, `--repeats` times, and the ratio is that of the smallest CPU times: other work on the machine can
only add to them. The ratio is that of a minute of video; start-up is measured on ten seconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from phase_rppg.fileio import dump_json, write_json

DECODE = """
import av, json, resource, sys
def cpu():
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in use)
before, count = cpu(), 0
with av.open(sys.argv[1]) as container:
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    for picture in container.decode(stream):
        picture.to_ndarray(format="rgb24")
        count += 1
print(json.dumps({"cpu_s": cpu() - before, "frames": count}))
"""
MEASURE = """
import json, resource, sys, time
start = time.perf_counter()
def cpu():
    use = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in use)
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.measurement.offline import measure
config = MeasureOptions(sys.argv[2]).config()
before = cpu()
result = measure(sys.argv[1], config)
mb = [resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"cpu_s": cpu() - before, "frames": result.frame_count, "faces": len(result.faces),
    "wall_s": time.perf_counter() - start, "peak_mb": sum(mb), "torch": "torch" in sys.modules}))
"""


def run(script: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def make_clips(folder: Path) -> None:
    """A 640×480 clip of the generator, 10 s long, and the same six times over."""
    from phase_rppg import synth
    from phase_rppg.synth.film import film
    from phase_rppg.video import VideoFile, write_video

    fixed = {"frame.face_px": 200.0, "motion.kind": "still", "light.kind": "constant"}
    recording = film(synth.load("studio"), 7, 0, seconds=10.0, height=480, width=640, fixed=fixed)
    write_video(folder / "short.mp4", recording.frames(), t_s=recording.t_s, crf=20, preset="veryfast")
    again = (frame.rgb for _ in range(6) for frame in VideoFile(folder / "short.mp4").frames())
    write_video(folder / "long.mp4", again, 30, crf=20, preset="veryfast")


def figures(short: Path, long: Path, method: str, repeats: int) -> dict[str, Any]:
    pairs = [(run(DECODE, str(long)), run(MEASURE, str(long), method)) for _ in range(repeats)]
    starts = [run(MEASURE, str(short), method) for _ in range(repeats)]
    decode_s = min(decode["cpu_s"] for decode, _ in pairs)
    measure_s = min(measured["cpu_s"] for _, measured in pairs)
    frames = pairs[0][1]["frames"]
    return {
        "command": "python benchmarks/measure_speed.py",
        "method": method,
        "frames": frames,
        "faces": pairs[0][1]["faces"],
        "decode_cpu_ms_per_frame": 1000 * decode_s / frames,
        "measure_cpu_ms_per_frame": 1000 * measure_s / frames,
        "cpu_ratio": measure_s / decode_s,
        "short_clip_frames": starts[0]["frames"],
        "short_clip_cpu_s": min(start["cpu_s"] for start in starts),
        "short_clip_wall_s": min(start["wall_s"] for start in starts),
        "peak_mb_with_decoder": max(measured["peak_mb"] for _, measured in pairs),
        "torch_imported": any(measured["torch"] for _, measured in pairs),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--video", type=Path, help="a video to use instead of generated clips")
    parser.add_argument("--method", default="pos")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make is not None:
        return make_clips(given.make)
    with tempfile.TemporaryDirectory() as folder:
        short, long = given.video, given.video
        if (
            given.video is None
        ):  # made by another process: a large parent would count in the children's memory
            subprocess.run([sys.executable, __file__, "--make", folder], check=True)
            short, long = Path(folder) / "short.mp4", Path(folder) / "long.mp4"
        found = figures(short, long, given.method, given.repeats)
    print(dump_json(found))
    if given.out is not None:
        write_json(given.out, found)


if __name__ == "__main__":
    main()
