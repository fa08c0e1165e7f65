"""A long video needs no more memory than a short one, in the real command."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from cli.filmset import save
from drawing import Actor, Film, clock
from phase_rppg.video.encode import repeat_video

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "measure_memory.py"
ALLOWED_MB = 2.0  # more than the largest of three equal runs, which themselves lie up to 2 apart


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_memory", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_eight_minutes_need_no_more_memory_than_one(tmp_path: Path) -> None:
    face = Actor(lambda t: (80.0, 62.0), width=64)
    clip = save(tmp_path / "clip.mp4", Film((face,), clock(10, 12), height=120, width=160), 12.0)
    tool = benchmark()
    peaks_mb: dict[int, list[float]] = {1: [], 8: []}
    for minutes in (1, 1, 1, 8):
        video, out = tmp_path / f"{minutes}.mp4", tmp_path / "out.json"
        if not video.exists():
            repeat_video(clip, video, 6 * minutes)
        own, decoder, code = tool.peaks_mb([*tool.COMMAND, str(video), "-m", "pos", "--json"], out)
        found = json.loads(out.read_text(encoding="utf-8"))
        assert code == 0
        assert found["duration_s"] == pytest.approx(60 * minutes, abs=0.2)
        assert abs(found["faces"][0]["summary"]["bpm"] - 72) < 1
        peaks_mb[minutes].append(own + decoder)
    assert min(peaks_mb[1]) > 20
    assert max(peaks_mb[8]) < 300
    assert max(peaks_mb[8]) <= max(peaks_mb[1]) + ALLOWED_MB
