"""Evaluation of readings: error metrics, agreement, selective prediction, calibration and plots."""

from .agreement import BlandAltman, bland_altman
from .metrics import (
    Comparison,
    Interval,
    Score,
    Summary,
    bootstrap,
    compare,
    summarise,
    summarise_comparisons,
)
from .selective import Reliability, RiskCoverage, reliability, risk_coverage

__all__ = [
    "BlandAltman",
    "Comparison",
    "Interval",
    "Reliability",
    "RiskCoverage",
    "Score",
    "Summary",
    "bland_altman",
    "bootstrap",
    "compare",
    "reliability",
    "risk_coverage",
    "summarise",
    "summarise_comparisons",
]
