"""Measure the time per frame of the page of `phase live`, and the growth of its memory.

    python benchmarks/live_speed.py --minutes 10 --out benchmarks/results/live_speed.json

Both runs use headless Chromium with one wasm thread and a synthetic face of 640×480. In the first run the
worker gets camera frames (I420) one after the other. `frames_per_s` is wall-clock throughput, which other
programs reduce (`load` is the system load). `cpu_ms_per_frame` is the CPU time of the whole page, which they
hardly change. In the second run the page measures a fake camera for the given minutes. Its memory is recorded
after garbage collection. `growth` is the median of the last third minus the median of the first third.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg import synth
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.synth.recording import make_recording
from phase_rppg.web import Asset, PageServer, assets

HEIGHT, WIDTH, LOOP_S, FPS = 480, 640, 5.0, 30
WARM_FRAMES = 300
GROWTH_LIMIT_MB = 32  # a leak of one frame per second would be 500 MB in ten minutes
MEMORY_DUMP = {
    "includedCategories": ["disabled-by-default-memory-infra"],
    "excludedCategories": ["*"],
    "memoryDumpConfig": {"triggers": []},
}
YOUNG = "v8/workers/heap/new_space"
FLAGS = ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc", "--enable-precise-memory-info"]

# Starts the worker of the page; window.feed(n) sends n frames, each after the previous one is processed.
OPEN = """async ({ worker, wasm, method, width, height }) => {
  const film = new Uint8Array(await (await fetch("./film.i420")).arrayBuffer());
  const size = width * height * 1.5, loop = film.length / size;
  const running = new Worker(worker, { type: "module" });
  let settle, sent = 0;
  running.onmessage = ({ data }) => {
    if (data.kind === "failed") settle.failed(new Error(data.problem));
    if (["ready", "frame"].includes(data.kind)) settle.done(data);
  };
  const ask = (message, transfer = []) => new Promise((done, failed) => {
    settle = { done, failed };
    running.postMessage(message, transfer);
  });
  const runtime = new URL(wasm, document.baseURI).href;
  const { method: name } = await ask({ kind: "load", base: document.baseURI, wasm: runtime });
  running.postMessage({ kind: "start", method });
  window.feed = async (count) => {
    const took = [], network = [], begun = performance.now();
    for (const stop = sent + count; sent < stop; sent++) {
      const at = (sent % loop) * size, tS = sent / 30;
      const shape = { format: "I420", codedWidth: width, codedHeight: height, timestamp: tS * 1e6 };
      const picture = new VideoFrame(film.subarray(at, at + size), shape);
      const done = await ask({ kind: "frame", picture, tS }, [picture]);
      took.push(done.tookMs), network.push(done.networkMs);
    }
    return { took, network, wallS: (performance.now() - begun) / 1000 };
  };
  return name;
}"""

MEMORY = """async () => {
  for (let i = 0; i < 3; i++) { gc(); await new Promise((done) => setTimeout(done, 100)); }
  const whole = await performance.measureUserAgentSpecificMemory();
  return { heap: performance.memory.usedJSHeapSize / 2 ** 20, page: whole.bytes / 2 ** 20 };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="duration of the memory run")
    parser.add_argument("--frames", type=int, default=1800, help="frames of the speed run")
    parser.add_argument("--model", dest="method", choices=["pos", "chrom"], help="instead of the network")
    parser.add_argument("--networks", type=Path, default=assets.NETWORKS, help="folder of exported networks")
    parser.add_argument("--picture", type=Path, help="save a screenshot of the page as PNG")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options, Path(folder))
    print(dump_json(found))
    if options.out:
        write_json(options.out, found)


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    i420, y4m = folder / "film.i420", folder / "film.y4m"
    write_film(i420, y4m)
    files = assets.catalogue(networks=options.networks) | {
        "film.i420": Asset("application/octet-stream", i420)
    }
    camera = [
        "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={y4m}",
    ]  # fmt: skip
    worker = next(f"./{name}" for name in files if name.startswith("assets/worker-"))
    wasm = next(f"./{name}" for name in files if name.endswith(".wasm"))
    options_js = {"worker": worker, "wasm": wasm, "width": WIDTH, "height": HEIGHT}
    options_js |= {"method": options.method} if options.method else {}
    with PageServer(files, port=0) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chromium = partial(playwright.chromium.launch, executable_path=shutil.which("chromium"))
        with chromium(args=FLAGS) as browser:
            page = browser.new_page()
            page.goto(server.url)
            name = page.evaluate(OPEN, options_js)
            page.evaluate("feed", WARM_FRAMES)
            start_s = renderers(browser)["cpu_s"]
            fast = page.evaluate("feed", options.frames)
            cpu_s = renderers(browser)["cpu_s"] - start_s
            load = os.getloadavg()[0]
        with chromium(
            args=[*FLAGS, *camera]
        ) as browser:  # a new browser, so that its memory belongs to the page
            page = browser.new_page(viewport={"width": 1080, "height": 760}, color_scheme="dark")
            page.goto(server.url + (f"?method={options.method}" if options.method else ""))
            samples = list(record_memory(browser, page, options.minutes))
            if options.picture:
                page.screenshot(path=options.picture, full_page=True)
            version = browser.version
        server.shutdown()
    growth = memory_growth(samples)
    return {
        "command": f"python benchmarks/live_speed.py --minutes {options.minutes:g}",
        "browser": f"Chromium {version}, headless, one wasm thread",
        "method": options.method or name,
        "frame_px": [WIDTH, HEIGHT],
        "frames": options.frames,
        "processors": os.cpu_count(),
        "load": round(load, 1),
        "frames_per_s": round(options.frames / fast["wallS"], 1),
        "cpu_ms_per_frame": round(1000 * cpu_s / options.frames, 2),
        "ms_per_frame": spread(fast["took"]),
        "network_ms_per_frame": spread(fast["network"]),
        "minutes": options.minutes,
        "memory": samples,
        "growth": growth,
        "growth_limit_mb": GROWTH_LIMIT_MB,
        "steady": all(value <= GROWTH_LIMIT_MB for value in growth.values()),
    }


def memory_growth(samples: list[dict[str, float]]) -> dict[str, float]:
    """Return how much each kind of memory grew from the first to the last third of the samples, in MB."""
    third = max(1, len(samples) // 3)
    return {
        key: round(median(samples[-third:], key) - median(samples[:third], key), 1)
        for key in samples[0]
        if key.endswith("_mb")
    }


def write_film(i420: Path, y4m: Path) -> None:
    """Write a face without motion and with a constant rate, as raw frames and as a camera file."""
    import av

    fixed = {"motion.kind": "fixed", "pulse.bpm": 72.0, "pulse.rsa": 0.0, "pulse.hrv_s": 0.0}
    made = make_recording(
        synth.load("studio"), 10, 0, seconds=LOOP_S, height=HEIGHT, width=WIDTH, fixed=fixed
    )
    with open(i420, "wb") as plain, open(y4m, "wb") as film:
        film.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{FPS}:1 Ip A1:1 C420jpeg\n".encode())
        for rgb in made.frames():
            picture = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
            planes = picture.to_ndarray().tobytes()
            plain.write(planes)
            film.write(b"FRAME\n" + planes)


def record_memory(browser: Any, page: Any, minutes: float) -> Iterator[dict[str, float]]:
    """Measure the camera and yield the memory of the page after each minute, at least twice."""
    page.click("#start")
    page.wait_for_selector("#reading[data-state=measuring]", timeout=120_000)
    step_min = min(1.0, minutes / 2)
    start_s = time.monotonic()
    for i in range(1, max(2, round(minutes / step_min)) + 1):
        page.wait_for_timeout(max(0.0, 1000 * (start_s + 60 * i * step_min - time.monotonic())))
        facts = page.text_content("#facts").split()  # "30 fps · 9 ms per frame …", or nothing
        memory = page.evaluate(MEMORY)
        yield {
            "minute": round(i * step_min, 2),
            "shown_fps": float(facts[0]) if facts else 0.0,
            "shown_ms_per_frame": float(facts[3]) if facts else 0.0,
            "js_heap_mb": round(memory["heap"], 1),
            "page_mb": round(memory["page"], 1),  # including the worker and its wasm memory
            "renderer_private_mb": round(renderers(browser)["private_mb"], 1),
            "young_generation_mb": round(young_generation_mb(browser, page), 1),  # part of the line above
        }


def renderers(browser: Any) -> dict[str, float]:
    """Return private memory and CPU time of the renderer processes.

    Pages of the program file are not counted: they become resident as its code is used, and are shared.
    """
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    total = {"private_mb": 0.0, "cpu_s": 0.0}
    for process in processes:
        if process["type"] == "renderer":
            status = Path(f"/proc/{process['id']}/status").read_text(encoding="utf-8")
            for kind in ("RssAnon:", "RssShmem:"):
                total["private_mb"] += int(status.split(kind)[1].split()[0]) / 1024
            total["cpu_s"] += process["cpuTime"]
    return total


def young_generation_mb(browser: Any, page: Any) -> float:
    """Return the size of the space that V8 reserves for new objects of workers, which V8 itself enlarges."""
    session = browser.new_browser_cdp_session()
    events: list[dict[str, Any]] = []
    complete: list[bool] = []
    session.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda _: complete.append(True))
    session.send("Tracing.start", {"traceConfig": MEMORY_DUMP, "transferMode": "ReportEvents"})
    session.send("Tracing.requestMemoryDump", {"levelOfDetail": "light"})
    session.send("Tracing.end")
    limit_s = time.monotonic() + 60
    while not complete and time.monotonic() < limit_s:
        page.wait_for_timeout(100)
    session.detach()
    dumps = [event["args"]["dumps"].get("allocators", {}) for event in events if event["ph"] == "v"]
    sizes = [dump[YOUNG]["attrs"]["size"]["value"] for dump in dumps if YOUNG in dump]
    return sum(int(size, 16) for size in sizes) / 2**20


def median(samples: list[dict[str, float]], key: str) -> float:
    return float(np.median([sample[key] for sample in samples]))


def spread(values: list[float]) -> dict[str, float]:
    return {
        "mean": round(float(np.mean(values)), 2),
        "median": round(float(np.median(values)), 2),
        "p95": round(float(np.quantile(values, 0.95)), 2),
    }


if __name__ == "__main__":
    main()
