"""An internal error gives exit code 1 and one line that does not blame the video."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phase_rppg import workers
from phase_rppg.cli import run
from phase_rppg.errors import InternalError
from phase_rppg.measurement import batch
from phase_rppg.video import guard

pytestmark = pytest.mark.smoke


@pytest.fixture
def broken_decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "decoder.py"
    script.write_text("raise TypeError('no such option')")
    monkeypatch.setattr(guard, "DECODER_SCRIPT", script)


@pytest.mark.usefixtures("broken_decoder")
def test_an_error_in_the_decoder_gives_one_line_and_exit_code_1(
    film: Callable[[str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", str(film("short")), "--json"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("internal error while decoding ")
    assert "TypeError: no such option (set PHASE_DEBUG=1 for the traceback)" in err


@pytest.mark.usefixtures("broken_decoder")
def test_the_traceback_is_shown_on_request(
    film: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHASE_DEBUG", "1")
    with pytest.raises(InternalError) as caught:
        run(["measure", str(film("short"))])
    assert "Traceback" in str(caught.value.__cause__)


@pytest.mark.usefixtures("broken_decoder")
def test_an_error_in_the_decoder_during_a_batch_gives_exit_code_1(
    film: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def run_here(work: Any, jobs: list[workers.Job], _: int, **__: Any) -> Any:
        return workers.run_jobs(work, jobs, 0)  # the broken decoder exists in this process only

    monkeypatch.setattr(batch, "run_jobs", run_here)
    assert run(["measure", str(film("short")), str(film("text"))]) == 1
    assert "internal error while decoding" in " ".join(capfd.readouterr().out.split())
