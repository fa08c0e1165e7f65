"""The numbers of the gate, read from the data files that `phase calibrate` wrote."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from .. import registry
from ..errors import InputError
from ..fileio import read_json, write_json

NETWORKS = "network"  # the family of every method that is not one file of `methods`
# The terms of the gate's model, and which way each can speak: clearer is better, shared with light or motion
# is worse.
TERMS = {
    "snr_db": 1, "share": 1, "log_sigma": -1, "log_amplitude": 1, "background": -1, "motion": -1,
    "support": 1, "agreement": 1, "visible_db": 1, "background_coherence": -1, "off_colour": -1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feature:
    """One term of the logistic model: weight · (clip(x, low, high) − mean) / std."""

    mean: float
    std: float
    low: float
    high: float
    weight: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Beyond these a window is refused whatever its line looks like."""

    min_seconds: float
    min_fps: float
    max_gap_s: float
    min_coverage: float
    min_face_px: float
    min_luma: float
    max_clipped: float
    min_colourfulness: float
    max_background: float
    max_motion: float
    max_off_colour: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Which `p_ok` is shown; `gate.py` holds the rule."""

    threshold: float  # a window is confident from this p_ok on
    kept_threshold: float  # a window near a confident one is shown from this p_ok on
    memory_s: float  # largest distance to that confident window


@dataclass(frozen=True, slots=True)
class Calibration:
    """The gate of one family of methods."""

    family: str
    threshold: float  # these three as in `Thresholds`
    kept_threshold: float
    memory_s: float
    bias: float
    features: dict[str, Feature]
    interval_scale: float  # half-width of the interval = floor + scale · sigma
    interval_floor_bpm: float
    limits: Limits
    provenance: dict[str, Any]  # command, seed, counts and what the gate reached on them

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(self.threshold, self.kept_threshold, self.memory_s)


def family(method: str) -> str:
    """The name of the file that holds a method's gate: its own, or one for all networks."""
    return method if method in registry.names("methods") else NETWORKS


@functools.cache
def load(method: str) -> Calibration:
    """The shipped calibration of a method; methods without their own share that of POS, networks have one."""
    folder = Path(str(resources.files(__package__) / "calibrations"))
    file = folder / f"{family(method)}.json"
    return read(file if file.exists() else folder / "pos.json")


def read(path: Path) -> Calibration:
    """Read and check a calibration file."""
    data = read_json(path)
    try:
        strange = sorted(set(data["features"]) ^ set(TERMS))
        if strange:
            raise ValueError(f"its terms are of another version: {', '.join(strange)}")
        return Calibration(
            family=str(data["family"]),
            threshold=float(data["threshold"]),
            kept_threshold=float(data["kept_threshold"]),
            memory_s=float(data["memory_s"]),
            bias=float(data["bias"]),
            features={name: Feature(**values) for name, values in data["features"].items()},
            interval_scale=float(data["interval_scale"]),
            interval_floor_bpm=float(data["interval_floor_bpm"]),
            limits=Limits(**data["limits"]),
            provenance=dict(data["provenance"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: not a calibration file ({error}); write one with phase calibrate"
        ) from error


def write(path: Path, calibration: Calibration) -> None:
    write_json(path, asdict(calibration))
