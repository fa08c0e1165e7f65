"""The page in Firefox, and in browsers that lack a feature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg.web import Asset, PageServer

from .conftest import find_firefox
from .filming import FPS, HEIGHT, WIDTH, film, numbered, write_y4m
from .firefox import FirefoxPage, firefox_page
from .projection import KEEP_FEATURES, READING, WATCH, Shown, expect, page_fps, read, wait

Serve = Callable[..., PageServer]
Browse = Callable[..., Any]


@pytest.fixture
def firefox() -> Iterator[FirefoxPage]:
    with firefox_page(find_firefox()) as page:
        yield page


# Replaces the camera by a film of raw frames, because the fake camera of Firefox plays no files.
FILM_CAMERA = """async ({ width, height, fps }) => {
  const film = new Uint8ClampedArray(await (await fetch("./film.rgba")).arrayBuffer());
  const size = width * height * 4, count = film.length / size;
  const picture = (_, i) => new ImageData(film.subarray(i * size, (i + 1) * size), width, height);
  const pictures = Array.from({ length: count }, picture); // views, not copies
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true }); // stays in memory
  const stream = canvas.captureStream(0); // only the frames that are asked for
  const startMs = performance.now();
  setInterval(() => {
    const i = Math.floor((performance.now() - startMs) / 1000 * fps) % count;
    context.putImageData(pictures[i], 0, 0);
    stream.requestFrame(); // of Firefox; the standard has it on the track
  }, 1000 / fps);
  Object.defineProperty(MediaDevices.prototype, "getUserMedia", { value: async () => stream });
}"""


def test_firefox_reads_a_face(serve: Serve, firefox: FirefoxPage, tmp_path: Path) -> None:
    frames, _, truth_bpm = film(72, 10)
    opaque = np.full((HEIGHT, WIDTH), 255, np.uint8)
    with open(tmp_path / "film.rgba", "wb") as file:
        for number, rgb in enumerate(frames):
            file.write(np.dstack([numbered(rgb, number), opaque]).tobytes())
    server = serve({"film.rgba": Asset("application/octet-stream", tmp_path / "film.rgba")})
    firefox.goto(server.url)
    firefox.evaluate(FILM_CAMERA, {"width": WIDTH, "height": HEIGHT, "fps": FPS})
    firefox.click("#start")
    firefox.evaluate(WATCH)
    read(firefox, truth_bpm, len(frames))


# Notes when the browser has shown a frame; window.shownFps() is their number per second.
COUNT = """() => {
  const video = document.querySelector("#video"), times = [];
  const look = (now) => { times.push(now); video.requestVideoFrameCallback(look); };
  video.requestVideoFrameCallback(look);
  window.shownFps = () => times.filter((time) => performance.now() - time < 4000).length / 4;
}"""
MIN_SHOWN_FPS = 4.0  # the timestamps of Firefox differ once per second: more frames must be measured


def test_the_frames_of_the_camera_are_measured_in_firefox(serve: Serve, firefox: FirefoxPage) -> None:
    firefox.goto(serve().url)
    firefox.click("#start")
    firefox.evaluate(COUNT)

    def measured() -> bool:
        shown_fps = firefox.evaluate("() => window.shownFps()")
        return shown_fps >= MIN_SHOWN_FPS and page_fps(firefox) >= shown_fps / 2

    wait(firefox, measured, "measuring half of the frames that the browser shows")
    wait(firefox, lambda: "No face in view" in firefox.inner_text("#guidance"), "“No face in view”")


# What older versions of Safari and Firefox lack, removed before the page loads.
WITHOUT = {
    "frame callbacks": "delete HTMLVideoElement.prototype.requestVideoFrameCallback;",
    "OffscreenCanvas": "delete globalThis.OffscreenCanvas;",
    "VideoFrame": "delete globalThis.VideoFrame;",
    "module workers": """{
      const Plain = Worker;
      globalThis.Worker = class extends Plain {
        constructor(url, options) {
          if (options?.type === "module") throw new TypeError("module workers are not supported");
          super(url, options);
        }
      };
    }""",
}


def unsteady_bpm(page: Any) -> float | None:
    """The number of the page, steady or not."""
    state, bpm = page.evaluate(READING)
    return float(bpm) if state in ("steady", "unsure") else None


@pytest.mark.parametrize("feature", list(WITHOUT))
def test_a_browser_without_a_feature_still_measures(
    feature: str, serve: Serve, browse: Browse, tmp_path: Path
) -> None:
    frames, _, truth_bpm = film(72, 10)
    with browse(write_y4m(tmp_path / "72.y4m", frames)) as page:
        page.add_init_script(KEEP_FEATURES + WITHOUT[feature])
        page.goto(serve().url)
        page.click("#start")
        page.evaluate(WATCH)
        read(page, truth_bpm, len(frames), shown=Shown(bpm=unsteady_bpm, within_bpm=5))
        assert page.problems == []


def test_a_browser_without_simd_is_told(serve: Serve, browse: Browse) -> None:
    server = serve()
    worker = next(name for name in server.assets if name.startswith("assets/worker-"))
    asset = server.assets[worker]
    old = b"WebAssembly.validate = () => false;\n" + asset.read()
    server.assets[worker] = Asset(asset.media_type, content=old)
    with browse() as page:
        page.goto(server.url)
        page.wait_for_selector("#reading[data-state=none]")
        assert "SIMD" in page.inner_text("#guidance")


# Keeps the workers of the page, so that a test can end one.
KEEP_WORKERS = """{
  const Plain = Worker;
  globalThis.workers = [];
  globalThis.Worker = class extends Plain {
    constructor(...options) { super(...options); workers.push(this); }
  };
}"""


def test_a_dead_worker_is_replaced(serve: Serve, browse: Browse) -> None:
    with browse(cameras=1) as page:
        page.add_init_script(KEEP_WORKERS)
        page.goto(serve().url)
        page.click("#start")
        wait(page, lambda: page_fps(page) > 0, "a measured frame")
        page.evaluate("workers[0].terminate()")
        wait(page, lambda: page.evaluate("workers.length") == 2, "a second worker")
        wait(page, lambda: "no picture" not in page.inner_text("#state"), "a picture")
        # The fake camera shows no face.
        expect(page, lambda: page.get_attribute("#reading", "data-state"), "searching")


# Every frame keeps the worker busy for this time.
SLOW_WORKER = b"""{
  const ends = (ms) => { const until = performance.now() + ms; while (performance.now() < until); };
  self.addEventListener("message", ({ data }) => { if (data.kind === "frame") ends(400); });
}
"""


def test_a_busy_computer_is_told_and_not_the_camera(serve: Serve, browse: Browse, tmp_path: Path) -> None:
    server = serve()
    worker = next(name for name in server.assets if name.startswith("assets/worker-"))
    asset = server.assets[worker]
    server.assets[worker] = Asset(asset.media_type, content=SLOW_WORKER + asset.read())
    frames, _, _ = film(72, 5)
    with browse(write_y4m(tmp_path / "72.y4m", frames)) as page:
        page.goto(server.url)
        page.click("#start")
        told = "This computer is busy"
        wait(page, lambda: told in page.inner_text("#guidance"), told)
        assert page.inner_text("#bpm") == "––"
