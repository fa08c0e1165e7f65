"""docs/guide/read-a-result.md shows a picture and the output of `phase measure` for every reason."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.test_first_steps import differences
from phase_rppg.types import Reason

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "images" / "reasons"
PAGE = (ROOT / "docs" / "guide" / "read-a-result.md").read_text(encoding="utf-8")
MAX_BYTES = 40_000


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        yield importlib.import_module("reason_pictures")
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_small_picture_and_an_output(reason: Reason, script: Any) -> None:
    picture = PICTURES / f"{reason}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < MAX_BYTES
    assert f"(../images/reasons/{reason}.png)" in PAGE
    shown = script.recorded_outputs(PAGE)[reason]
    assert shown.startswith(f"{reason.lower()}.mp4: no reading: {reason} – ")


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in PICTURES.iterdir()} == set(Reason)


def test_the_section_is_what_the_script_writes(script: Any) -> None:
    assert script.with_section(PAGE, script.recorded_outputs(PAGE)) == PAGE


@pytest.mark.slow
@pytest.mark.parametrize("reason", list(Reason))
def test_the_output_is_what_the_command_prints(reason: Reason, script: Any, tmp_path: Path) -> None:
    clip, _ = script.write_clip(reason, tmp_path)
    assert differences(script.recorded_outputs(PAGE)[reason], script.output_of(clip)) == []
