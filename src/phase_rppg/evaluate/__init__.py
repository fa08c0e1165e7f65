"""How good readings are: errors with their uncertainty, agreement, the worth of a confidence, pictures."""

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
from .selective import Calibration, RiskCoverage, calibration, risk_coverage

__all__ = [
    "BlandAltman",
    "Calibration",
    "Comparison",
    "Interval",
    "RiskCoverage",
    "Score",
    "Summary",
    "bland_altman",
    "bootstrap",
    "calibration",
    "compare",
    "risk_coverage",
    "summarise",
    "summarise_comparisons",
]
