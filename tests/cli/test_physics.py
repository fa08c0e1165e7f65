"""`phase physics` prints and plots the results of `phase_rppg.physics` and refuses invalid parameters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.cli import run
from phase_rppg.physics import Oscillator, fir_length


def test_json_equals_the_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["physics", "--alpha", "4", "--omega", "7.5", "--fps", "30", "--eps", "0.01", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    oscillator = Oscillator(4.0, 7.5, 1 / 30)
    np.testing.assert_allclose(facts["A"], oscillator.A)
    np.testing.assert_allclose(facts["B"], oscillator.B)
    assert facts["C"] == [1, 0]
    assert facts["spectral_radius"] == pytest.approx(oscillator.spectral_radius)
    assert facts["fir_length"] == fir_length(oscillator, 0.01, 7.5**2)
    assert facts["fir_error_bound"] <= 0.01
    assert facts["fir_length_needed"] <= facts["fir_length"]


def test_the_table_contains_the_filter_length(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["physics"]) == 0
    out = capsys.readouterr().out
    assert "spectral radius" in out
    assert str(fir_length(Oscillator(4.0, 7.5, 1 / 30), 0.01, 7.5**2)) in out


@pytest.mark.parametrize(
    "alpha", ["0.02", "4", "15.9375", "80"]
)  # weakly damped, underdamped, strongly damped, overdamped
def test_every_kind_of_oscillator_is_plotted(alpha: str, tmp_path: Path) -> None:
    picture = tmp_path / "plots" / "oscillator.png"
    assert run(["physics", "--alpha", alpha, "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--omega 70 --fps 30", "unstable"),
        ("--alpha 0", "alpha: got 0.0"),
        ("--alpha -1", "alpha"),
        ("--omega nan", "omega"),
        ("--fps 0", "fps"),
        ("--eps 0", "eps"),
        ("--force-bound -2", "force"),
    ],
)
def test_invalid_parameters_give_one_line(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["physics", *line.split()]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_plot_that_cannot_be_written_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(["physics", "--plot", str(tmp_path / "file" / "x.png")]) == 4
    assert "cannot write" in capsys.readouterr().err
    assert run(["physics", "--plot", str(tmp_path / "x.docx")]) == 2
    assert ".docx" in capsys.readouterr().err
