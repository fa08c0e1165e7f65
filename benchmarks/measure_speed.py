"""How fast and how large `measure` is, against decoding alone, in one run on one machine.

    python benchmarks/measure_speed.py --out measure_speed.json            # a clip of the generator
    python benchmarks/measure_speed.py --video face.mp4 --out speed.json   # your own

Every figure comes from a fresh process. Decoding alone is PyAV in one process, every frame to RGB. Both are
run in turn, `--repeats` times, and the ratio is that of the smallest CPU times: other work on the machine can
only add to them.
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
from phase_rppg.pipeline.config import SessionConfig
from phase_rppg.pipeline.offline import measure
config = SessionConfig(method=sys.argv[2])
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


def make_clip(path: Path, seconds: float) -> None:
    """A 640×480 clip of the generator."""
    from phase_rppg.synth import sample, world
    from phase_rppg.video.encode import write_video

    wild = world.load("wild")
    staged = sample.stage(wild, 1, 0, seconds, shape=(480, 640), fixed={"people": 1, "fps": 30.0})
    write_video(path, sample.filmed(staged, wild, 1, 0), t_s=staged.scene.t_s, crf=20, preset="veryfast")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--video", type=Path, help="a video to use instead of a generated clip of 10 s")
    parser.add_argument("--method", default="pos")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        video = given.video or Path(folder) / "clip.mp4"
        if given.video is None:
            make_clip(video, 10.0)
        pairs = [
            (run(DECODE, str(video)), run(MEASURE, str(video), given.method)) for _ in range(given.repeats)
        ]
    decode_s = min(decode["cpu_s"] for decode, _ in pairs)
    measure_s = min(measured["cpu_s"] for _, measured in pairs)
    frames = pairs[0][1]["frames"]
    figures = {
        "command": "python benchmarks/measure_speed.py",
        "method": given.method,
        "frames": frames,
        "faces": pairs[0][1]["faces"],
        "decode_cpu_ms_per_frame": 1000 * decode_s / frames,
        "measure_cpu_ms_per_frame": 1000 * measure_s / frames,
        "cpu_ratio": measure_s / decode_s,
        "wall_s_with_start_up": min(measured["wall_s"] for _, measured in pairs),
        "peak_mb_with_decoder": max(measured["peak_mb"] for _, measured in pairs),
        "torch_imported": any(measured["torch"] for _, measured in pairs),
    }
    print(dump_json(figures))
    if given.out is not None:
        write_json(given.out, figures)


if __name__ == "__main__":
    main()
