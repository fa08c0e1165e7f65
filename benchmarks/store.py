"""Rounds of measurements, their medians and spread, and the file of results."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phase_rppg.fileio import read_json, write_json

from .processes import ROOT, commit, machine

RESULTS = ROOT / "benchmarks" / "results" / "performance.json"

Round = dict[str, float]  # name of a quantity → its value in one round


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a benchmark: the median over rounds, with a limit that it must keep."""

    name: str  # a key of the rounds
    unit: str
    text: str  # of its row on the page
    must: tuple[str, float] | None = None  # ("≤", 1.5)

    def met(self, value: float) -> bool | None:
        """Return whether a value keeps the limit; None if there is none."""
        if self.must is None:
            return None
        sign, limit = self.must
        return value <= limit if sign == "≤" else value >= limit


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark: `measure` runs every variant once, so that rounds are interleaved."""

    name: str
    text: str
    measure: Callable[[Path], Round]  # gets the folder of the clips
    figures: tuple[Figure, ...] = ()
    rounds: int = 3
    axis: str | None = None  # of a growth benchmark: what varies; its quantities are "NAME at VALUE"
    needs: tuple[str, ...] = field(default=())  # packages of an extra


def summarise(rounds: list[Round]) -> dict[str, Any]:
    """Return the median, smallest and largest value of every quantity."""
    found = {}
    for name in rounds[0]:
        values = [one[name] for one in rounds if name in one]
        found[name] = {
            "median": _rounded(statistics.median(values)),
            "smallest": _rounded(min(values)),
            "largest": _rounded(max(values)),
        }
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def load(path: Path = RESULTS) -> dict[str, Any]:
    """Return the stored results, or an empty document."""
    return (
        dict(read_json(path)) if path.exists() else {"command": "python -m benchmarks run", "benchmarks": {}}
    )


def record(benchmark: Benchmark, rounds: list[Round], path: Path = RESULTS) -> dict[str, Any]:
    """Store the result of a benchmark beside those of the others, and return it."""
    document = load(path)
    entry = {
        "text": benchmark.text,
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 1),
        "rounds": len(rounds),
        "quantities": summarise(rounds),
    }
    document["benchmarks"][benchmark.name] = entry
    write_json(path, document)
    return entry


def differences(old: Mapping[str, Any], new: Mapping[str, Any], tolerance: float = 0.1) -> list[str]:
    """Return the quantities whose medians differ by more than the tolerance and by more than the spread."""
    lines = []
    for name, entry in new.get("benchmarks", {}).items():
        before = old.get("benchmarks", {}).get(name, {}).get("quantities", {})
        for quantity, now in entry["quantities"].items():
            then = before.get(quantity)
            if not then or not then["median"]:
                continue
            ratio = now["median"] / then["median"]
            apart = now["smallest"] > then["largest"] or now["largest"] < then["smallest"]
            if abs(ratio - 1) > tolerance and apart:
                lines.append(f"{name}: {quantity} {then['median']:g} → {now['median']:g} ({ratio:.2f}×)")
    return lines
