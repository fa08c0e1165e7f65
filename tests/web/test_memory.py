"""A running measurement does not fill the memory of the browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from phase_rppg.web import PageServer

from .projection import PATIENCE_S, wait

Serve = Callable[..., PageServer]
Browse = Callable[..., Any]

MEMORY_DUMP = {
    "includedCategories": ["disabled-by-default-memory-infra"],
    "excludedCategories": ["*"],
    "memoryDumpConfig": {"triggers": []},
}
WATCHED_FRAMES = 300  # of 640×480; a cache that keeps them would hold 350 MB
SHOWN_FRAMES = "document.querySelector('#video').getVideoPlaybackQuality().totalVideoFrames"
LIMIT_MB = 10  # eight camera frames of 640×480


def image_caches_mb(page: Any) -> list[float]:
    """The decoded images that every process of Chromium keeps."""
    session = page.context.browser.new_browser_cdp_session()
    events: list[dict[str, Any]] = []
    complete: list[bool] = []
    session.on("Tracing.dataCollected", lambda data: events.extend(data["value"]))
    session.on("Tracing.tracingComplete", lambda _: complete.append(True))
    session.send("Tracing.start", {"traceConfig": MEMORY_DUMP, "transferMode": "ReportEvents"})
    session.send("Tracing.requestMemoryDump", {"levelOfDetail": "detailed"})
    session.send("Tracing.end")
    limit_s = time.monotonic() + PATIENCE_S
    while not complete and time.monotonic() < limit_s:
        page.wait_for_timeout(100)
    session.detach()
    dumps = [event["args"]["dumps"].get("allocators", {}) for event in events if event["ph"] == "v"]
    assert any("v8" in dump for dump in dumps)
    caches = [dump["cc/image_memory"]["attrs"]["size"] for dump in dumps if "cc/image_memory" in dump]
    return [int(size["value"], 16) / 2**20 for size in caches]


def test_frames_of_the_camera_stay_out_of_the_image_cache(serve: Serve, browse: Browse) -> None:
    """A video that is drawn on a canvas leaves every frame in that cache, up to half a gigabyte."""
    with browse(cameras=1) as page:
        page.goto(serve().url)
        page.click("#start")
        page.wait_for_selector("#facts:not(:empty)", state="attached")
        wait(page, lambda: page.evaluate(SHOWN_FRAMES) >= WATCHED_FRAMES, "enough frames")
        assert sum(image_caches_mb(page)) < LIMIT_MB
        assert page.problems == []
