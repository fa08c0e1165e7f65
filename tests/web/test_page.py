"""The page in a real browser, with a camera that plays films of the generator."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phase_rppg.web import Asset, PageServer

from .filming import FPS, TICK_FRAMES, empty, film, write_y4m

SHOTS = "PHASE_SCREENSHOTS"  # a folder: pictures of every state are kept there


def shoot(page: Any, name: str) -> None:
    if folder := os.environ.get(SHOTS):
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)


def state(page: Any) -> tuple[str, str]:
    return page.get_attribute("#reading", "data-state"), page.inner_text("#bpm")


def wait_for_reading(page: Any) -> float:
    """The number, once the page is steady: within 30 s, unless this computer is too busy to show 15 fps."""
    try:
        page.wait_for_selector("#reading[data-state=steady]", timeout=30_000)
    except Exception:
        fps = float(page.inner_text("#facts").split()[0])
        assert fps < 15, f"{page.inner_text('#reading')} at {fps} fps"
        page.wait_for_selector("#reading[data-state=steady]", timeout=120_000)
    return float(page.inner_text("#bpm"))


def pace(page: Any) -> float:
    """How fast the film really ran during the last window: 1 on a computer that has time for it."""
    first, *_, last = ticks = page.evaluate("() => window.ticks.slice(1).slice(-11)")
    return (len(ticks) - 1) * TICK_FRAMES / FPS / ((last - first) / 1000)


def assert_reads(page: Any, truth_bpm: float) -> None:
    """The number is the heart's; where the film stumbles, as soon as a window has run at an even pace."""
    bpm = wait_for_reading(page)
    until = time.monotonic() + 60
    while abs(bpm - truth_bpm * pace(page)) > 2:
        assert pace(page) < 0.98, f"{bpm} bpm for {truth_bpm:.1f} at full pace"
        assert time.monotonic() < until, f"{bpm} bpm for {truth_bpm:.1f} at pace {pace(page):.3f}"
        page.wait_for_timeout(1000)
        bpm = wait_for_reading(page)


def assert_kept_to_itself(page: Any, server: PageServer) -> None:
    assert page.problems == []
    foreign = [url for url in page.requests if not url.startswith((server.url, "blob:"))]
    assert foreign == []


Serve = Callable[..., PageServer]
Browse = Callable[..., Any]


def test_a_face_is_read_and_when_it_goes_the_number_goes(
    serve: Serve, browse: Browse, tmp_path: Path
) -> None:
    frames, _, truth_bpm = film(72, 10)
    y4m = write_y4m(tmp_path / "72.y4m", [*frames, *frames, *frames, *empty(6)])
    server = serve()
    with browse(y4m, viewport={"width": 1280, "height": 900}) as page:
        page.goto(server.url)
        page.click("#start")
        page.evaluate(WATCH)
        assert_reads(page, truth_bpm)
        shoot(page, "steady-dark")
        until = time.monotonic() + 60  # the film is a loop: sooner or later the face goes
        while (took_ms := page.evaluate("() => window.cleared - window.gone")) != took_ms:  # not a number yet
            assert time.monotonic() < until
            page.wait_for_timeout(200)
        assert took_ms <= 2000
        shoot(page, "gone")
        assert_kept_to_itself(page, server)


# Reads the clock in the film's corner. The fake camera never skips a frame, so on a busy machine the film and
# the heart in it run slower than they were made: the ticks say by how much. White says that nobody is there.
WATCH = """() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  let shown = false, before = null;
  window.ticks = [];
  setInterval(() => {
    context.drawImage(document.querySelector("#video"), 4, 4, 1, 1, 0, 0, 1, 1);
    const level = context.getImageData(0, 0, 1, 1).data[1];
    if (level < 200 && level > 60 !== before) {
      before = level > 60;
      window.ticks.push(performance.now());
    }
    const number = /\\d/.test(document.querySelector("#bpm").textContent);
    shown ||= number;
    if (shown && level > 200) window.gone ??= performance.now();
    if (window.gone !== undefined && !number) window.cleared ??= performance.now();
  }, 50);
}"""


def test_a_fast_heart_is_read(serve: Serve, browse: Browse, tmp_path: Path) -> None:
    frames, _, truth_bpm = film(110, 12)
    server = serve()
    with browse(
        write_y4m(tmp_path / "110.y4m", frames), color_scheme="light", viewport={"width": 390, "height": 844}
    ) as page:
        page.goto(server.url)
        page.focus("body")
        page.keyboard.press("s")  # the keyboard starts it
        page.evaluate(WATCH)
        assert_reads(page, truth_bpm)
        page.keyboard.press("m")
        page.wait_for_timeout(300)
        shoot(page, "steady-phone-light")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing hangs over
        with page.expect_download() as saved:
            page.click("#csv")
        lines = Path(saved.value.path()).read_text().splitlines()
        assert lines[0].startswith("video,face,start_s,end_s,bpm")
        assert len(lines) > 1
        page.keyboard.press("s")
        page.wait_for_selector("#reading[data-state=idle]")
        assert_kept_to_itself(page, server)


def test_a_photo_gets_no_number(serve: Serve, browse: Browse, tmp_path: Path) -> None:
    frames, _, _ = film(72, 8, world="photo")
    server = serve()
    with browse(write_y4m(tmp_path / "photo.y4m", frames)) as page:
        page.goto(server.url)
        page.click("#start")
        page.wait_for_selector("#reading[data-state=none]", timeout=30_000)
        until = time.monotonic() + 6
        while time.monotonic() < until:
            assert state(page)[1] == "––"
            page.wait_for_timeout(200)
        shoot(page, "photo")
        assert_kept_to_itself(page, server)


def test_a_denied_camera_is_explained(serve: Serve, browse: Browse) -> None:
    server = serve()
    with browse() as page:
        page.goto(server.url)
        page.click("#start")
        page.wait_for_selector("#reading[data-state=none]")
        assert "blocked" in page.inner_text("#guidance")
        assert page.inner_text("#start") == "Start camera"
        shoot(page, "denied")


DROP = """async () => {
  const bytes = await (await fetch("./film.mp4")).arrayBuffer();
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], "film.mp4", { type: "video/mp4" }));
  const drop = new DragEvent("drop", { dataTransfer: transfer, bubbles: true });
  document.querySelector("#screen").dispatchEvent(drop);
}"""


def test_a_dropped_video_gets_its_report(serve: Serve, browse: Browse, tmp_path: Path) -> None:
    from phase_rppg.video.encode import write_video

    frames, t_s, truth_bpm = film(84, 12, seed=9)
    write_video(tmp_path / "film.mp4", iter(frames), t_s=t_s, crf=12, preset="veryfast")
    server = serve({"film.mp4": Asset("video/mp4", tmp_path / "film.mp4")})
    with browse(viewport={"width": 1280, "height": 900}, color_scheme="light") as page:
        page.goto(server.url)
        page.evaluate(DROP)
        page.wait_for_selector("#report:not([hidden])", timeout=60_000)
        assert abs(float(page.inner_text("#report .summary b")) - truth_bpm) <= 2
        assert page.locator("#report tbody tr").count() >= 2
        shoot(page, "report-light")
        with page.expect_download() as saved:
            page.click("#json")
        assert '"video": "film.mp4"' in Path(saved.value.path()).read_text()
        assert_kept_to_itself(page, server)


def test_a_file_that_is_no_video_is_explained(serve: Serve, browse: Browse, tmp_path: Path) -> None:
    server = serve()
    (tmp_path / "notes.mp4").write_text("not a video")
    with browse() as page:
        page.goto(server.url)
        page.set_input_files("#file", str(tmp_path / "notes.mp4"))
        page.wait_for_selector("#reading[data-state=none]")
        assert "cannot play it" in page.inner_text("#guidance")


def test_a_damaged_network_is_refused(serve: Serve, browse: Browse) -> None:
    server = serve({"models/face/yunet.onnx": Asset("application/octet-stream", content=b"something else")})
    with browse() as page:
        page.goto(server.url)
        page.wait_for_selector("#reading[data-state=none]")
        assert "damaged" in page.inner_text("#guidance")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_everything_has_a_name_for_those_who_do_not_see_it(serve: Serve, browse: Browse, scheme: str) -> None:
    server = serve()
    with browse(color_scheme=scheme, viewport={"width": 1280, "height": 900}) as page:
        page.goto(server.url)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, select, input, video, [role=img], section")]
              .filter((e) => !(e.ariaLabel || e.getAttribute("aria-labelledby")))
              .filter((e) => !(e.textContent.trim() || e.labels?.length))
              .map((e) => e.outerHTML)"""
        )
        assert nameless == []
        assert page.get_attribute("html", "lang") == "en"
        assert "no picture and no number is sent anywhere" in page.inner_text("footer")
        shoot(page, f"idle-{scheme}")
