"""How long the page of `phase live` takes per frame, and whether its memory stays level.

    python benchmarks/live_speed.py --minutes 10 --out benchmarks/results/live_speed.json

Headless Chromium runs the page's own worker on one wasm thread. Frames of 640×480 from the generator are sent
one after the other with timestamps of 30 fps, as fast as the worker takes them, so ten minutes of video need
less than ten minutes. `frames_per_s` is what that thread could process; the browser draws in other threads.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg import synth
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.synth import film as films
from phase_rppg.web import Asset, PageServer, assets

HEIGHT, WIDTH, LOOP_S = 480, 640, 2.0

FEED = """async ({ worker, method, frames, width, height }) => {
  const film = new Uint8Array(await (await fetch("./film.rgba")).arrayBuffer());
  const size = width * height * 4, loop = film.length / size;
  const running = new Worker(worker, { type: "module" });
  let settle;
  running.onmessage = ({ data }) => {
    if (data.kind === "failed") settle.failed(new Error(data.problem));
    if (["ready", "frame", "finished"].includes(data.kind)) settle.done(data);
  };
  const ask = (message, transfer = []) => new Promise((done, failed) => {
    settle = { done, failed };
    running.postMessage(message, transfer);
  });
  const { method: name } = await ask({ kind: "load", base: document.baseURI });
  running.postMessage({ kind: "start", method });
  const took = [], network = [], memory = [];
  const begun = performance.now();
  for (let i = 0; i < frames; i++) {
    const rgba = film.slice((i % loop) * size, (i % loop + 1) * size);
    const done = await ask({ kind: "frame", picture: { rgba, width, height }, tS: i / 30 }, [rgba.buffer]);
    took.push(done.tookMs);
    network.push(done.networkMs);
    if (i % 1800 === 300) memory.push((await performance.measureUserAgentSpecificMemory()).bytes / 2 ** 20);
  }
  memory.push((await performance.measureUserAgentSpecificMemory()).bytes / 2 ** 20);
  running.terminate();
  return { name, took, network, memory, wallS: (performance.now() - begun) / 1000 };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="of video")
    parser.add_argument("--method", choices=["pos", "chrom"], help="instead of the network")
    parser.add_argument("--networks", type=Path, default=assets.NETWORKS, help="folder of an export")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options, Path(folder) / "film.rgba")
    print(dump_json(found))
    if options.out:
        write_json(options.out, found)


def run(options: argparse.Namespace, film: Path) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    world = synth.load("studio")
    made = films.film(world, 7, 0, seconds=LOOP_S, height=HEIGHT, width=WIDTH, fixed={"motion.kind": "fixed"})
    with open(film, "wb") as file:
        for rgb in made.frames():
            file.write(np.dstack([rgb, np.full((HEIGHT, WIDTH), 255, np.uint8)]).tobytes())
    files = assets.catalogue(networks=options.networks) | {
        "film.rgba": Asset("application/octet-stream", film)
    }
    order = {"frames": round(1800 * options.minutes), "width": WIDTH, "height": HEIGHT}
    order |= {"worker": next(f"./{name}" for name in files if name.startswith("assets/worker-"))}
    order |= {"method": options.method} if options.method else {}
    with PageServer(files, port=0) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(server.url)
        got = page.evaluate(FEED, order)
        browser.close()
        server.shutdown()
    took, network = np.array(got["took"]), np.array(got["network"])
    return {
        "command": "python benchmarks/live_speed.py",
        "method": options.method or got["name"],
        "video_s": order["frames"] / 30,
        "frame_px": [WIDTH, HEIGHT],
        "ms_per_frame": {
            "mean": took.mean(),
            "median": float(np.median(took)),
            "p95": np.quantile(took, 0.95),
        },
        "network_ms_per_frame": float(network.mean()),
        "frames_per_s": 1000 / float(took.mean()),
        "memory_mb": [round(value, 1) for value in got["memory"]],
    }


if __name__ == "__main__":
    main()
