"""A file in the page gives the numbers of `phase measure`, the same every time, in both browsers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phase_rppg import measure
from phase_rppg.report.document import document
from phase_rppg.video.encode import write_video
from phase_rppg.web import Asset, PageServer

from .conftest import find_firefox
from .filming import film
from .firefox import firefox_page

Serve = Callable[..., PageServer]
Browse = Callable[..., Any]

SECONDS = 24
TOLERANCE_BPM = 0.1

# Drops the film on the page, waits for the report and returns the document that the page saves.
MEASURE = """async (name) => {
  const bytes = await (await fetch("./" + name)).arrayBuffer();
  const report = document.querySelector("#report");
  const saved = new Promise((done) => {
    const create = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      if (blob.type === "application/json") blob.text().then((text) => done(JSON.parse(text)));
      return create(blob);
    };
  });
  const transfer = new DataTransfer();
  transfer.items.add(new File([bytes], name, { type: "video/mp4" }));
  const startMs = performance.now();
  const drop = new DragEvent("drop", { dataTransfer: transfer, bubbles: true });
  document.querySelector("#screen").dispatchEvent(drop);
  while (report.hidden) await new Promise((done) => setTimeout(done, 50));
  const tookS = (performance.now() - startMs) / 1000;
  document.querySelector("#json").click();
  return [await saved, tookS];
}"""


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frames, t_s, _ = film(84, SECONDS, seed=7)
    path = tmp_path_factory.mktemp("files") / "film.mp4"
    write_video(path, iter(frames), t_s=t_s, crf=12, preset="veryfast")
    return path


@pytest.fixture(scope="module")
def reference(video: Path) -> dict[str, Any]:
    """The document of `phase measure`."""
    return document(measure(video))


@pytest.fixture
def page(request: pytest.FixtureRequest, browse: Browse) -> Iterator[Any]:
    if request.param == "firefox":
        with firefox_page(find_firefox()) as opened:
            yield opened
    else:
        with browse() as opened:
            yield opened


def assert_same(got: dict[str, Any], want: dict[str, Any]) -> None:
    assert got["duration_s"] == pytest.approx(want["duration_s"], abs=0.01)
    assert got["method"] == want["method"]
    assert len(got["faces"]) == len(want["faces"]) == 1
    mine, theirs = got["faces"][0], want["faces"][0]
    assert mine["summary"]["bpm"] == pytest.approx(theirs["summary"]["bpm"], abs=TOLERANCE_BPM)
    assert len(mine["windows"]) == len(theirs["windows"]) >= SECONDS - 10
    for here, there in zip(mine["windows"], theirs["windows"], strict=True):
        assert here["reason"] == there["reason"]
        if there["bpm"] is not None:
            assert here["bpm"] == pytest.approx(there["bpm"], abs=TOLERANCE_BPM)


@pytest.mark.parametrize("page", ["chromium", "firefox"], indirect=True)
def test_a_file_gives_the_numbers_of_phase_measure_each_time(
    page: Any, serve: Serve, video: Path, reference: dict[str, Any]
) -> None:
    server = serve({video.name: Asset("video/mp4", video)})
    documents = []
    for _ in range(2):
        page.goto(server.url)
        got, took_s = page.evaluate(MEASURE, video.name)
        print(f"{SECONDS} s of video took {took_s:.1f} s")
        documents.append(got)
    assert_same(documents[0], reference)
    assert documents[0]["warnings"] == []
    assert documents[0] == documents[1]


def test_a_browser_without_a_decoder_plays_the_file_and_says_so(
    serve: Serve, browse: Browse, video: Path, reference: dict[str, Any]
) -> None:
    server = serve({video.name: Asset("video/mp4", video)})
    with browse() as page:
        page.add_init_script("delete globalThis.VideoDecoder;")
        page.goto(server.url)
        got, _ = page.evaluate(MEASURE, video.name)
        assert "was played" in got["warnings"][0]
        assert "was played" in page.inner_text("#summary-note")
    bpm = reference["faces"][0]["summary"]["bpm"]
    assert got["faces"][0]["summary"]["bpm"] == pytest.approx(bpm, abs=2)


# Clicks when the first frames have been measured; a click from outside could come too late.
STOP = """async () => {
  const [picture, progress] = ["#picture", "#progress"].map((one) => document.querySelector(one));
  const measured = () => !picture.hidden && Number(progress.getAttribute("aria-valuenow")) > 0;
  while (!measured()) await new Promise((done) => setTimeout(done, 20));
  document.querySelector("#start").click();
}"""


def test_a_file_can_be_stopped(serve: Serve, browse: Browse, video: Path) -> None:
    server = serve({video.name: Asset("video/mp4", video)})
    with browse() as page:
        page.goto(server.url)
        page.set_input_files("#file", str(video))
        page.evaluate(STOP)
        page.wait_for_selector("#summary:not([hidden])")
        assert page.inner_text("#start") == "Measure again"
        assert page.problems == []
