"""Mutational fuzzing of video files: `phase measure` must stay within its documented behaviour.

    python fuzz/containers.py --n 200 --seed 1
    python fuzz/containers.py --n 3000 --seed 1 --resume --out benchmarks/results/fuzz.json
    python fuzz/containers.py --seed 1 --only 17 --keep DIR

The bases are videos of one face with a pulse of 72 bpm in six container formats. All of them have a reading,
so that a damaged file can also show a wrong rate. A case is one base with one to four mutations. It depends
only on the seed and its number, so that `--only` reproduces it. Each case runs in its own process, within
limits of time and memory.

Findings (the exit code of this program is 1 if there is one):

    traceback     standard error holds a traceback or reports an internal error
    hang          the command took longer than TIME_LIMIT_S
    memory        a process of the command needed more than MEMORY_LIMIT_MB
    exit code     another exit code than 0 (reading), 3 (no reading) or 4 (unusable file)
    output        the output does not match the exit code
    wrong rate    a shown rate differs by more than 5 bpm from the pulse, on the clock that the file states

A mutation can change the frame rate in the header. The file then is a valid video that plays faster or
slower, and the pulse follows its clock. Such cases are counted as "changed clock" and are not findings.
A mutation can also repeat whole pictures. If half a second of different pictures occurs twice, the video
shows another rhythm than its base. Such cases are counted as "repeated pictures" and are not findings.
This class was added after two wrong rates; whether the rate is that of the repetition is not checked.
`--retest` runs the cases with findings of a recorded run again, with the present code.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # drawing.py

# suffix → (container, encoder, pixel format, options of the encoder)
FORMATS: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "mp4": ("mp4", "libx264", "yuv420p", {"crf": "14", "preset": "veryfast"}),
    "mkv": ("matroska", "libx264", "yuv420p", {"crf": "14", "preset": "veryfast"}),
    "avi": ("avi", "mpeg4", "yuv420p", {"qmin": "3", "qmax": "3"}),
    "mov": ("mov", "mjpeg", "yuvj420p", {"qmin": "4", "qmax": "4"}),
    "webm": ("webm", "libvpx", "yuv420p", {"b": "3M", "deadline": "realtime", "cpu-used": "8"}),
    "ts": ("mpegts", "libx264", "yuv420p", {"crf": "14", "preset": "veryfast"}),
}
TRUE_BPM, TOLERANCE_BPM = 72.0, 5.0
SECONDS, FPS = 11, 30
TIME_LIMIT_S = 120.0  # the decoder may stay silent for 30 s before it is stopped
MEMORY_LIMIT_MB = 1024
EXIT_CODES = {0, 3, 4}
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)

Bytes = bytearray
Mutation = Callable[[Bytes, np.random.Generator], Bytes]


def make_bases(folder: Path) -> dict[str, bytes]:
    """Write the video of a face with a pulse in every format, and return the contents of the files."""
    import av

    from drawing import Actor, Film, clock, still

    film = Film((Actor(still(104.0, 84.0), width=80, bpm=TRUE_BPM),), clock(SECONDS, FPS), 160, 208)
    pictures = [frame.rgb for frame in film.frames()]
    bases = {}
    for suffix, (container, encoder, pixel_format, options) in FORMATS.items():
        path = folder / f"base.{suffix}"
        with av.open(str(path), "w", format=container) as output:
            stream = output.add_stream(encoder, rate=FPS, options={"threads": "1", **options})
            stream.height, stream.width = pictures[0].shape[:2]
            stream.pix_fmt = pixel_format
            stream.codec_context.time_base = Fraction(1, FPS)
            for number, rgb in enumerate(pictures):
                picture = av.VideoFrame.from_ndarray(rgb, format="rgb24")
                picture.pts, picture.time_base = number, Fraction(1, FPS)
                output.mux(stream.encode(picture))
            output.mux(stream.encode(None))
        bases[suffix] = path.read_bytes()
    return bases


# Mutations. Headers and indices are small parts at both ends of a file; half of the positions lie there.


def position(data: Bytes, rng: np.random.Generator) -> int:
    size = len(data)
    near = min(size, int(rng.choice([64, 512, 4096])))
    return int(
        rng.choice(
            [rng.integers(size), rng.integers(size), rng.integers(near), size - 1 - rng.integers(near)]
        )
    )


def part(data: Bytes, rng: np.random.Generator) -> slice:
    start = position(data, rng)
    return slice(start, min(len(data), start + int(2 ** rng.uniform(0, 14))))


def flip_bits(data: Bytes, rng: np.random.Generator) -> Bytes:
    for _ in range(int(2 ** rng.uniform(0, 7))):
        data[position(data, rng)] ^= 1 << int(rng.integers(8))
    return data


def set_bytes(data: Bytes, rng: np.random.Generator) -> Bytes:
    for _ in range(int(2 ** rng.uniform(0, 5))):
        data[position(data, rng)] = int(rng.integers(256))
    return data


def set_number(data: Bytes, rng: np.random.Generator) -> Bytes:
    """Write a number at the limit of a type, of any width and byte order."""
    width = int(rng.choice([1, 2, 4, 8]))
    value = int(rng.choice(NUMBERS)) & ((1 << 8 * width) - 1)
    start = position(data, rng)
    data[start : start + width] = value.to_bytes(width, "big" if rng.random() < 0.5 else "little")
    return data


def truncate(data: Bytes, rng: np.random.Generator) -> Bytes:
    return data[: 1 + int(rng.integers(len(data)))]


def remove_part(data: Bytes, rng: np.random.Generator) -> Bytes:
    del data[part(data, rng)]
    return data or Bytes(b"\0")


def repeat_part(data: Bytes, rng: np.random.Generator) -> Bytes:
    where = part(data, rng)
    data[where.stop : where.stop] = data[where] * int(rng.integers(1, 5))
    return data


def move_part(data: Bytes, rng: np.random.Generator) -> Bytes:
    where = part(data, rng)
    moved = data[where]
    del data[where]
    start = int(rng.integers(len(data) + 1))
    data[start:start] = moved
    return data


def clear_part(data: Bytes, rng: np.random.Generator) -> Bytes:
    where = part(data, rng)
    data[where] = bytes([int(rng.choice([0, 255]))]) * (where.stop - where.start)
    return data


def insert_noise(data: Bytes, rng: np.random.Generator) -> Bytes:
    start = position(data, rng)
    data[start:start] = rng.bytes(int(2 ** rng.uniform(0, 12)))
    return data


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits, set_bytes, set_number, truncate, remove_part, repeat_part, move_part, clear_part, insert_noise,
)  # fmt: skip


def make_case(bases: dict[str, bytes], seed: int, number: int) -> tuple[str, list[str], bytes]:
    """Return the suffix, the names of the mutations and the content of a case."""
    rng = np.random.default_rng([seed, number])
    suffix = list(FORMATS)[number % len(FORMATS)]
    data, names = Bytes(bases[suffix]), []
    for _ in range(int(rng.integers(1, 5))):
        mutation = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
        data = mutation(data, rng)
        names.append(mutation.__name__)
    return suffix, names, bytes(data)


# One run of the command


def run_command(file: Path) -> dict[str, Any]:
    """Run `phase measure --json` and return what it printed and how much time and memory it took."""
    command = [sys.executable, "-m", "phase_rppg", "measure", str(file), "--json", "--quiet"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start_s = time.monotonic()
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, cwd=file.parent
        )
        hung = threading.Event()

        def stop() -> None:
            hung.set()
            os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(TIME_LIMIT_S, stop)
        timer.start()
        _, status, usage = os.wait4(
            child.pid, 0
        )  # its usage covers the decoder, which the command waited for
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return {
            "hung": hung.is_set(),
            "exit_code": child.returncode,
            "out": out.read(),
            "err": err.read().decode("utf-8", "replace"),
            "seconds": time.monotonic() - start_s,
            "memory_mb": usage.ru_maxrss / 1024,
        }


def shown_rates(document: dict[str, Any]) -> list[float]:
    """Return every rate of a document, of windows and summaries."""
    readings = [each for face in document["faces"] for each in (face["summary"], *face["windows"])]
    return [each["bpm"] for each in readings if each and each.get("bpm") is not None]


def decoded(file: Path) -> tuple[float, list[int]]:
    """Return the mean frame rate of the timestamps, as the command reads them, and a hash of each picture."""
    from phase_rppg.errors import VideoError
    from phase_rppg.video.decode import VideoFile

    times, hashes = [], []
    with contextlib.suppress(VideoError):  # the frames before the damage count
        for frame in VideoFile(file).frames():
            times.append(frame.t_s)
            hashes.append(hash(frame.rgb.tobytes()))
    fps = (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0
    return fps, hashes


def repeats_pictures(hashes: list[int], length: int = FPS // 2) -> bool:
    """Return whether `length` different pictures occur twice in the same order."""
    changes = [
        h for i, h in enumerate(hashes) if i == 0 or h != hashes[i - 1]
    ]  # a frozen picture counts once
    runs = [tuple(changes[i : i + length]) for i in range(len(changes) - length + 1)]
    return len(set(runs)) < len(runs)


def judge(run: dict[str, Any], file: Path) -> tuple[str, list[str]]:
    """Return the outcome of a run and its findings."""
    code, err = run["exit_code"], run["err"]
    findings = []
    if run["hung"]:
        return "hang", ["hang"]
    if "Traceback" in err or "internal error" in err:
        findings.append("traceback")
    if run["memory_mb"] > MEMORY_LIMIT_MB:
        findings.append("memory")
    if code not in EXIT_CODES:
        return f"exit {code}", [*findings, "exit code"]
    if code == 4:
        one_line = err.startswith("error: ") and err.count("\n") == 1
        try:
            named = set(json.loads(run["out"])) == {"schema_version", "video", "error"}
        except ValueError:
            named = False
        return "unusable file", findings + ["output"] * (not named or not one_line)
    try:
        rates = shown_rates(json.loads(run["out"]))
    except (ValueError, KeyError, TypeError):
        return "broken output", [*findings, "output"]
    if bool(rates) != (code == 0):
        findings.append("output")
    wrong = [bpm for bpm in rates if abs(bpm - TRUE_BPM) > TOLERANCE_BPM]
    if not wrong:
        return "reading" if rates else "no reading", findings
    fps, hashes = decoded(file)
    expected_bpm = TRUE_BPM * fps / FPS
    if all(abs(bpm - expected_bpm) <= TOLERANCE_BPM * max(1.0, expected_bpm / TRUE_BPM) for bpm in rates):
        return "changed clock", findings
    if repeats_pictures(hashes):
        return "repeated pictures", findings
    return "wrong rate", [*findings, "wrong rate"]


def run_cases(
    bases: dict[str, bytes], seed: int, numbers: range, keep: Path | None
) -> Iterator[dict[str, Any]]:
    """Run cases and yield a record of each."""
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            suffix, mutations, data = make_case(bases, seed, number)
            file = Path(folder) / f"case.{suffix}"
            file.write_bytes(data)
            run = run_command(file)
            outcome, findings = judge(run, file)
            if keep is not None and (findings or len(numbers) == 1):
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{seed}-{number}.{suffix}").write_bytes(data)
            yield {
                "case": number, "format": suffix, "mutations": mutations, "outcome": outcome,
                "findings": findings,
                "seconds": run["seconds"], "memory_mb": run["memory_mb"], "exit_code": run["exit_code"],
                "err": run["err"][-2000:], "out": run["out"].decode("utf-8", "replace")[:4000],
            }  # fmt: skip


def check_bases(bases: dict[str, bytes]) -> None:
    """Stop if a base has no reading: it could not show a wrong one."""
    with tempfile.TemporaryDirectory() as folder:
        for suffix, data in bases.items():
            file = Path(folder) / f"base.{suffix}"
            file.write_bytes(data)
            run = run_command(file)
            if judge(run, file) != ("reading", []):
                raise SystemExit(f"the base {file.name} has no correct reading: {run}")


def summarise(results: dict[str, Any], record: dict[str, Any]) -> None:
    """Add one record to the counts."""
    results["n"] += 1
    for key, name in (("outcomes", record["outcome"]), ("formats", record["format"])):
        results[key] = dict(sorted(Counter({**results[key], name: results[key].get(name, 0) + 1}).items()))
    results["longest_s"] = round(max(results["longest_s"], record["seconds"]), 1)
    results["largest_memory_mb"] = round(max(results["largest_memory_mb"], record["memory_mb"]))
    if record["findings"]:
        results["findings"].append({key: record[key] for key in ("case", "format", "mutations", "findings")})


def recorded(path: Path | None) -> dict[str, Any]:
    """Return what a file of results holds already."""
    return json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}


def retest(bases: dict[str, bytes], out: Path) -> int:
    """Run the recorded findings again and record the outcomes."""
    from phase_rppg.fileio import write_json

    results = recorded(out)["containers"]
    numbers = [finding["case"] for finding in results["findings"]]
    again = [
        next(iter(run_cases(bases, results["seed"], range(number, number + 1), None))) for number in numbers
    ]
    results["retested"] = [{key: each[key] for key in ("case", "outcome", "findings")} for each in again]
    write_json(out, {**recorded(out), "containers": results})
    print(*results["retested"], sep="\n")
    return 1 if any(each["findings"] for each in again) else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=200, help="number of cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case alone and print its output")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the files of findings")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the counts as the key `containers` of a JSON file, after every case",
    )
    parser.add_argument("--resume", action="store_true", help="continue the run that --out records")
    parser.add_argument("--retest", action="store_true", help="run the findings that --out records again")
    arguments = parser.parse_args()
    from phase_rppg.fileio import write_json

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    results: dict[str, Any] = {
        "command": f"python fuzz/containers.py --n {arguments.n} --seed {arguments.seed}",
        "seed": arguments.seed, "n": 0, "outcomes": {}, "formats": {},
        "longest_s": 0.0, "largest_memory_mb": 0, "findings": [],
    }  # fmt: skip
    if arguments.resume and (earlier := recorded(arguments.out).get("containers")):
        if earlier["seed"] != arguments.seed:
            parser.error(f"the recorded run has the seed {earlier['seed']}")
        results = {**earlier, "command": results["command"]}
    with tempfile.TemporaryDirectory() as folder:
        bases = make_bases(Path(folder))
    check_bases(bases)
    if arguments.retest:
        return retest(bases, arguments.out)
    numbers = range(results["n"], arguments.n)
    if arguments.only is not None:
        numbers = range(arguments.only, arguments.only + 1)
    for record in run_cases(bases, arguments.seed, numbers, arguments.keep):
        summarise(results, record)
        text = (
            f"{record['case']:5} {record['format']:5} {record['outcome']:14} {' '.join(record['mutations'])}"
        )
        print(text, *record["findings"], flush=True)
        if record["findings"] or arguments.only is not None:
            print(record["err"], record["out"], flush=True)
        if arguments.out is not None:
            write_json(arguments.out, {**recorded(arguments.out), "containers": results})
    counts = ", ".join(f"{count} {name}" for name, count in results["outcomes"].items())
    print(f"{results['n']} cases: {counts}; {len(results['findings'])} with findings")
    return 1 if results["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
