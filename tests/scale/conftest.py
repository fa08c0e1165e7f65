"""What the tests of large runs share. Packages that are missing skip a test with the reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.filmset import FilmSet


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """film("face") is the path of that small video, made when first asked for."""
    return FilmSet(tmp_path_factory.mktemp("films")).get


@pytest.fixture
def videos(film: Callable[[str], Path], tmp_path: Path) -> Path:
    """A face, a video without a face, and a file that is no video."""
    folder = tmp_path / "videos"
    for name, source in (("a/face.mp4", "face"), ("b/nobody.mp4", "nobody"), ("b/bad.avi", "text")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(film(source), folder / name)
    return folder
