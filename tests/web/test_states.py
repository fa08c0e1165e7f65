"""Every state of the page in every window size: nothing hangs over, the number is in view, axe is content.

The worker is scripted (see acting.py), so that one page shows all states within seconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from phase_rppg.web import PageServer

from .acting import appeared, face, minutes, say, scripted, window
from .projection import expect, wait
from .test_page import SHOTS, assert_accessible

Serve = Callable[..., PageServer]
Browse = Callable[..., Any]

SIZES = {
    "320x568": (320, 568),
    "390x844": (390, 844),
    "844x390": (844, 390),
    "1366x768": (1366, 768),
    "1920x1080": (1920, 1080),
    "zoom-200": (683, 384),  # 1366×768 at 200 %
}
MEDIA = {
    "dark": {"color_scheme": "dark", "reduced_motion": "no-preference", "forced_colors": "none"},
    "light": {"color_scheme": "light", "reduced_motion": "no-preference", "forced_colors": "none"},
    "forced": {"color_scheme": "dark", "reduced_motion": "reduce", "forced_colors": "active"},
    "still": {"color_scheme": "light", "reduced_motion": "reduce", "forced_colors": "none"},
}
EARLY = {"bpm": 70.2, "low": 67, "high": 73, "pOk": 0.95, "startS": 0, "endS": 6}
# Width of the window, pixels that the page is wider, and where the number ends.
LAYOUT = """() => {
  const names = ["#bpm", "#about", ".summary .big b", ".summary .none"];
  const numbers = names.map((one) => document.querySelector(one));
  const shown = numbers.find((one) => one && one.getClientRects().length > 0);
  const bottom = shown ? Math.round(shown.getBoundingClientRect().bottom) : null;
  return [innerWidth, document.documentElement.scrollWidth - innerWidth, bottom, scrollY];
}"""


def lit(page: Any) -> None:
    say(page, [face()], [appeared(), {"kind": "wave", "face": 0, "bpm": 72, "seconds": 8}])


def probable(page: Any) -> None:
    refused = window(12, "NO_PULSE", p_ok=0.775, pAlive=0.8, probableBpm=104.3)
    say(page, [face()], [window(11, "NO_PULSE", p_ok=0.2), refused], wave=0)


def crowd(page: Any) -> None:
    people = [face(0, 0.02), face(1, 0.5)]
    later = range(180, 184)
    ours, theirs = [window(end, 72.0) for end in later], [window(end, 64.0, 1) for end in later]
    say(page, people, [appeared(1), *ours, *theirs], wave=72)


# The states of a measurement, in an order in which one page can show them, and how each is recognised.
STATES: dict[str, tuple[Callable[[Any], None], str]] = {
    "searching": (lambda page: say(page, []), "#reading[data-state=searching]"),
    "measuring": (lit, "#reading[data-state=measuring]"),
    "dark": (
        lambda page: say(page, [face(sample={"luma": 15, "facePx": 45, "x": 0.1})]),
        "#coach-light[data-level=bad]",
    ),
    "provisional": (lambda page: say(page, [face(provisional=EARLY)]), "#about:has-text('about 70')"),
    "probable": (probable, "#about:has-text('about 104?')"),
    "refused": (
        lambda page: say(page, [face()], [window(13, "LIGHT_FLICKER", p_ok=0.1)], wave=0),
        "#reading[data-reason=LIGHT_FLICKER]",
    ),
    "settling": (lambda page: say(page, [face()], [window(14, 81.0)], wave=81), "#bpm:has-text('81')"),
    "steady": (lambda page: say(page, [face()], minutes(3)), "#reading[data-state=steady]"),
    "people": (crowd, "#people button:nth-child(2):has-text('64')"),
    "one-of-three": (lambda page: say(page, [face()], [], visible=3), "#people:has-text('3 people')"),
}


def show(page: Any, state: str) -> None:
    act, sign = STATES[state]
    act(page)
    page.wait_for_selector(sign)


def shoot(page: Any, name: str) -> None:
    if folder := os.environ.get(SHOTS):
        page.wait_for_timeout(250)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def check_layout(page: Any, state: str, *, thorough: bool = True) -> None:
    """Nothing hangs over and the number is in view, in every window size."""
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        expect(page, partial(layout_problem, page, width, height, thorough), None, f"{state} at {size}")
        shoot(page, f"{state}-{size}")
    page.set_viewport_size({"width": 1366, "height": 768})


def layout_problem(page: Any, width: int, height: int, thorough: bool) -> str | None:
    shown_width, over, bottom, scrolled = page.evaluate(LAYOUT)
    if shown_width != width:
        return f"the window has another width: {shown_width} px"
    if over > 0:
        return f"{over} px too wide"
    if thorough and (bottom is None or bottom > height):
        return f"the number ends at {bottom} px"
    return f"scrolled by {scrolled} px" if thorough and scrolled else None


def check_media(page: Any, state: str) -> None:
    """Axe finds nothing in light and dark; pictures of all media are kept."""
    for name, media in MEDIA.items():
        page.emulate_media(**media)
        if name != "still":
            assert_accessible(page)
        shoot(page, f"{state}-{name}")
    page.emulate_media(**MEDIA["dark"])


@pytest.fixture
def stage(serve: Serve, browse: Browse) -> Iterator[Any]:
    """A page with a scripted worker and a camera."""
    with browse(cameras=1, color_scheme="dark", accept_downloads=True) as page:
        page.goto(serve(scripted()).url)
        page.wait_for_selector("#network:not(:empty)", state="attached")
        yield page
        assert page.problems == []


def start(page: Any) -> None:
    page.click("#start")
    page.wait_for_selector("body[data-view=live]")


def test_every_state_fits_every_window_and_is_accessible(stage: Any) -> None:
    check_layout(stage, "idle", thorough=False)
    check_media(stage, "idle")
    assert not stage.is_visible("#wave")  # no empty plots before the measurement
    stage.click("#settings-button")
    check_layout(stage, "settings", thorough=False)
    check_media(stage, "settings")
    stage.click("#settings-button")
    start(stage)
    for state in STATES:
        show(stage, state)
        check_layout(stage, state)
        if state in ("dark", "provisional", "probable", "steady", "people"):
            check_media(stage, state)
    stage.click("#breathe")
    check_layout(stage, "breathing")
    check_media(stage, "breathing")
    stage.click("#breathe")
    stage.keyboard.press("d")
    check_layout(stage, "details")
    check_media(stage, "details")
    stage.click("#start")
    stage.wait_for_selector("#summary:not([hidden])")
    check_layout(stage, "summary")
    check_media(stage, "summary")


# State, reading, estimate and the line below, as a person sees them.
NUMBER = """() => ["#state", "#bpm", "#about", "#interval"].map((one) => {
  const place = document.querySelector(one);
  return place.getClientRects().length > 0 ? place.innerText.trim() : "";
})"""


def expect_number(page: Any, state: str, bpm: str, about: str, below: str = "") -> None:
    def seen() -> tuple[list[str], bool]:
        *number, interval = page.evaluate(NUMBER)
        return number, below in interval

    expect(page, seen, ([state, bpm, about], True), below)


def test_an_estimate_is_never_shown_as_a_reading(stage: Any) -> None:
    start(stage)
    show(stage, "measuring")
    expect_number(stage, "measuring", "––", "")
    show(stage, "provisional")
    expect_number(stage, "still measuring", "", "about 70", "not counted")
    show(stage, "probable")
    expect_number(stage, "not sure", "", "about 104?", "62 % likely")
    show(stage, "settling")
    expect_number(stage, "settling", "81", "")
    stage.click("#start")
    stage.wait_for_selector("#summary:not([hidden])")
    # Estimates are in no result: one window of 81 is all that was measured.
    with stage.expect_download() as saved:
        stage.click("#json")
    rates = [one["bpm"] for one in json.loads(Path(saved.value.path()).read_text())["faces"][0]["windows"]]
    assert rates == [None, None, 81.0]


def test_the_picture_is_judged_at_once(stage: Any) -> None:
    start(stage)
    show(stage, "measuring")
    levels = "() => [...document.querySelectorAll('#coach li')].map((one) => one.dataset.level)"
    expect(stage, lambda: stage.evaluate(levels)[:3], ["good", "good", "good"])
    show(stage, "dark")
    expect(stage, lambda: stage.evaluate(levels)[:2], ["bad", "fair"])
    wait(stage, lambda: "light" in stage.inner_text("#guidance"), "advice about the light")


def test_one_of_several_people_can_be_enlarged(stage: Any) -> None:
    start(stage)
    show(stage, "measuring")
    show(stage, "people")
    people = stage.locator("#people button")
    expect(stage, people.all_inner_texts, ["Person 1 72", "Person 2 64"])
    expect(stage, lambda: stage.inner_text("#who"), "Person 1")
    stage.click("#people button:nth-child(2)")
    expect(stage, lambda: (stage.inner_text("#who"), stage.inner_text("#bpm")), ("Person 2", "64"))
    expect(stage, lambda: people.nth(1).get_attribute("aria-pressed"), "true")
    show(stage, "one-of-three")
    assert "3 people are in view" in stage.inner_text("#people")


def test_a_result_can_be_saved_shared_and_kept(stage: Any) -> None:
    stage.click("#settings-button")
    stage.check("#keep-history")
    stage.wait_for_selector("#history:has-text('No measurement')")
    start(stage)
    show(stage, "measuring")
    say(stage, [face()], minutes(2))
    stage.click("#start")
    stage.wait_for_selector("#summary:not([hidden])")
    stage.wait_for_selector("#saved:has-text('Stored in your history')")
    assert stage.inner_text(".summary .big b") == "72"
    assert "Median 72" in stage.text_content("#announce")
    saved = {}
    for kind in ("png", "html", "csv", "json"):
        with stage.expect_download() as download:
            stage.click(f"#{kind}")
        assert download.value.suggested_filename.endswith(f".{kind}")
        saved[kind] = Path(download.value.path()).read_bytes()
    assert saved["png"].startswith(b"\x89PNG")
    if folder := os.environ.get(SHOTS):
        (Path(folder) / "saved.png").write_bytes(saved["png"])
        (Path(folder) / "saved.html").write_bytes(saved["html"])
    html = saved["html"].decode()
    assert "<script" not in html
    assert "http" not in html.replace("http-equiv", "")  # nothing is loaded from elsewhere
    assert ">72 <small>" in html
    assert_accessible(stage)
    stage.reload()
    stage.wait_for_selector("#history tbody tr")  # it is still there
    assert stage.locator("#history tbody tr").count() == 1
    assert_accessible(stage)
    with stage.expect_download() as download:
        stage.click("#history-export")
    (entry,) = json.loads(Path(download.value.path()).read_text())
    assert entry["numbers"]["medianBpm"] == pytest.approx(72, abs=1)
    stage.click("#history-delete")
    stage.click("#history-no")
    stage.wait_for_selector("#history-delete")
    assert stage.locator("#history tbody tr").count() == 1
    stage.click("#history-delete")
    stage.click("#history-yes")
    stage.wait_for_selector("#history:has-text('No measurement')")
    assert stage.evaluate("async () => (await indexedDB.databases()).length") <= 1


def test_nothing_is_stored_unless_it_is_wanted(stage: Any) -> None:
    start(stage)
    show(stage, "measuring")
    say(stage, [face()], minutes(1))
    stage.click("#start")
    stage.wait_for_selector("#summary:not([hidden])")
    assert stage.evaluate("async () => (await indexedDB.databases()).length") == 0
    assert stage.evaluate("localStorage.length") == 0
    assert not stage.is_visible("#history")


@pytest.mark.parametrize(
    ("locale", "button", "language"),
    [
        ("de-AT", "Kamera starten", "Deutsch"),
        ("zh-CN", "启动摄像头", "中文"),
        ("fr-FR", "Start camera", "English"),
    ],
)
def test_the_page_speaks_the_language_of_the_browser(
    locale: str, button: str, language: str, serve: Serve, browse: Browse
) -> None:
    with browse(locale=locale, viewport={"width": 320, "height": 568}) as page:
        page.goto(serve(scripted()).url)
        assert page.inner_text("#start") == button
        page.click("#settings-button")
        assert page.inner_text("#language option:checked") == language
        page.select_option("#language", "es")
        assert page.inner_text("#start") == "Iniciar cámara"
        assert page.get_attribute("html", "lang") == "es"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.click("#start")  # nobody allows the camera
        page.wait_for_selector("#reading[data-state=none]")
        assert "bloqueada" in page.inner_text("#guidance")
        page.reload()
        expect(page, lambda: page.inner_text("#start"), "Iniciar cámara")
