"""What a person and a program get from `phase measure --camera`, with drawn people instead of a camera."""

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
from phase_rppg.video import camera, persist
from phase_rppg.video.persist import Loss

SIZE = {"height": 120, "width": 160}
SLOW = 15.0  # frames per second, to keep these tests short
WORDS = ["measure", "--camera", "0", "--method", "pos", "--window", "6"]


def drawn(seconds: float, place: Callable[[float], tuple[float, float] | None] | None = None) -> Film:
    somewhere = place or (lambda t: (80.0, 62.0))
    return Film((Actor(somewhere, width=76),), clock(seconds, SLOW), **SIZE)  # type: ignore[arg-type]


@dataclass
class Webcam:
    """Plays one film at each opening; when there is none left, the person presses Ctrl-C."""

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
    frames = persist.persistent

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    def watch(given: FrameSource) -> Iterator[Frame | Loss]:
        for item in frames(given, sleep=sleep, clock=lambda: now_s[0]):
            if isinstance(item, Frame):
                now_s[0] = max(now_s[0], item.t_s)
            yield item

    monkeypatch.setattr(camera, "named", lambda text: source)
    monkeypatch.setattr(LiveSession.run, "__defaults__", (watch,))


def test_one_line_of_json_per_window_and_a_loss_is_said_and_survived(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plug_in(monkeypatch, Webcam([drawn(9), drawn(9)]))
    assert run([*WORDS, "--json"]) == 0
    out, err = capfd.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 6
    assert {"face", "start_s", "end_s", "bpm", "low", "high", "p_ok", "snr_db", "reason", "state"} == set(
        rows[0]
    )
    ends_s = [row["end_s"] for row in rows]
    assert ends_s == sorted(ends_s)
    assert any(row["bpm"] is not None and abs(row["bpm"] - 72) < 3 for row in rows)
    assert len({row["face"] for row in rows}) == 2  # nobody is followed across a loss
    assert err.count("camera lost: was unplugged") == 2
    assert "camera lost 2×" in err.splitlines()[-1]


def test_ctrl_c_ends_with_a_summary_and_a_code_that_says_whether_there_was_a_reading(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    plug_in(monkeypatch, Webcam([drawn(2)]))
    assert run([*WORDS, "--quiet"]) == 3
    assert "no reading: TOO_SHORT" in capfd.readouterr().out
    plug_in(monkeypatch, Webcam([]))
    assert run([*WORDS, "--quiet"]) == 130  # before the first picture nothing was begun
    assert capfd.readouterr().err.strip() == "interrupted"


def test_an_absent_camera_is_one_line_and_says_what_there_is(
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
def test_a_camera_goes_alone(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", "--camera", "0", *words]) == 2
    assert "--camera" in capfd.readouterr().err


def picture(live: LiveSession) -> str:
    screen = Console(file=io.StringIO(), width=80, record=True)
    screen.print(render(live, "0"))
    return screen.export_text()


def test_the_view_goes_from_measuring_to_steady_and_is_cleared_when_the_face_leaves() -> None:
    def place(t: float) -> tuple[float, float] | None:
        return (80.0, 62.0) if t < 10 else None

    live = LiveSession(drawn(14, place), MeasureOptions("pos", window_s=6.0).config())
    moods: list[LiveState] = []
    views: dict[LiveState, str] = {}
    cleared_s = 0.0
    for _ in live.run(lambda source: source.frames()):
        mood = live.readout.shown.mood
        if not moods or moods[-1] != mood:
            moods.append(mood)
            views[mood] = picture(live)
            cleared_s = live.t_s
    assert moods[:4] == [LiveState.SEARCHING, LiveState.MEASURING, LiveState.UNSURE, LiveState.STEADY]
    assert moods[-1] == LiveState.SEARCHING
    assert cleared_s <= 12
    assert "to go" in views[LiveState.MEASURING]
    assert "sure to be within 5 bpm" in views[LiveState.STEADY]
    assert "15.0 frames/s" in views[LiveState.STEADY]
    assert "Look at the camera" in views[LiveState.SEARCHING]
    assert all(len(line) <= 76 for view in views.values() for line in view.splitlines())
    summary = live.finish()
    assert isinstance(summary, Estimate)
    assert abs(summary.bpm - 72) < 2


def test_a_lost_camera_clears_the_number_and_says_when_it_is_tried_again() -> None:
    def watch(source: FrameSource) -> Iterator[Frame | Loss]:
        yield from source.frames()
        yield Loss("was unplugged", 4.0)

    live = LiveSession(drawn(8), MeasureOptions("pos", window_s=6.0).config())
    for _ in live.run(watch):
        pass
    view = picture(live)
    assert "camera lost" in view
    assert "Next attempt in 4 s" in view
    assert live.readout.faces == {}
    assert live.readout.any_reading


def test_a_line_of_dots_goes_where_the_values_go() -> None:
    import numpy as np

    rows = braille(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 4, 2)
    assert [len(row) for row in rows] == [4, 4]
    assert rows[1][0] != "⠀"  # starts low on the left …
    assert rows[0][3] != "⠀"  # … ends high on the right
    assert rows[0][0] == "⠀"
    gap = braille(np.linspace(0, 1, 5), np.array([0.5, 0.5, np.nan, 0.5, 0.5]), 9, 1)
    assert "⠀" in gap[0][3:6]
