"""Run long: an hour of video, a batch that is interrupted twice, and half an hour of the live page.

    python benchmarks/soak.py video --minutes 60 --out benchmarks/results/soak.json
    python benchmarks/soak.py batch --files 500 --out benchmarks/results/soak.json
    python benchmarks/soak.py live --minutes 30 --out benchmarks/results/soak.json
    python benchmarks/soak.py worker --minutes 2 --out benchmarks/results/soak.json

`video` measures a long video that repeats a short clip with continuous timestamps. The resident memory of
the command and its decoder is sampled while they run.

`batch` measures a folder in which every tenth file cannot be used. The first run gets SIGINT after a third of
the good files, the second SIGKILL after two thirds, and the third run finishes. All use `--resume`. A file is
measured once if one run wrote its result and no later run replaced it.

`live` opens the page in headless Chromium with a camera that plays a synthetic face. The private memory
contains the young generation of the worker. By default, V8 doubles this space when many new objects survive.
`live` therefore fixes its size, `live_default` does not. `worker` shows that growth in a page that contains
no code of this project.

`growth_mb` is the median memory of the last third of the samples minus that of the first third. `passed` says
whether it is below the limit, and whether the counts are complete.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import live_speed
import measure_memory
from phase_rppg.fileio import dump_json, read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # badfiles.py

PHASE = [sys.executable, "-m", "phase_rppg"]
VIDEO_LIMIT_MB = 16  # a leak of one 640×480 frame per minute would be 55 MB in an hour
SAMPLE_S = 1.0
BAD_EVERY = 10
TRUE_BPM, TOLERANCE_BPM = 72.0, 5.0


def growth(samples: list[float]) -> float:
    """Return the median of the last third minus the median of the first third."""
    third = max(1, len(samples) // 3)
    return round(statistics.median(samples[-third:]) - statistics.median(samples[:third]), 1)


def thinned(samples: list[float], count: int = 60) -> list[float]:
    """Return at most `count` samples, evenly chosen."""
    step = max(1, -(-len(samples) // count))
    return [round(value, 1) for value in samples[::step]]


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process and its descendants."""
    total_kb = 0
    for each in measure_memory.process_tree(pid):
        try:
            status = Path(f"/proc/{each}/status").read_text(encoding="utf-8")
        except OSError:  # the process has ended
            continue
        total_kb += int(status.partition("VmRSS:")[2].split()[0]) if "VmRSS:" in status else 0
    return total_kb / 1024


# An hour of video


def soak_video(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure a long video and sample the memory of the command."""
    from phase_rppg.video.encode import repeat_video

    measure_memory.make_clip(folder / "clip.mp4")
    video = folder / "long.mp4"
    repeat_video(folder / "clip.mp4", video, round(60 * options.minutes / measure_memory.CLIP_S))
    (folder / "clip.mp4").unlink()
    start_s = time.monotonic()
    with open(folder / "out.json", "wb") as out:
        child = subprocess.Popen([*PHASE, "measure", str(video), "--json", "--quiet"], stdout=out)
    samples: list[float] = []
    while child.poll() is None:
        time.sleep(SAMPLE_S)
        samples.append(resident_mb(child.pid))
    steady = samples[5:-1]  # without the start and the end
    document = read_json(folder / "out.json")
    windows = [window for face in document["faces"] for window in face["windows"]]
    rates = [window["bpm"] for window in windows if window["bpm"] is not None]
    grown_mb = growth(steady)
    return {
        "command": f"python benchmarks/soak.py video --minutes {options.minutes:g}",
        "minutes": round(document["duration_s"] / 60, 2),
        "wall_s": round(time.monotonic() - start_s),
        "exit_code": child.returncode,
        "faces": len(document["faces"]),
        "windows": len(windows),
        "windows_with_rate": len(rates),
        "wrong_rates": sum(abs(bpm - TRUE_BPM) > TOLERANCE_BPM for bpm in rates),
        "memory_mb": thinned(steady),
        "largest_memory_mb": round(max(steady), 1),
        "growth_mb": grown_mb,
        "growth_limit_mb": VIDEO_LIMIT_MB,
        "passed": child.returncode == 0
        and grown_mb <= VIDEO_LIMIT_MB
        and len(windows) >= 0.95 * 60 * options.minutes,
    }


# A batch that is interrupted twice


def make_batch(folder: Path, count: int) -> tuple[list[str], list[str]]:
    """Write `count` files and return the names of the good and of the bad ones."""
    import badfiles
    from drawing import Actor, Film, clock, still
    from phase_rppg.video.encode import write_video

    film = Film((Actor(still(104.0, 84.0), width=80, bpm=TRUE_BPM),), clock(11, 30), 160, 208)
    clip = folder.parent / "clip.mkv"
    write_video(clip, [frame.rgb for frame in film.frames()], 30, crf=14, preset="veryfast")

    def half_header(path: Path) -> None:
        path.write_bytes(clip.read_bytes()[:200])

    makers: list[Callable[[Path], Any]] = [
        badfiles.empty, badfiles.text, badfiles.sound, badfiles.huge, half_header,
    ]  # fmt: skip
    good, bad = [], []
    for number in range(count):
        name = f"{number:04}.mkv"
        if number % BAD_EVERY == BAD_EVERY - 1:
            maker = makers[len(bad) % len(makers)]
            maker(folder / "new.avi")  # the writer of `huge` chooses the format by the suffix
            (folder / "new.avi").rename(folder / name)
            bad.append(name)
        else:
            shutil.copy(clip, folder / name)
            good.append(name)
    return good, bad


def finished(results: Path) -> dict[str, int]:
    """Return the time at which each result was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in results.glob("*/result.json")}


def accept_interrupts() -> None:
    """Undo what a shell does for its background processes: they ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_batch(videos: Path, results: Path, workers: int, stop_at: int | None, number: int) -> dict[str, Any]:
    """Run the command once, and send a signal when `stop_at` results exist."""
    command = [*PHASE, "measure", str(videos), "-o", str(results), "--resume", "--ndjson", "--quiet"]
    command += ["--model", "pos"]
    printed = results.parent / "printed.ndjson"
    with open(printed, "wb") as out:
        child = subprocess.Popen(
            [*command, "--workers", str(workers)], stdout=out, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=accept_interrupts,
        )  # fmt: skip
    samples: list[float] = []
    stopped = False
    while child.poll() is None:
        time.sleep(SAMPLE_S)
        samples.append(resident_mb(child.pid))
        if stop_at is not None and not stopped and len(finished(results)) >= stop_at:
            child.send_signal(number)
            stopped = True
    assert child.stderr is not None
    error = child.stderr.read().decode()
    time.sleep(3)  # children of a killed command end by themselves
    lines = [json.loads(line) for line in printed.read_bytes().splitlines() if line.endswith(b"}")]
    return {"exit_code": child.returncode, "stderr": error, "lines": lines, "memory_mb": samples}


def soak_batch(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure a folder in three runs, two of which are stopped."""
    videos, results = folder / "videos", folder / "results"
    videos.mkdir()
    results.mkdir()
    good, bad = make_batch(videos, options.files)
    stops = [
        (len(good) // 3, signal.SIGINT),
        (2 * len(good) // 3, signal.SIGKILL),
        (None, signal.SIGINT),
    ]
    runs, written = [], []
    start_s = time.monotonic()
    for stop_at, number in stops:
        runs.append(run_batch(videos, results, options.workers, stop_at, number))
        written.append(finished(results))
        print(f"exit code {runs[-1]['exit_code']}, {len(written[-1])} results", flush=True)
    replaced = {
        name for earlier in written[:-1] for name, at in earlier.items() if written[-1].get(name) != at
    }
    documents = [read_json(results / name / "result.json") for name in written[-1]]
    rates = [document["faces"][0]["summary"]["bpm"] for document in documents]
    named = {Path(line["video"]).name for line in runs[-1]["lines"] if "error" in line}
    shown = [Path(line["video"]).name for line in runs[-1]["lines"] if "error" not in line]
    leftovers = [path.name for path in results.rglob(".*")]
    checks = {
        "every_good_file_has_a_result": sorted(written[-1]) == good and sorted(shown) == good,
        "no_result_was_replaced": not replaced,
        "every_bad_file_is_named": sorted(named) == bad,
        "every_rate_is_correct": all(
            bpm is not None and abs(bpm - TRUE_BPM) <= TOLERANCE_BPM for bpm in rates
        ),
        "no_temporary_files_remain": not leftovers,
        "exit_codes": [run["exit_code"] for run in runs] == [130, -signal.SIGKILL, 0],
        "no_traceback": not any("Traceback" in run["stderr"] for run in runs),
    }
    return {
        "command": f"python benchmarks/soak.py batch --files {options.files}",
        "files": options.files,
        "good": len(good),
        "bad": len(bad),
        "stops": ["SIGINT", "SIGKILL"],
        "exit_codes": [run["exit_code"] for run in runs],
        "results_after_each_run": [len(each) for each in written],
        "measured_again": len(replaced),
        "bad_named": len(named & set(bad)),
        "wall_s": round(time.monotonic() - start_s),
        "largest_memory_mb": round(max(max(run["memory_mb"], default=0.0) for run in runs), 1),
        "checks": checks,
        "passed": all(checks.values()),
    }


# The live page

# The size of the young generation (two such spaces) that V8 chose by itself in a run of 30 minutes. V8 keeps
# it from the start; otherwise its growth hides that of the page.
FIXED_YOUNG = "--min-semi-space-size=32 --max-semi-space-size=32"


def soak_live(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Show a fake camera to the page and sample its memory every minute."""
    from playwright.sync_api import sync_playwright

    from phase_rppg.web import PageServer, assets

    i420, y4m = folder / "film.i420", folder / "film.y4m"
    live_speed.write_film(i420, y4m)
    i420.unlink()
    camera = [
        "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={y4m}",
    ]  # fmt: skip
    samples: list[dict[str, float]] = []
    problems: list[str] = []
    with PageServer(assets.catalogue(), port=0) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chromium = shutil.which("chromium")
        fixed = "" if options.run == "live_default" else f" {FIXED_YOUNG}"
        flags = [flag + fixed * flag.startswith("--js-flags") for flag in live_speed.FLAGS]
        with playwright.chromium.launch(executable_path=chromium, args=[*flags, *camera]) as browser:
            page = browser.new_page(viewport={"width": 1080, "height": 760})
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(server.url)
            for sample in live_speed.record_memory(browser, page, options.minutes):
                samples.append(sample)
                print(json.dumps(sample), flush=True)
            state = page.get_attribute("#reading", "data-state")
            version = browser.version
        server.shutdown()
    grown = {key: growth([sample[key] for sample in samples]) for key in samples[0] if key.endswith("_mb")}
    return {
        "command": f"python benchmarks/soak.py {options.run} --minutes {options.minutes:g}",
        "browser": f"Chromium {version}, headless, one wasm thread",
        "minutes": options.minutes,
        "state_at_the_end": state,
        "errors_of_the_page": problems,
        "memory": samples,
        "growth_mb": grown,
        "growth_limit_mb": live_speed.GROWTH_LIMIT_MB,
        "passed": not problems and all(value <= live_speed.GROWTH_LIMIT_MB for value in grown.values()),
    }


# A worker that creates small objects and keeps each for ten seconds.
WORKER = """const kept = [];
setInterval(() => {
  for (let i = 0; i < 300; i++) kept.push(Array.from({ length: 20 }, Math.random));
  if (kept.length > 90000) kept.splice(0, 300);
}, 33);"""


def soak_worker(options: argparse.Namespace, _folder: Path) -> dict[str, Any]:
    """Sample the memory of a page with that worker every ten seconds."""
    from playwright.sync_api import sync_playwright

    from phase_rppg.web import Asset, PageServer

    script = "text/javascript; charset=utf-8"
    html = b'<!doctype html><title>worker</title><script src="page.js"></script>'
    files = {
        "index.html": Asset("text/html; charset=utf-8", content=html),
        "page.js": Asset(script, content=b'window.worker = new Worker("worker.js");'),
        "worker.js": Asset(script, content=WORKER.encode()),
    }
    samples: list[dict[str, float]] = []
    with PageServer(files, port=0) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chromium = shutil.which("chromium")
        with playwright.chromium.launch(executable_path=chromium, args=live_speed.FLAGS) as browser:
            page = browser.new_page()
            page.goto(server.url)
            start_s = time.monotonic()
            while time.monotonic() - start_s < 60 * options.minutes:
                young_mb = live_speed.young_generation_mb(browser, page)
                private_mb = live_speed.renderers(browser)["private_mb"]
                minute = (time.monotonic() - start_s) / 60
                samples.append({
                    "minute": round(minute, 2), "young_generation_mb": round(young_mb, 1),
                    "renderer_private_mb": round(private_mb, 1),
                })  # fmt: skip
                print(json.dumps(samples[-1]), flush=True)
                page.wait_for_timeout(10_000)
            version = browser.version
        server.shutdown()
    young = [sample["young_generation_mb"] for sample in samples]
    return {
        "command": f"python benchmarks/soak.py worker --minutes {options.minutes:g}",
        "browser": f"Chromium {version}, headless",
        "minutes": options.minutes,
        "memory": samples,
        "young_generation_mb": {"smallest": min(young), "largest": max(young), "last": young[-1]},
        "passed": max(young) >= 2 * min(young),  # the growth is seen
    }


RUNS = {
    "video": soak_video, "batch": soak_batch, "live": soak_live, "live_default": soak_live,
    "worker": soak_worker,
}  # fmt: skip
MINUTES = {"video": 60.0, "batch": 0.0, "live": 30.0, "live_default": 30.0, "worker": 2.0}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", choices=RUNS)
    parser.add_argument(
        "--minutes", type=float, help="of video (60), of the live page (30) or of the worker (2)"
    )
    parser.add_argument("--files", type=int, default=500, help="of the batch")
    parser.add_argument("--workers", type=int, default=2, help="worker processes of the batch")
    parser.add_argument("--out", type=Path, help="write the figures as one key of this JSON file")
    options = parser.parse_args()
    if options.minutes is None:
        options.minutes = MINUTES[options.run]
    with tempfile.TemporaryDirectory() as folder:
        found = RUNS[options.run](options, Path(folder))
    found["load"] = round(os.getloadavg()[0], 1)
    print(dump_json(found))
    if options.out is not None:
        recorded = read_json(options.out) if options.out.exists() else {}
        write_json(options.out, {**recorded, options.run: found})
    return 0 if found["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
