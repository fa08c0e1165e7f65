"""Output of `phase measure --camera`, with drawn faces instead of a camera."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from rich.console import Console

from drawing import Actor, Film, clock
from phase_rppg.cli import run
from phase_rppg.errors import VideoError
from phase_rppg.measurement.live import LiveSession
from phase_rppg.measurement.live_state import LiveState
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.report.terminal_view import braille, render
from phase_rppg.types import Estimate, Frame, FrameSource
from phase_rppg.video import camera, reconnect
from phase_rppg.video.reconnect import CameraLoss

SIZE = {"height": 120, "width": 160}
SLOW = 15.0  # frames per second, to keep these tests short
WORDS = ["measure", "--camera", "0", "--model", "pos", "--window", "6"]


def drawn(seconds: float, place: Callable[[float], tuple[float, float] | None] | None = None) -> Film:
    somewhere = place or (lambda t: (80.0, 62.0))
    return Film((Actor(somewhere, width=76),), clock(seconds, SLOW), **SIZE)  # type: ignore[arg-type]


@dataclass
class Webcam:
    """A camera that plays one film each time it is opened; after the last one it raises KeyboardInterrupt."""

    films: list[Film]
    opened: int = field(default=0, init=False)

    def frames(self) -> Iterator[Frame]:
        if self.opened == len(self.films):
            raise KeyboardInterrupt
        film = self.films[self.opened]
        self.opened += 1
        yield from film.frames()
        raise VideoError("camera 0", "was unplugged")


def plug_in(monkeypatch: pytest.MonkeyPatch, source: FrameSource) -> None:
    now_s = [0.0]
    frames = reconnect.reconnecting_frames

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    def watch(given: FrameSource) -> Iterator[Frame | CameraLoss]:
        for item in frames(given, sleep=sleep, clock=lambda: now_s[0]):
            if isinstance(item, Frame):
                now_s[0] = max(now_s[0], item.t_s)
            yield item

    monkeypatch.setattr(camera, "parse_camera", lambda text: source)
    monkeypatch.setattr(LiveSession.run, "__defaults__", (watch,))


def test_json_lines_continue_after_a_lost_camera(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plug_in(monkeypatch, Webcam([drawn(9), drawn(9)]))
    assert run([*WORDS, "--json"]) == 0
    out, err = capfd.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 6
    assert {
        "face",
        "start_s",
        "end_s",
        "bpm",
        "low",
        "high",
        "p_ok",
        "p_alive",
        "snr_db",
        "reason",
        "state",
    } == set(rows[0])
    ends_s = [row["end_s"] for row in rows]
    assert ends_s == sorted(ends_s)
    assert any(row["bpm"] is not None and abs(row["bpm"] - 72) < 3 for row in rows)
    assert len({row["face"] for row in rows}) == 2  # tracks end when the camera is lost
    assert err.count("camera lost: was unplugged") == 2
    assert "camera lost 2×" in err.splitlines()[-1]


def test_ctrl_c_prints_a_summary_and_sets_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plug_in(monkeypatch, Webcam([drawn(2)]))
    assert run([*WORDS, "--quiet"]) == 3
    assert "no reading: TOO_SHORT" in capfd.readouterr().out
    plug_in(monkeypatch, Webcam([]))
    assert run([*WORDS, "--quiet"]) == 130  # no frame arrived
    assert capfd.readouterr().err.strip() == "interrupted"


def test_an_absent_camera_lists_the_available_ones(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for found, words in (([], "no camera was found"), (["/dev/video3 (Desk)"], "found: /dev/video3 (Desk)")):
        monkeypatch.setattr(camera, "devices", lambda found=found: found)
        assert run(["measure", "--camera", "/dev/video99"]) == 4
        out, err = capfd.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert err.startswith("error: camera /dev/video99: cannot be opened")
        assert words in err


@pytest.mark.parametrize("words", [["face.mp4"], ["--csv", "x.csv"], ["--plot", "x.png"], ["--fps", "30"]])
def test_camera_refuses_options_for_files(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "--camera", "0", *words]) == 2
    assert "--camera" in capfd.readouterr().err


def picture(live: LiveSession) -> str:
    screen = Console(file=io.StringIO(), width=80, record=True)
    screen.print(render(live, "0"))
    return screen.export_text()


def test_the_view_becomes_steady_and_is_cleared_when_the_face_leaves() -> None:
    def place(t: float) -> tuple[float, float] | None:
        return (80.0, 62.0) if t < 10 else None

    live = LiveSession(drawn(14, place), MeasureOptions("pos", window_s=6.0).config())
    states: list[LiveState] = []
    views: dict[LiveState, str] = {}
    cleared_s = 0.0
    for _ in live.run(lambda source: source.frames()):
        state = live.readout.shown.state
        if not states or states[-1] != state:
            states.append(state)
            views[state] = picture(live)
            cleared_s = live.t_s
    assert states[:4] == [LiveState.SEARCHING, LiveState.MEASURING, LiveState.UNSURE, LiveState.STEADY]
    assert states[-1] == LiveState.SEARCHING
    assert cleared_s <= 12
    assert "to go" in views[LiveState.MEASURING]
    assert "sure to be within 5 bpm" in views[LiveState.STEADY]
    assert "15.0 frames/s" in views[LiveState.STEADY]
    assert "Look at the camera" in views[LiveState.SEARCHING]
    assert all(len(line) <= 76 for view in views.values() for line in view.splitlines())
    summary = live.finish()
    assert isinstance(summary, Estimate)
    assert abs(summary.bpm - 72) < 2


def test_a_lost_camera_clears_the_rate_and_shows_the_next_attempt() -> None:
    def watch(source: FrameSource) -> Iterator[Frame | CameraLoss]:
        yield from source.frames()
        yield CameraLoss("was unplugged", 4.0)

    live = LiveSession(drawn(8), MeasureOptions("pos", window_s=6.0).config())
    for _ in live.run(watch):
        pass
    view = picture(live)
    assert "camera lost" in view
    assert "Next attempt in 4 s" in view
    assert live.readout.faces == {}
    assert live.readout.any_reading


def test_braille_plot_follows_the_values() -> None:
    import numpy as np

    rows = braille(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 4, 2)
    assert [len(row) for row in rows] == [4, 4]
    assert rows[1][0] != "⠀"  # starts low on the left …
    assert rows[0][3] != "⠀"  # … ends high on the right
    assert rows[0][0] == "⠀"
    gap = braille(np.linspace(0, 1, 5), np.array([0.5, 0.5, np.nan, 0.5, 0.5]), 9, 1)
    assert "⠀" in gap[0][3:6]
