"""How long the page of `phase live` takes per frame, and whether its memory stays level.

    python benchmarks/live_speed.py --minutes 10 --out benchmarks/results/live_speed.json

Two runs in headless Chromium, with a face of 640×480 from the generator and one wasm thread. In the first the
page's own worker gets frames as fast as it takes them: `frames_per_s` is what one thread can process. In the
second the whole page measures a fake camera for so many minutes while its memory is watched, each time after
the garbage was collected, so that growth means growth.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg import synth
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.synth import film as films
from phase_rppg.web import Asset, PageServer, assets

HEIGHT, WIDTH, LOOP_S, FPS = 480, 640, 5.0, 30
GROWTH_LIMIT_MB = 32  # between the first minute and the last; a leak of one picture per second would be 700
FLAGS = ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc", "--enable-precise-memory-info"]

# Sends frames to the page's worker, each when the one before is done, and returns the times of each.
FEED = """async ({ worker, method, frames, warm, width, height }) => {
  const film = new Uint8Array(await (await fetch("./film.rgba")).arrayBuffer());
  const size = width * height * 4, loop = film.length / size;
  const running = new Worker(worker, { type: "module" });
  let settle;
  running.onmessage = ({ data }) => {
    if (data.kind === "failed") settle.failed(new Error(data.problem));
    if (["ready", "frame"].includes(data.kind)) settle.done(data);
  };
  const ask = (message, transfer = []) => new Promise((done, failed) => {
    settle = { done, failed };
    running.postMessage(message, transfer);
  });
  const { method: name } = await ask({ kind: "load", base: document.baseURI });
  running.postMessage({ kind: "start", method });
  const took = [], network = [];
  let begun = 0;
  for (let i = 0; i < warm + frames; i++) {
    if (i === warm) begun = performance.now();
    const rgba = film.slice((i % loop) * size, (i % loop + 1) * size);
    const done = await ask({ kind: "frame", picture: { rgba, width, height }, tS: i / 30 }, [rgba.buffer]);
    if (i >= warm) took.push(done.tookMs), network.push(done.networkMs);
  }
  running.terminate();
  return { name, took, network, wallS: (performance.now() - begun) / 1000 };
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
    parser.add_argument("--minutes", type=float, default=1.0, help="of watching the memory")
    parser.add_argument("--frames", type=int, default=1800, help="at full speed")
    parser.add_argument("--method", choices=["pos", "chrom"], help="instead of the network")
    parser.add_argument("--networks", type=Path, default=assets.NETWORKS, help="folder of an export")
    parser.add_argument("--picture", type=Path, help="PNG to keep of the page at the end")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options, Path(folder))
    print(dump_json(found))
    if options.out:
        write_json(options.out, found)


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    rgba, y4m = folder / "film.rgba", folder / "film.y4m"
    write_film(rgba, y4m)
    files = assets.catalogue(networks=options.networks) | {
        "film.rgba": Asset("application/octet-stream", rgba)
    }
    camera = [
        "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
        f"--use-file-for-fake-video-capture={y4m}",
    ]  # fmt: skip
    order: dict[str, Any] = {"frames": options.frames, "warm": 300, "width": WIDTH, "height": HEIGHT}
    order |= {"worker": next(f"./{name}" for name in files if name.startswith("assets/worker-"))}
    order |= {"method": options.method} if options.method else {}
    with PageServer(files, port=0) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        chromium = partial(playwright.chromium.launch, executable_path=shutil.which("chromium"))
        with chromium(args=FLAGS) as browser:
            page = browser.new_page()
            page.goto(server.url)
            fast = page.evaluate(FEED, order)
        with chromium(args=[*FLAGS, *camera]) as browser:  # a fresh one: its memory is the page's alone
            page = browser.new_page(viewport={"width": 1080, "height": 760}, color_scheme="dark")
            page.goto(server.url + (f"?method={options.method}" if options.method else ""))
            watched = list(watch(browser, page, options.minutes))
            if options.picture:
                page.screenshot(path=options.picture, full_page=True)
            version = browser.version
        server.shutdown()
    first, last = watched[0], watched[-1]
    growth = {key: round(last[key] - first[key], 1) for key in first if key.endswith("_mb")}
    return {
        "command": f"python benchmarks/live_speed.py --minutes {options.minutes:g}",
        "browser": f"Chromium {version}, headless, one wasm thread",
        "method": options.method or fast["name"],
        "frame_px": [WIDTH, HEIGHT],
        "frames": options.frames,
        "frames_per_s": round(options.frames / fast["wallS"], 1),
        "ms_per_frame": spread(fast["took"]),
        "network_ms_per_frame": spread(fast["network"]),
        "minutes": options.minutes,
        "memory": watched,
        "growth": growth,
        "growth_limit_mb": GROWTH_LIMIT_MB,
        "steady": all(value <= GROWTH_LIMIT_MB for value in growth.values()),
    }


def write_film(rgba: Path, y4m: Path) -> None:
    """One still face with an even pulse, as pixels for the worker and as a film for the camera."""
    import av

    fixed = {"motion.kind": "fixed", "pulse.bpm": 72.0, "pulse.rsa": 0.0, "pulse.hrv_s": 0.0}
    made = films.film(synth.load("studio"), 10, 0, seconds=LOOP_S, height=HEIGHT, width=WIDTH, fixed=fixed)
    with open(rgba, "wb") as pixels, open(y4m, "wb") as film:
        film.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{FPS}:1 Ip A1:1 C420jpeg\n".encode())
        for rgb in made.frames():
            pixels.write(np.dstack([rgb, np.full((HEIGHT, WIDTH), 255, np.uint8)]).tobytes())
            picture = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
            film.write(b"FRAME\n" + picture.to_ndarray().tobytes())


def watch(browser: Any, page: Any, minutes: float) -> Iterator[dict[str, float]]:
    """The page measures its camera: what it needs after each minute, twice at least."""
    page.click("#start")
    page.wait_for_selector("#reading[data-state=measuring]", timeout=120_000)
    step_min = min(1.0, minutes / 2)
    for i in range(1, max(2, round(minutes / step_min)) + 1):
        page.wait_for_timeout(60_000 * step_min)
        fps, _, _, ms, *_ = page.inner_text("#facts").split()  # "30 fps · 9 ms per frame …"
        memory = page.evaluate(MEMORY)
        yield {
            "minute": round(i * step_min, 2),
            "shown_fps": float(fps),
            "shown_ms_per_frame": float(ms),
            "js_heap_mb": round(memory["heap"], 1),
            "page_mb": round(memory["page"], 1),  # the worker and its wasm memory included
            "renderer_rss_mb": round(renderer_rss_mb(browser), 1),
        }


def renderer_rss_mb(browser: Any) -> float:
    """Resident memory of the browser's processes that run pages."""
    session = browser.new_browser_cdp_session()
    processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    total_kb = 0
    for process in processes:
        if process["type"] == "renderer":
            status = Path(f"/proc/{process['id']}/status").read_text(encoding="utf-8")
            total_kb += int(status.split("VmRSS:")[1].split()[0])
    return total_kb / 1024


def spread(values: list[float]) -> dict[str, float]:
    return {
        "mean": round(float(np.mean(values)), 2),
        "median": round(float(np.median(values)), 2),
        "p95": round(float(np.quantile(values, 0.95)), 2),
    }


if __name__ == "__main__":
    main()
