"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.filmset import FilmSet


@pytest.fixture(scope="session")
def film(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """film("face") is the path of that small video, made when first asked for."""
    return FilmSet(tmp_path_factory.mktemp("films")).get
