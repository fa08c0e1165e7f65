"""Every plot shows its data, also in edge cases, and is written atomically."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from phase_rppg.errors import ArgumentError
from phase_rppg.evaluate import plots, selective
from phase_rppg.report.figure_file import save_figure

pytestmark = pytest.mark.smoke

RNG = np.random.default_rng(0)
TRUTH = RNG.uniform(50, 130, 80)
ESTIMATE = TRUTH + RNG.normal(0.5, 3, 80)
GROUPS = ["studio", "phone"] * 40
STATED = RNG.uniform(0, 1, 200)
RIGHT = RNG.uniform(size=200) < STATED


def figures() -> dict[str, Figure]:
    curve = selective.risk_coverage(np.abs(ESTIMATE - TRUTH), RNG.uniform(size=80), windows=100)
    one = np.array([70.0, 70.0])
    return {
        "scatter": plots.scatter(ESTIMATE, TRUTH, title="ours", groups=GROUPS),
        "scatter of one rate": plots.scatter(one, one),
        "bland-altman": plots.bland_altman(ESTIMATE, TRUTH, groups=GROUPS),
        "bland-altman of one rate": plots.bland_altman(one, one),
        "risk-coverage": plots.risk_coverage({"ours": curve}),
        "risk-coverage of nobody": plots.risk_coverage({}),
        "reliability": plots.reliability(selective.reliability(STATED, RIGHT)),
        "reliability of one": plots.reliability(selective.reliability([0.5], [True])),
    }


def test_every_figure_is_written(tmp_path: Path) -> None:
    for name, figure in figures().items():
        path = tmp_path / f"{name}.png"
        save_figure(figure, path)
        assert path.read_bytes().startswith(b"\x89PNG"), name
    assert len(list(tmp_path.iterdir())) == len(figures())  # nothing temporary is left


def test_the_scatter_plot_shows_every_reading() -> None:
    axes = plots.scatter(ESTIMATE, TRUTH).axes[0]
    points = np.asarray(axes.collections[-1].get_offsets())
    np.testing.assert_allclose(points, np.stack([TRUTH, ESTIMATE], axis=1))
    assert axes.get_xlim() == axes.get_ylim()


def test_the_risk_coverage_plot_shows_the_curve() -> None:
    curve = selective.risk_coverage([4.0, 0.0, 2.0], [0.1, 0.9, 0.5])
    line = plots.risk_coverage({"ours": curve}).axes[0].lines[0]
    np.testing.assert_allclose(line.get_xdata(), curve.coverage)
    np.testing.assert_allclose(line.get_ydata(), curve.risk)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"\.png"):
        save_figure(plots.risk_coverage({}), tmp_path / "x.docx")
    with pytest.raises(ArgumentError, match="groups"):
        plots.scatter(ESTIMATE, TRUTH, groups=["a"])
