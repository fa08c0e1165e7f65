"""Measure recorded faces with the page of `phase live`, in two browsers, on a quiet and on a busy computer.

    python benchmarks/live_faces.py UBFC --new 1 --out benchmarks/results/live_faces.json

UBFC is UBFC-rPPG or a part of it; the environment variable PHASE_REAL_DATA may name it. Each recording is the
camera of Chromium and of Firefox, once alone and once beside two processes that never pause. Chromium plays
the file as its fake camera. That of Firefox plays no files, so a video element supplies the stream. A run
measures `--new` recordings that the result does not hold yet.

Each frame carries its number at the left edge, so the contact PPG can be assigned to the windows of the page
even if the camera plays slowly. `windows` counts the windows of 10 s in the time of the measurement, `shown`
those with a rate. The error is that of shown windows against the spectral peak of the PPG. The first number
and the first estimate ("about 70") are timed from the click on "Start camera".
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg.datasets import base, reference_rate
from phase_rppg.fileio import dump_json, read_json, write_json
from phase_rppg.types import ByteArray, FloatArray, Frame, Recording, Waveform
from phase_rppg.video.encode import write_video
from phase_rppg.web import Asset, PageServer, catalogue

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from web import filming  # noqa: E402
from web.firefox import firefox_page  # noqa: E402
from web.projection import WATCH  # noqa: E402

SECONDS = 44.0  # of each measurement; the shortest recording of UBFC-rPPG has 46 s
FILM_S = SECONDS + 2
WINDOW_S = 10.0
LIMIT = 0.9  # smallest share of shown windows on a busy computer, relative to the quiet one
BUSY_PROCESSES = 2
BUSY = "while True: pass"
CHROMIUM = [
    "--no-sandbox", "--disable-gpu", "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
]  # fmt: skip
VIEWPORT = {"width": 1080, "height": 760}

# Replaces the camera of Firefox by a video element.
VIDEO_CAMERA = """async () => {
  const film = await (await fetch("./film.mp4")).blob();
  const source = document.createElement("video");
  source.muted = true;
  source.src = URL.createObjectURL(film);
  await new Promise((done) => { source.oncanplaythrough = done; });
  const open = async () => {
    await source.play();
    return source.mozCaptureStream();
  };
  Object.defineProperty(MediaDevices.prototype, "getUserMedia", { value: open });
}"""

# Starts the measurement and notes when it begins, and when the first number and the first estimate are shown.
START = """() => {
  const nowS = () => performance.now() / 1000;
  const noted = window.noted = { clickedS: nowS() };
  const find = (id) => document.getElementById(id);
  new MutationObserver(() => {
    if (document.body.dataset.view === "live") noted.beginS ??= nowS();
  }).observe(document.body, { attributes: true });
  setInterval(() => {
    if (parseFloat(find("bpm").textContent) > 0) noted.numberS ??= nowS();
    if (!find("about").hidden) noted.estimateS ??= nowS();
  }, 100);
  find("start").click();
}"""

# Ends the measurement and returns the document that the page saves, and the notes.
STOP = """async () => {
  const saved = new Promise((done) => {
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      if (blob.type === "application/json") blob.text().then((text) => done(JSON.parse(text)));
      return create.call(URL, blob);
    };
  });
  document.querySelector("#start").click();
  while (document.querySelector("#summary").hidden) await new Promise((done) => setTimeout(done, 50));
  document.querySelector("#json").click();
  return { document: await saved, noted: window.noted, seen: window.seen };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = os.environ.get("PHASE_REAL_DATA")
    parser.add_argument("root", type=Path, nargs="?" if default else None, default=default)
    parser.add_argument("--new", type=int, default=1, help="recordings to measure in this run")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = read_json(options.out)["rows"] if options.out.exists() else []
    done = {row["recording"] for row in rows}
    waiting = [one for one in base.load("ubfc_rppg", options.root) if one.name not in done]
    for recording in waiting[: options.new]:
        rows += measure(recording)
        write_json(options.out, document(rows))
    print(dump_json(document(rows)))


def measure(recording: Recording) -> list[dict[str, Any]]:
    """Return one row for each browser and each load."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        times_s = write_films(recording, folder)
        files = catalogue() | {"film.mp4": Asset("video/mp4", folder / "film.mp4")}
        with PageServer(files, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for (browser, opened), busy in itertools.product(BROWSERS.items(), (False, True)):
                with opened(folder) as page, busy_processes(BUSY_PROCESSES if busy else 0):
                    found = run(page, server.url, browser)
                    load = os.getloadavg()[0]
                row = {"recording": recording.name, "browser": browser, "busy": busy, "load": round(load, 1)}
                rows.append(row | judged(found, times_s, recording.reference))
                print(dump_json(rows[-1]), flush=True)
            server.shutdown()
    return rows


def write_films(recording: Recording, folder: Path) -> FloatArray:
    """Write the numbered frames as film.y4m and film.mp4, and return their times in the recording."""
    import av

    def frames() -> Iterator[Frame]:
        return itertools.takewhile(lambda frame: frame.t_s < FILM_S, recording.video.frames())

    pictures = (numbered(frame.rgb, number) for number, frame in enumerate(frames()))
    times_s = np.array([frame.t_s for frame in frames()])
    write_video(folder / "film.mp4", pictures, t_s=times_s, crf=4, preset="veryfast")
    rate = round(1000 * (len(times_s) - 1) / (times_s[-1] - times_s[0]))
    with open(folder / "film.y4m", "wb") as file:
        for number, frame in enumerate(frames()):
            if number == 0:
                height, width = frame.rgb.shape[:2]
                file.write(f"YUV4MPEG2 W{width} H{height} F{rate}:1000 Ip A1:1 C420jpeg\n".encode())
            picture = av.VideoFrame.from_ndarray(numbered(frame.rgb, number), format="rgb24")
            file.write(b"FRAME\n" + picture.reformat(format="yuv420p").to_ndarray().tobytes())
    return times_s


def numbered(rgb: ByteArray, number: int) -> ByteArray:
    """Return the picture with its number on the left edge, as the films of the tests have it."""
    height, width = rgb.shape[:2]
    small = filming.numbered(np.zeros((filming.HEIGHT, filming.WIDTH, 3), np.uint8), number)
    columns = filming.DIGITS * filming.COLUMN_PX * width // filming.WIDTH
    y, x = np.arange(height) * filming.HEIGHT // height, np.arange(columns) * filming.WIDTH // width
    marked = rgb.copy()
    marked[:, :columns] = small[y[:, None], x]
    return marked


@contextmanager
def chromium(folder: Path) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    camera = f"--use-file-for-fake-video-capture={folder / 'film.y4m'}"
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        with playwright.chromium.launch(executable_path=path, args=[*CHROMIUM, camera]) as browser:
            yield browser.new_page(viewport=VIEWPORT)


@contextmanager
def firefox(_folder: Path) -> Iterator[Any]:
    with firefox_page(shutil.which("firefox-esr") or "firefox") as page:
        yield page


BROWSERS = {"Chromium": chromium, "Firefox": firefox}


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def run(page: Any, url: str, browser: str) -> dict[str, Any]:
    """Measure for SECONDS and return what the page saved and what was seen."""
    page.goto(url)
    while not page.evaluate("document.querySelector('#network').textContent"):
        page.wait_for_timeout(100)
    if browser == "Firefox":
        page.evaluate(VIDEO_CAMERA)
    page.evaluate(WATCH)
    page.evaluate(START)
    while not (began_s := page.evaluate("window.noted.beginS ?? 0")):
        page.wait_for_timeout(50)
    now_s = page.evaluate("performance.now() / 1000")
    page.wait_for_timeout(1000 * (began_s + SECONDS - now_s))
    found: dict[str, Any] = page.evaluate(STOP)
    return found


def judged(found: dict[str, Any], times_s: FloatArray, reference: Waveform) -> dict[str, Any]:
    """Compare the windows of the page with the contact PPG."""
    noted, document = found["noted"], found["document"]
    seen = np.array(found["seen"])
    seen = seen[seen[:, 1] >= noted["beginS"]]
    page_s, film_s = seen[:, 1] - seen[0, 1], times_s[seen[:, 2].astype(int)]
    truth = retimed(reference, page_s, film_s)
    windows = [window for face in document["faces"] for window in face["windows"]]
    shown = [window for window in windows if window["bpm"] is not None]
    rates = [reference_rate.window_bpm(truth, window["start_s"], window["end_s"]) for window in shown]
    errors = np.array(
        [abs(one["bpm"] - bpm) for one, bpm in zip(shown, rates, strict=True) if bpm is not None]
    )
    reasons = [window["reason"] for window in windows if window["reason"] is not None]
    return {
        "seconds": round(document["duration_s"], 1),
        "shown": len(shown),
        "errors_bpm": [round(float(error), 2) for error in errors],
        "first_number_s": since(noted, "numberS"),
        "first_estimate_s": since(noted, "estimateS"),
        "frames_per_s": round(np.count_nonzero(np.diff(film_s)) / float(page_s[-1]), 1),
        "camera_speed": round(float((film_s[-1] - film_s[0]) / page_s[-1]), 3),
        "reasons": {reason: reasons.count(reason) for reason in sorted(set(reasons))},
    }


def since(noted: dict[str, float], what: str) -> float | None:
    return round(noted[what] - noted["clickedS"], 1) if what in noted else None


def retimed(reference: Waveform, page_s: FloatArray, film_s: FloatArray) -> Waveform:
    """Return the reference on the clock of the page."""
    at_s = np.arange(0, page_s[-1], 1 / reference.fps)
    values = np.interp(np.interp(at_s, page_s, film_s), reference.t_s, reference.values)
    return Waveform(values, reference.fps, 0.0, np.ones(len(values), bool))


def document(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows with the figures of all recordings, by browser and load."""
    rows = [{**row, "windows": int(row["seconds"] - WINDOW_S) + 1} for row in rows]
    table: dict[str, Any] = {}
    for browser in BROWSERS:
        quiet, busy = (
            summary([row for row in rows if row["browser"] == browser and row["busy"] is load])
            for load in (False, True)
        )
        ratio = round(busy["share"] / quiet["share"], 3) if quiet["share"] and busy["windows"] else None
        kept = ratio is not None and ratio >= LIMIT
        table[browser] = {"quiet": quiet, "busy": busy, "busy_to_quiet": ratio, "limit_kept": kept}
    return {
        "command": "python benchmarks/live_faces.py UBFC",
        "seconds": SECONDS,
        "busy_processes": BUSY_PROCESSES,
        "processors": os.cpu_count(),
        "limit": LIMIT,
        "browsers": table,
        "rows": rows,
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    windows, shown = (sum(row[key] for row in rows) for key in ("windows", "shown"))
    errors = np.array([error for row in rows for error in row["errors_bpm"]])
    return {
        "recordings": len(rows),
        "windows": windows,
        "shown": shown,
        "share": round(shown / windows, 3) if windows else None,
        "mae_bpm": round(float(errors.mean()), 2) if len(errors) else None,
        "within_5_bpm": round(float(np.mean(errors <= 5)), 3) if len(errors) else None,
        "first_number_s": middle(rows, "first_number_s"),
        "first_estimate_s": middle(rows, "first_estimate_s"),
    }


def middle(rows: list[dict[str, Any]], key: str) -> float | None:
    """Return the median of the recordings that have a value."""
    values = [row[key] for row in rows if row[key] is not None]
    return round(float(np.median(values)), 1) if values else None


if __name__ == "__main__":
    main()
