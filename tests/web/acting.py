"""The page without networks: its worker says what a test tells it, so that every state is there at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from phase_rppg.web import Asset, catalogue

WORKER = Path(__file__).with_name("scripted_worker.js")
# Says something to the worker, and waits until a frame has carried it.
SAY = """async (said) => {
  window.script ??= new BroadcastChannel("script");
  const id = window.said = (window.said ?? 0) + 1;
  await new Promise((sent) => {
    window.script.onmessage = ({ data }) => { if (data.sent === id) sent(); };
    window.script.postMessage({ ...said, id });
  });
}"""
GOOD = {
    "snr_db": 6, "amplitude": 0.003, "background": 0, "motion": 0, "coverage": 1, "face_px": 140, "luma": 130,
    "clipped": 0, "colourfulness": 0.4, "fps": 30, "max_gap_s": 0.05, "support": 1, "agreement": 1,
    "visible_db": 20, "background_coherence": 0, "red": 0.4,
}  # fmt: skip
SPECTRUM = [math.exp(-(((bpm - 72) / 5) ** 2)) + 0.1 for bpm in range(40, 201)]


def scripted() -> dict[str, Asset]:
    """The worker of the page, exchanged."""
    name = next(name for name in catalogue() if name.startswith("assets/worker-"))
    return {name: Asset("text/javascript; charset=utf-8", WORKER)}


def face(id_: int = 0, left: float = 0.33, **more: Any) -> dict[str, Any]:
    """A face in a picture of 640×480."""
    return {"id": id_, "box": [left * 640, 90, 210, 210], "sample": more.pop("sample", {}), **more}


def appeared(id_: int = 0, t_s: float = 0.0) -> dict[str, Any]:
    return {"kind": "face", "face": id_, "tS": t_s, "change": "appeared"}


def window(
    end_s: float, what: float | str, id_: int = 0, *, p_ok: float = 0.96, **more: Any
) -> dict[str, Any]:
    """A window with a rate, or with the reason for none."""
    span = {"startS": end_s - 10, "endS": end_s}
    if isinstance(what, str):
        reading: dict[str, Any] = {"reason": what, "pOk": p_ok, **span, **more}
        peak = None
    else:
        reading = {"bpm": what, "low": what - 2.5, "high": what + 2.5, "pOk": p_ok, **span}
        peak = {"bpm": what, "snrDb": 6.0, "power": 0.8, "sigmaBpm": 0.5}
    return {
        "kind": "window", "face": id_, **span, "reading": reading, "peak": peak, "quality": GOOD,
        "spectrum": SPECTRUM,
    }  # fmt: skip


def minutes(count: float, bpm: float = 72.0, id_: int = 0) -> list[dict[str, Any]]:
    """The windows of a session of some minutes, with a gap, and its waveform."""
    ends = range(10, round(60 * count))
    gap = range(len(ends) // 2, len(ends) // 2 + 6)
    windows = [
        window(end, "MOTION", id_, p_ok=0.1) if i in gap else window(end, bpm + 3 * math.sin(i / 17), id_)
        for i, end in enumerate(ends)
    ]
    return [*windows, {"kind": "wave", "face": id_, "bpm": bpm, "seconds": 60 * count}]


def say(
    page: Any, faces: Sequence[dict[str, Any]] | None = None, events: Sequence[Any] = (), **more: Any
) -> None:
    """Let the worker say something with the next frame; the page shows it soon after."""
    said = {"events": list(events), **({} if faces is None else {"faces": list(faces)}), **more}
    page.evaluate(SAY, said)
