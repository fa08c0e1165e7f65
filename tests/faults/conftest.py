"""Videos and the command that the tests of faults share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.filmset import SIZE, FilmSet, middle
from cli.filmset import film as face_film
from drawing import clock
from phase_rppg.cli import run
from phase_rppg.types import ByteArray


@dataclass(frozen=True)
class Outcome:
    """What `phase measure --json` returned and printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)

    @property
    def rates(self) -> list[float]:
        """Every shown rate, of windows and summaries."""
        faces = self.document["faces"]
        readings = [each for face in faces for each in (face["summary"], *face["windows"])]
        return [each["bpm"] for each in readings if each["bpm"] is not None]

    @property
    def reasons(self) -> set[str]:
        """The reasons of the video and the summaries."""
        document = self.document
        found = {face["summary"]["reason"] for face in document["faces"]} | {document.get("reason")}
        return {reason for reason in found if reason}


@pytest.fixture
def measure(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """measure(path, *options) runs `phase measure --json` in this process."""

    def call(path: Path, *options: str) -> Outcome:
        capfd.readouterr()
        code = run(["measure", str(path), "--json", *options])
        return Outcome(code, *capfd.readouterr())

    return call


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """film("face") is the path of that small video, made when first asked for."""
    return FilmSet(tmp_path_factory.mktemp("films")).get


@pytest.fixture(scope="session")
def pictures() -> list[ByteArray]:
    """9 s of a face with a pulse of 72 bpm, at 30 frames per second."""
    assert SIZE == {"height": 160, "width": 208}
    return [frame.rgb for frame in face_film(middle, clock(9)).frames()]
