"""The speed benchmarks: what each one measures, and the limits that its figures must keep.

CPU times are of whole processes, start included, unless the text says otherwise. Every ratio is formed within
one round, whose variants run one after the other on the same machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from . import clips
from .processes import PHASE, ROOT, Usage, run, run_script
from .store import Benchmark, Figure, Round

NETWORK = "phasenet-stream"
Command: TypeAlias = list[str | Path]
_DECODE = """
import av, sys, time
with av.open(sys.argv[1]) as container:
    stream = container.streams.video[0]
    stream.codec_context.thread_count = int(sys.argv[2])
    before, count = time.process_time(), 0
    for picture in container.decode(stream):
        count += 1
print(count, time.process_time() - before)
"""
_STEP = """
import json, sys, time
import numpy as np
from phase_rppg.infer import onnx
from phase_rppg.nn import build, complexity
network, rng = onnx.load(sys.argv[1]), np.random.default_rng(0)
crops = rng.integers(0, 256, (300, network.size, network.size, 3), dtype=np.uint8)
matrix = rng.standard_normal((1024, 1024)).astype(np.float32)
def cpu_s(work):
    before = time.process_time()
    work()
    return time.process_time() - before
def steps(chunk):
    for first in range(0, len(crops), chunk):
        network.step(crops[first:first + chunk])
steps(30)
found = {f"step of {chunk}": 1000 * min(cpu_s(lambda: steps(chunk)) for _ in range(3)) / len(crops)
         for chunk in (1, 6, 30)}
product_s = min(cpu_s(lambda: matrix @ matrix) for _ in range(10))
macs = complexity.step_macs(build(sys.argv[1], size=network.size), network.size)
found["roofline GFLOP/s"] = 2 * 1024**3 / product_s / 1e9
found["MACs"] = macs
found["share of the roofline"] = 100 * 2 * macs / (found["step of 30"] / 1000) / (2 * 1024**3 / product_s)
print(json.dumps(found))
"""
_CLIP = """
import io, json, sys, time, warnings
import numpy as np
import onnxruntime
import torch
from phase_rppg.nn import build
from phase_rppg.train.export import OPSET
class Wave(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network
    def forward(self, pixels):
        return self.network(pixels).wave
pixels = np.random.default_rng(0).integers(0, 256, (1, 128, 128, 128, 3), dtype=np.uint8)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
best = {}
warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(Wave(build(name, size=128).eval()), (torch.from_numpy(pixels),), file,
                          input_names=["pixels"], opset_version=OPSET, dynamo=False)
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    times = []
    for _ in range(2):
        before = time.process_time()
        session.run(None, {"pixels": pixels})
        times.append(time.process_time() - before)
    best[name] = min(times)
print(json.dumps(best))
"""
_PREPARE = """
import sys, time
from phase_rppg.datasets.face_crops import crop_faces, resample_crops
from phase_rppg.video.decode import VideoFile
count = sum(1 for _ in resample_crops(crop_faces(VideoFile(sys.argv[1]), int(sys.argv[2])), 30.0))
print(count)
"""


def phase(*arguments: str | Path, memory: bool = False) -> Usage:
    return run([*PHASE, *arguments], memory=memory)


def measure_clip(video: Path, method: str = NETWORK, *, memory: bool = False) -> Usage:
    return phase("measure", video, "--model", method, "--json", "--quiet", memory=memory)


def decode_clip(video: Path, threads: int = 1) -> Usage:
    return run_script(_DECODE, video, str(threads))


def frames_of(decoded: Usage) -> int:
    return int(decoded.output.split()[0])


def measure_against_decoding(
    height: int, seconds: int, threads: int, *methods: str, bitrate: int = 0
) -> Callable[[Path], Round]:
    """Compare `phase measure` with a process that only decodes the same clip."""

    def measure(folder: Path) -> Round:
        video = clips.clip(folder, seconds, height, bitrate=bitrate)
        decoded = decode_clip(video, threads)
        count = frames_of(decoded)
        found = {
            "decoding ms": 1000 * decoded.cpu_s / count,
            "decoding without start ms": 1000 * float(decoded.output.split()[1]) / count,
        }
        for method in methods:
            used = measure_clip(video, method)
            found[f"{method} ms"] = 1000 * used.cpu_s / count
            found[f"{method} wall ms"] = 1000 * used.wall_s / count
            found[f"{method} ratio"] = used.cpu_s / decoded.cpu_s
        return found

    return measure


def start_up(folder: Path) -> Round:
    video = clips.clip(folder, 10)
    empty = run_script("pass")
    imported = run_script("import phase_rppg")
    shown = phase("--help")
    cold = measure_clip(video)
    return {
        "import CPU s": imported.cpu_s - empty.cpu_s,
        "help CPU s": shown.cpu_s,
        "help wall s": shown.wall_s,
        "cold start CPU s": cold.cpu_s,
        "cold start wall s": cold.wall_s,
    }


def memory(folder: Path) -> Round:
    found = {}
    for name, height, seconds in (("480p", 480, 60), ("1080p", 1080, 30), ("2160p", 2160, 10)):
        found[f"{name} MB"] = measure_clip(clips.clip(folder, seconds, height), memory=True).peak_mb
    return found


def network_step(folder: Path) -> Round:
    del folder
    return dict(json.loads(run_script(_STEP, NETWORK).output))


def paper_clip(folder: Path) -> Round:
    """Measure three networks of published sizes on one clip, exported whole and in the same way."""
    del folder
    names = ("phasenet", "phasenet-release", "physnet")
    found = json.loads(run_script(_CLIP, *names).output)
    return {
        **{f"{name} CPU s": found[name] for name in names},
        "over the release": found["phasenet-release"] / found["phasenet"],
        "over PhysNet": found["physnet"] / found["phasenet"],
    }


def batch(folder: Path) -> Round:
    """Measure copies of a short clip with one worker on one core and with two workers on two cores."""
    video, count = clips.clip(folder, 10), 16
    with tempfile.TemporaryDirectory() as temporary:
        for index in range(count):
            (Path(temporary) / f"{index}.mp4").symlink_to(video)
        used = {
            cores: run(
                ["taskset", "-c", ",".join(map(str, range(cores))), *PHASE, "measure", temporary,
                 "--model", "pos", "--workers", str(cores), "--quiet",
                 "--out", Path(temporary) / f"out{cores}"]
            )
            for cores in (1, 2)
        }  # fmt: skip
    return {
        "one core clips/s": count / used[1].wall_s,
        "two cores clips/s": count / used[2].wall_s,
        "speed-up": used[1].wall_s / used[2].wall_s,
        "CPU ratio": used[2].cpu_s / used[1].cpu_s,
    }


def prepare(folder: Path) -> Round:
    video = clips.clip(folder, 60)
    decoded = decode_clip(video)
    found = {"decoding ms": 1000 * decoded.cpu_s / frames_of(decoded)}
    for size in (36, 128):
        used = run_script(_PREPARE, video, str(size))
        found[f"{size} px ms"] = 1000 * used.cpu_s / frames_of(decoded)
        found[f"{size} px ratio"] = used.cpu_s / decoded.cpu_s
    return found


def generator(folder: Path) -> Round:
    del folder
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "speed.json"
        script = ROOT / "benchmarks" / "synth_speed.py"
        run(
            [
                sys.executable,
                script,
                "--clips",
                "12",
                "--repeats",
                "2",
                "--case",
                "raw",
                "--case",
                "h264",
                "--json",
                out,
            ],
            accepted=(0, 1),
        )
        found = json.loads(out.read_text())
    return {
        "clips per CPU-second": found["half"]["clips_per_cpu_s"],
        "raw CPU s": found["raw"]["mean_cpu_s"],
        "H.264 CPU s": found["h264"]["mean_cpu_s"],
    }


def training_step(folder: Path) -> Round:
    del folder
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "step.json"
        script = ROOT / "benchmarks" / "nn_step.py"
        run([sys.executable, script, "--repeats", "2", "--out", out], accepted=(0, 1))
        found = json.loads(out.read_text())
    return {
        "training ratio": found["forward_and_backward_speedup"],
        "forward ratio": found["forward_speedup"],
        "training CPU s": found["forward_and_backward_s_per_clip"]["ours"],
    }


def growth(values: tuple[float, ...], command: Callable[[Path, float], Command]) -> Callable[[Path], Round]:
    """Measure CPU time and memory of the command for every value."""

    def measure(folder: Path) -> Round:
        found = {}
        for value in values:
            used = run(command(folder, value), memory=True)
            found[f"CPU s at {value:g}"] = used.cpu_s
            found[f"MB at {value:g}"] = used.peak_mb
        return found

    return measure


def _measured(video: Path, *more: str) -> Command:
    return [*PHASE, "measure", video, "--json", "--quiet", *more]


def _batch_of(folder: Path, count: float) -> Command:
    group = folder / f"batch-{count:g}"
    if not group.exists():
        group.mkdir()
        for index in range(round(count)):
            (group / f"{index}.mp4").symlink_to(clips.clip(folder, 10))
    return [*PHASE, "measure", group, "--workers", "1", "--quiet", "--out", folder / f"out-{count:g}"]


_MEASURE = (
    Figure(f"{NETWORK} ms", "ms", "network, CPU per frame", ("≤", 1.5)),
    Figure(f"{NETWORK} ratio", "×", "network, over bare decoding", ("≤", 3.5)),
    Figure("pos ms", "ms", "POS, CPU per frame", ("≤", 1.0)),
    Figure("pos ratio", "×", "POS, over bare decoding"),
    Figure("decoding ms", "ms", "bare decoding, CPU per frame"),
)
BENCHMARKS = (
    Benchmark(
        "measure_480p_mid",
        "`phase measure`, 60 s, 640×480 H.264, 0.55 Mbit/s",
        measure_against_decoding(480, 60, 1, NETWORK, "pos", bitrate=550_000),
        _MEASURE,
        rounds=5,
    ),
    Benchmark(
        "measure_480p",
        "the same at 1.5 Mbit/s, a webcam with noise",
        measure_against_decoding(480, 60, 1, NETWORK, "pos"),
        _MEASURE,
        rounds=5,
    ),
    Benchmark(
        "measure_480p_low",
        "the same at 0.2 Mbit/s, which decodes fastest",
        measure_against_decoding(480, 60, 1, NETWORK, "pos", bitrate=200_000),
        _MEASURE,
    ),
    Benchmark(
        "measure_1080p",
        "`phase measure`, 30 s, 1920×1080 H.264, 12 Mbit/s",
        measure_against_decoding(1080, 30, 2, NETWORK),
        (
            Figure(f"{NETWORK} ratio", "×", "network, over bare decoding", ("≤", 1.6)),
            Figure("decoding ms", "ms", "bare decoding, CPU per frame"),
        ),
    ),
    Benchmark(
        "measure_2160p",
        "`phase measure`, 20 s, 3840×2160 H.264, 40 Mbit/s",
        measure_against_decoding(2160, 20, 2, NETWORK),
        (
            Figure(f"{NETWORK} ratio", "×", "network, over bare decoding", ("≤", 1.4)),
            Figure("decoding ms", "ms", "bare decoding, CPU per frame"),
        ),
    ),
    Benchmark(
        "start",
        "start of the command",
        start_up,
        (
            Figure("cold start CPU s", "s", "10 s clip to result, CPU", ("≤", 1.0)),
            Figure("cold start wall s", "s", "10 s clip to result, wall time"),
            Figure("import CPU s", "s", "import of the package", ("≤", 0.05)),
            Figure("help CPU s", "s", "`phase --help`, CPU", ("≤", 0.25)),
        ),
        rounds=5,
    ),
    Benchmark(
        "memory",
        "peak memory of all processes",
        memory,
        (
            Figure("480p MB", "MB", "640×480, 60 s", ("≤", 130)),
            Figure("2160p MB", "MB", "3840×2160, 10 s", ("≤", 260)),
            Figure("1080p MB", "MB", "1920×1080, 30 s"),
        ),
        rounds=2,
    ),
    Benchmark(
        "network_step",
        "bundled network, onnxruntime, one thread",
        network_step,
        (
            Figure("step of 1", "ms", "CPU per frame, frame by frame", ("≤", 0.5)),
            Figure("step of 6", "ms", "CPU per frame, six at once (camera)"),
            Figure("step of 30", "ms", "CPU per frame, 30 at once"),
            Figure(
                "share of the roofline",
                "%",
                "share of the speed of a float32 matrix product, 30 at once",
                ("≥", 35),
            ),
        ),
        needs=("torch",),
    ),
    Benchmark(
        "paper_clip",
        "clip of 128³, `phasenet`, onnxruntime, one thread",
        paper_clip,
        (
            Figure("phasenet CPU s", "s", "CPU per clip"),
            Figure("over the release", "×", "faster than the released architecture", ("≥", 3)),
            Figure("over PhysNet", "×", "faster than PhysNet", ("≥", 1)),
        ),
        rounds=1,
        needs=("torch",),
    ),
    Benchmark(
        "batch",
        "16 clips of 10 s, two cores over one",
        batch,
        (
            Figure("speed-up", "×", "wall time, one core over two", ("≥", 1.85)),
            Figure("CPU ratio", "×", "CPU time, two cores over one"),
        ),
    ),
    Benchmark(
        "prepare",
        "crops of `phase prepare`, 60 s, 640×480",
        prepare,
        (
            Figure("128 px ratio", "×", "128 px, over bare decoding", ("≤", 1.5)),
            Figure("36 px ratio", "×", "36 px, over bare decoding"),
        ),
    ),
    Benchmark(
        "generator",
        "training clips of 6 s, codec on half",
        generator,
        (Figure("clips per CPU-second", "clips/s", "clips per CPU-second", ("≥", 4)),),
        rounds=1,
    ),
    Benchmark(
        "training_step",
        "training step, compared with grouped Conv3d",
        training_step,
        (Figure("training ratio", "×", "forward and backward", ("≥", 4.5)),),
        rounds=1,
        needs=("torch",),
    ),
    Benchmark(
        "growth_length",
        "length of the video",
        growth((10, 60, 600, 3600), lambda f, v: _measured(clips.clip(f, round(v), bitrate=550_000))),
        rounds=1,
        axis="s of video",
    ),
    Benchmark(
        "growth_faces",
        "number of faces, 10 s",
        growth((1, 2, 4, 8), lambda f, v: _measured(clips.clip(f, 10, 480, 30, round(v)))),
        rounds=1,
        axis="faces",
    ),
    Benchmark(
        "growth_resolution",
        "height of the picture, 10 s",
        growth((240, 480, 720, 1080, 2160), lambda f, v: _measured(clips.clip(f, 10, round(v)))),
        rounds=1,
        axis="px",
    ),
    Benchmark(
        "growth_fps",
        "frames per second, 10 s",
        growth((15, 30, 60), lambda f, v: _measured(clips.clip(f, 10, 480, round(v)))),
        rounds=1,
        axis="frames per second",
    ),
    Benchmark(
        "growth_batch", "clips of 10 s in one batch", growth((1, 4, 16), _batch_of), rounds=1, axis="clips"
    ),
    Benchmark(
        "growth_step",
        "windows per second, 60 s",
        growth((0.5, 1, 2, 4), lambda f, v: _measured(clips.clip(f, 60), "--step", f"{1 / v:g}")),
        rounds=1,
        axis="windows per second",
    ),
)
