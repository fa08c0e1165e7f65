"""The same recorded frames through Python and through the page's worker give the same waves and readings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import WavePiece, WindowResult
from phase_rppg.session.session import Session
from phase_rppg.types import ByteArray, Estimate, FloatArray, Frame
from phase_rppg.web import Asset, PageServer

from .filming import HEIGHT, WIDTH, film

# Feeds raw frames to the page's own worker, one after the other, and gathers what it says.
FEED = """async ({ worker, wasm, method, times, width, height }) => {
  const film = new Uint8Array(await (await fetch("./film.rgba")).arrayBuffer());
  const running = new Worker(worker, { type: "module" });
  const answers = [];
  let wake = null;
  running.onmessage = ({ data }) => { answers.push(data); wake?.(); };
  const next = async (...kinds) => {
    for (;;) {
      while (answers.length > 0) {
        const answer = answers.shift();
        if (answer.kind === "failed") throw new Error(answer.problem);
        if (kinds.includes(answer.kind)) return answer;
      }
      await new Promise((done) => { wake = done; });
    }
  };
  running.postMessage({ kind: "load", base: document.baseURI, wasm: new URL(wasm, document.baseURI).href });
  const { method: name } = await next("ready");
  running.postMessage({ kind: "start", method });
  const windows = [], values = [], valid = [];
  const keep = (events) => {
    for (const event of events) {
      if (event.kind === "window") windows.push(event);
      if (event.kind === "wave") { values.push(...event.wave.values); valid.push(...event.wave.valid); }
    }
  };
  let tookMs = 0;
  for (const [i, tS] of times.entries()) {
    const rgba = film.slice(i * width * height * 4, (i + 1) * width * height * 4);
    running.postMessage({ kind: "frame", picture: { rgba, width, height }, tS }, [rgba.buffer]);
    const done = await next("frame");
    keep(done.events);
    tookMs += done.tookMs / times.length;
  }
  running.postMessage({ kind: "finish" });
  keep((await next("finished")).events);
  running.terminate();
  return { name, windows, values, valid, tookMs };
}"""


@pytest.fixture(scope="module")
def recorded() -> tuple[list[ByteArray], FloatArray]:
    frames, t_s, _ = film(80, 12.5, seed=11)
    return frames, t_s


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an export of an untrained network: parity needs no skill."""
    torch = pytest.importorskip("torch", reason="torch is missing: scripts/install --all")
    from phase_rppg.nn import build
    from phase_rppg.train.export import export_network

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("networks")
    network: Any = build("phasenet-stream")
    export_network(network.eval(), folder / "phasenet-stream.onnx", name="phasenet-stream", delay_frames=3)
    return folder


def rgba(frames: list[ByteArray], folder: Path) -> Asset:
    """The frames as the page's worker takes them, one after the other in a file."""
    with open(folder / "film.rgba", "wb") as file:
        for rgb in frames:
            file.write(np.dstack([rgb, np.full((HEIGHT, WIDTH), 255, np.uint8)]).tobytes())
    return Asset("application/octet-stream", folder / "film.rgba")


def feed(page: Any, server: PageServer, t_s: FloatArray, **choices: str) -> dict[str, Any]:
    """What the page's worker says to the film; time is that of the frames, however long they take."""
    worker = next(f"./{name}" for name in server.assets if name.startswith("assets/worker-"))
    wasm = next(f"./{name}" for name in server.assets if name.endswith(".wasm"))
    size = {"width": WIDTH, "height": HEIGHT}
    order = {"worker": worker, "wasm": wasm, "times": [float(t) for t in t_s], **size}
    page.goto(server.url)
    got: dict[str, Any] = page.evaluate(FEED, order | choices)
    return got


@pytest.mark.parametrize("method", ["pos", "network"])
def test_python_and_the_page_give_the_same_wave_rate_and_reasons(
    method: str,
    recorded: tuple[list[ByteArray], FloatArray],
    networks: Path,
    serve: Callable[..., PageServer],
    browse: Callable[..., Any],
    tmp_path: Path,
) -> None:
    from phase_rppg.infer import load

    frames, t_s = recorded
    server = serve({"film.rgba": rgba(frames, tmp_path)}, networks=networks)
    with browse() as page:
        got = feed(page, server, t_s, **({"method": "pos"} if method == "pos" else {}))

    model = load(networks / "phasenet-stream.json") if method == "network" else None
    session = Session(SessionConfig(model=model, faces="largest"))
    events = [
        event for rgb, t in zip(frames, t_s, strict=True) for event in session.push(Frame(rgb, float(t)))
    ]
    events += session.finish()
    windows = [event for event in events if isinstance(event, WindowResult)]
    pieces = [event.wave for event in events if isinstance(event, WavePiece)]
    values = np.concatenate([wave.values for wave in pieces])
    valid = np.concatenate([wave.valid for wave in pieces])

    assert len(windows) >= 3
    assert got["valid"] == valid.astype(int).tolist()
    assert np.corrcoef(np.array(got["values"])[valid], values[valid])[0, 1] >= 0.999
    assert len(got["windows"]) == len(windows)
    for mine, theirs in zip(windows, got["windows"], strict=True):
        assert mine.peak is not None
        if mine.peak.snr_db > 3:  # below that the highest point of the spectrum is chance
            assert abs(mine.peak.bpm - theirs["peak"]["bpm"]) <= 0.5
        if isinstance(mine.reading, Estimate):
            assert abs(mine.reading.bpm - theirs["reading"]["bpm"]) <= 0.5
        else:
            assert str(mine.reading.reason) == theirs["reading"]["reason"]


@pytest.mark.parametrize(("world", "bpm"), [("photo", 72), ("studio", 110)])
def test_the_shipped_network_reads_hearts_and_no_photos_at_full_frame_rate(
    world: str, bpm: float, serve: Callable[..., PageServer], browse: Callable[..., Any], tmp_path: Path
) -> None:
    frames, t_s, truth_bpm = film(bpm, 12, world=world)
    server = serve({"film.rgba": rgba(frames, tmp_path)})
    with browse() as page:
        got = feed(page, server, t_s)
    assert got["name"] == "phasenet-stream"
    assert len(got["windows"]) >= 2
    for window in got["windows"]:
        assert window["quality"]["fps"] == pytest.approx(30, abs=0.5)
        if world == "photo":
            assert window["reading"].get("reason") == "NO_PULSE"
        else:
            assert window["reading"].get("bpm") == pytest.approx(truth_bpm, abs=2)
