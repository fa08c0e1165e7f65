"""How the fake camera's film really ran, so that tests can judge the page and not the computer.

The camera never skips a frame: on a busy machine the film, and the heart in it, run slower and less evenly
than they were made. Every frame carries its number, so a test knows which beat the page saw at which time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from phase_rppg.signal.rate import spectral_bpm
from phase_rppg.signal.resample import to_uniform

from .filming import BASE, BLOCK_PX, COLUMN_PX, DIGITS, FPS, HEIGHT, WIDTH

WINDOW_S = 11.5  # what a number on the page rests on: its window, and the time to show it
EVEN_BEATS = 0.12  # a film that strays by less from a constant pace must give a number
CLEAR_BEATS = 0.35  # and one that strays by less has a rate: a number is judged, whatever the frame rate
FAIR_FPS = 12.0  # frames per second for which a number is promised; the session itself needs 10
PROMISED_S = 30  # of the film, within which an even one must give a steady number
PATIENCE_S = 240  # for a film to run evenly at all
STALL_S = 0.3  # without a frame: whatever takes long meanwhile is not the page's doing

# For a test that removes these features from the page, before it does so.
KEEP_FEATURES = """window.kept = {
  OffscreenCanvas, VideoFrame, request: HTMLVideoElement.prototype.requestVideoFrameCallback,
};"""

# Notes number and time of every shown frame, with what the page shows beside it. The video may be in a shadow
# root, as that of <phase-pulse>.
WATCH = """() => {
  const { OffscreenCanvas, VideoFrame } = window.kept ?? window;
  const [base, block, column, digits, width, height] = %s;
  const canvas = new OffscreenCanvas(digits * column, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const roots = [document, ...[...document.querySelectorAll("*")].map((one) => one.shadowRoot)];
  const find = (selector) => roots.map((root) => root?.querySelector(selector)).find(Boolean);
  const video = find("video"), number = find("#bpm, output");
  const request = window.kept?.request ?? video.requestVideoFrameCallback;
  window.seen = [];
  const digit = (data, place) => {
    const middle = place * column + (column >> 1);
    const level = (at) => data[4 * ((at * block + block / 2) * canvas.width + middle)];
    return [...Array(base).keys()].reduce((best, at) => (level(at) < level(best) ? at : best), 0);
  };
  const exact = navigator.userAgent.includes("Chrome"); // Firefox has frame timestamps in whole seconds
  const look = (_now, { mediaTime }) => {
    request.call(video, look);
    let frame;
    try { frame = new VideoFrame(video); } catch { return; }
    context.drawImage(frame, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
    let index = 0;
    for (let place = digits - 1; place >= 0; place--) index = index * base + digit(data, place);
    const shown = parseFloat(number.textContent);
    const tS = exact ? frame.timestamp / 1e6 : mediaTime;
    window.seen.push([tS, performance.now() / 1000, index, shown || 0]);
    frame.close();
    if (window.seen.length > 4000) window.seen.shift();
  };
  request.call(video, look);
}""" % [BASE, BLOCK_PX, COLUMN_PX, DIGITS, WIDTH, HEIGHT]


# State and number, read together: the page may change between two questions.
READING = (
    """() => [document.querySelector("#reading").dataset.state, document.querySelector("#bpm").textContent]"""
)


@dataclass(frozen=True)
class Pace:
    """The film during one window of the page."""

    start_s: float  # on the page's clock, as are all times here
    end_s: float
    bpm: float  # the heart's rate as the page saw it
    wobble_beats: float  # how far its beats strayed from a constant rate
    fps: float  # frames that the page measured

    @property
    def even(self) -> bool:
        return self.wobble_beats <= EVEN_BEATS and self.fps >= FAIR_FPS

    @property
    def clear(self) -> bool:
        return self.wobble_beats <= CLEAR_BEATS


def page_fps(page: Any) -> float:
    """Frames per second as the page tells them; 0 before it does."""
    return float(page.get_attribute("#facts", "data-fps") or 0)


def steady_bpm(page: Any) -> float | None:
    """The number that the page shows as steady."""
    state, bpm = page.evaluate(READING)
    return float(bpm) if state == "steady" else None


@dataclass(frozen=True)
class Shown:
    """How to read a page, and how exact its number must be."""

    bpm: Callable[[Any], float | None] = steady_bpm  # the number that is judged
    fps: Callable[[Any], float] = page_fps
    within_bpm: float = 2.0


def pace(page: Any, truth_bpm: float, frame_count: int, faces: int, shown: Shown = Shown()) -> Pace | None:
    """How the film ran during the last window, None before that is full; its first frames show a face."""
    seen = np.array(page.evaluate("() => window.seen ?? []")).reshape(-1, 4)
    if len(seen) < 2 or seen[-1, 0] - seen[0, 0] < WINDOW_S:
        return None
    seen = seen[seen[:, 0] >= seen[-1, 0] - WINDOW_S]
    t_s, first = np.unique(seen[:, 0], return_index=True)  # a late callback sees a frame twice
    number = seen[first, 2]
    if (number >= faces).any():
        return Pace(t_s[0], t_s[-1], 0.0, np.inf, shown.fps(page))  # nobody's heart
    steps = np.diff(number) % frame_count  # the film is a loop
    beats = np.concatenate([[0.0], np.cumsum(steps)]) / FPS * truth_bpm / 60
    wobble = float(np.abs(beats - np.polyval(np.polyfit(t_s, beats, 1), t_s)).max())
    wave, _, _ = to_uniform(t_s, np.sin(2 * np.pi * beats), FPS)
    got_fps = (len(t_s) - 1) / (t_s[-1] - t_s[0])
    return Pace(t_s[0], t_s[-1], spectral_bpm(wave, FPS), wobble, min(got_fps + 0.1, shown.fps(page)))


def read(
    page: Any, truth_bpm: float, frame_count: int, faces: int | None = None, shown: Shown = Shown()
) -> float:
    """The page's steady number: it must be the heart's within 2 bpm, and there within 30 s of an even film.

    While the film stumbles nothing is asked of the page, and the waiting goes on. Seconds are those of the
    frames: a computer that is busy shows the film later, but a page that saw it has no excuse.
    """
    until = time.monotonic() + PATIENCE_S
    ran: Pace | None = None
    even_since_s: float | None = None
    while time.monotonic() < until:
        ran = pace(page, truth_bpm, frame_count, faces or frame_count, shown)
        bpm = shown.bpm(page)
        if ran is not None and ran.clear and bpm is not None:
            assert abs(bpm - ran.bpm) <= shown.within_bpm, f"{bpm:g} bpm for {ran}"
            return bpm
        if ran is None or not ran.even:
            even_since_s = None
        else:
            even_since_s = ran.start_s if even_since_s is None else even_since_s
            said = page.inner_text("#reading")
            assert ran.end_s - even_since_s < PROMISED_S, (
                f"no steady number within {PROMISED_S} s of an even film: {said}"
            )
        page.wait_for_timeout(500)
    raise AssertionError(
        f"this computer is too busy: the film never ran evenly in {PATIENCE_S} s, last {ran}"
    )


def wait(page: Any, ready: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Look again and again until something is so."""
    until = time.monotonic() + patience_s
    while not ready():
        assert time.monotonic() < until, f"{what} did not happen within {patience_s} s"
        page.wait_for_timeout(200)


Value = TypeVar("Value")


def expect(page: Any, look: Callable[[], Value], wanted: Value, what: str = "") -> None:
    """Look again and again until `wanted` is seen; fail with what is seen instead."""
    until = time.monotonic() + PATIENCE_S
    while (seen := look()) != wanted and time.monotonic() < until:
        page.wait_for_timeout(50)
    assert seen == wanted, what


def clearing_s(page: Any, first_empty: int) -> float:
    """Seconds from the first frame without a face to the number's end, of the last time without a stall.

    Infinite before that happened.
    """
    seen = np.array(page.evaluate("() => window.seen")).reshape(-1, 4)
    gone = seen[:, 2] >= first_empty
    for start in np.flatnonzero(gone[1:] & ~gone[:-1] & (seen[:-1, 3] > 0))[::-1] + 1:
        cleared = np.flatnonzero(seen[start:, 3] == 0)
        if cleared.size == 0:
            continue
        shown_s = seen[start - 1 : start + cleared[0] + 1, 1]
        if np.diff(shown_s).max() <= STALL_S:
            return float(shown_s[-1] - shown_s[1])
    return math.inf
