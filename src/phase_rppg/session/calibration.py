"""Thresholds, coefficients and limits of the gate, from the data files that `phase calibrate` writes."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from .. import registry
from ..errors import InputError
from ..fileio import read_json, write_json

NETWORKS = "network"  # family of all networks; a classical method is its own family
# The features of the two logistic models and the sign of their coefficients. `p_alive` asks whether blood
# causes the spectral peak, `p_ok` whether the peak has the right rate.
ALIVE_SIGNS = {
    "log_amplitude": 1, "visible_db": 1, "agreement": 1, "support": 1, "log_sigma": -1,
    "log_track_sigma": -1, "background": -1, "background_coherence": -1, "motion": -1, "red_excess": -1,
    "red_deficit": -1, "grey_excess": -1,
}  # fmt: skip
OK_SIGNS = {
    "snr_db": 1, "support": 1, "agreement": 1, "log_amplitude": 1, "visible_db": 1, "log_sigma": -1,
    "log_track_sigma": -1, "log_change": -1, "log_beat_distance": -1, "log_beat_difference": -1,
    "beat_match": 1, "irregularity": -1, "motion": -1,
}  # fmt: skip
INTERVAL_TERMS = (
    "sigma_bpm", "track_sigma_bpm", "change_bpm", "beat_distance_bpm", "beat_difference_bpm",
    "irregular_bpm",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature of the logistic model: it adds weight · (clip(x, low, high) − mean) / std."""

    mean: float
    std: float
    low: float
    high: float
    weight: float


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """P = 1 / (1 + exp(−(bias + Σ features)))."""

    bias: float
    features: dict[str, Feature]


@dataclass(frozen=True, slots=True)
class Interval:
    """Half width of the interval in bpm: floor + Σ scale · term."""

    floor_bpm: float
    scales: dict[str, float]


@dataclass(frozen=True, slots=True)
class QualityLimits:
    """A window outside these limits is refused whatever its spectral peak."""

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
    max_colour_deviation: float


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The probabilities from which a window is shown; `gate.py` has the rule."""

    ok: float  # least p_ok of a shown window
    alive: float  # least p_alive of a confident window
    kept_alive: float  # least p_alive of a shown window near a confident one
    memory_s: float  # largest distance in time to that confident window


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of one family of methods."""

    family: str
    alive: LogisticModel  # of p_alive
    ok: LogisticModel  # of p_ok
    thresholds: Thresholds
    interval: Interval
    limits: QualityLimits
    provenance: dict[str, Any]  # command, seed, counts, and the results of the gate on held-out recordings


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A calibration without `p_ok`. It needs many films, some of them without a pulse."""

    family: str
    alive: LogisticModel
    thresholds: Thresholds
    interval: Interval
    limits: QualityLimits
    provenance: dict[str, Any]


def family(method: str) -> str:
    """Return the family of a method: its own name, or one name for all networks."""
    return method if method in registry.names("methods") else NETWORKS


@functools.cache
def load(method: str) -> Calibration:
    """Return the bundled calibration of a method; a method without a file uses that of POS."""
    return read(_file(method))


def kept_part(method: str) -> KeptPart:
    """Return the part of the bundled calibration of a method that `phase calibrate --only-p-ok` keeps."""
    file = _file(method)
    with _reported(file):
        data = read_json(file)
        facts = dict(data["provenance"])
        known = facts.pop("kept_from", facts)
        return KeptPart(
            family=str(data["family"]),
            alive=_model(data["alive"], ALIVE_SIGNS),
            thresholds=Thresholds(**data["thresholds"]),
            interval=_interval(data["interval"]),
            limits=QualityLimits(**data["limits"]),
            provenance=known,
        )


def _file(method: str) -> Path:
    folder = Path(str(resources.files(__package__) / "calibrations"))
    file = folder / f"{family(method)}.json"
    return file if file.exists() else folder / "pos.json"


def read(path: Path) -> Calibration:
    """Read a calibration file; an invalid one raises an InputError."""
    with _reported(path):
        data = read_json(path)
        calibration = Calibration(
            family=str(data["family"]),
            alive=_model(data["alive"], ALIVE_SIGNS),
            ok=_model(data["ok"], OK_SIGNS),
            thresholds=Thresholds(**data["thresholds"]),
            interval=_interval(data["interval"]),
            limits=QualityLimits(**data["limits"]),
            provenance=dict(data["provenance"]),
        )
        if problem := _problem(calibration):
            raise ValueError(problem)
        return calibration


@contextlib.contextmanager
def _reported(path: Path) -> Iterator[None]:
    """Raise the errors of an invalid calibration file as InputError."""
    try:
        yield
    except KeyError as error:
        raise InputError(
            f"{path}: not a calibration file (no {error}); write one with phase calibrate"
        ) from error
    except (TypeError, AttributeError, OverflowError):
        raise InputError(
            f"{path}: not a calibration file (a value has the wrong type); write one with phase calibrate"
        ) from None
    except ValueError as error:
        raise InputError(
            f"{path}: not a calibration file ({error}); write one with phase calibrate"
        ) from error


def _model(data: Any, signs: Mapping[str, int]) -> LogisticModel:
    _check_names("features", data["features"], signs)
    features = {name: Feature(**values) for name, values in data["features"].items()}
    return LogisticModel(_number(data["bias"]), features)


def _interval(data: Mapping[str, Any]) -> Interval:
    return Interval(_number(data["floor_bpm"]), _scales(data["scales"]))


def _scales(data: Any) -> dict[str, float]:
    _check_names("terms of the interval", data, INTERVAL_TERMS)
    return {name: _number(value) for name, value in data.items()}


def _check_names(what: str, found: Mapping[str, Any], expected: Iterable[str]) -> None:
    different = sorted(set(found) ^ set(expected))
    if different:
        raise ValueError(f"its {what} are of another version: {', '.join(different)}")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _problem(calibration: Calibration) -> str:
    """Return what is wrong with the values of a calibration, or an empty text."""
    c, t = calibration, calibration.thresholds
    features = [*c.alive.features.items(), *c.ok.features.items()]
    numbers = [c.alive.bias, c.ok.bias, c.interval.floor_bpm, *c.interval.scales.values()]
    numbers += [_number(n) for _, feature in features for n in asdict(feature).values()]
    numbers += [_number(n) for n in (*asdict(t).values(), *asdict(c.limits).values())]
    if not all(map(math.isfinite, numbers)):
        return "a number is NaN or infinite"
    for probabilities in ([0, t.ok, 1], [0, t.kept_alive, t.alive, 1]):
        if probabilities != sorted(probabilities):
            return "the thresholds are not 0 ≤ ok ≤ 1 and 0 ≤ kept_alive ≤ alive ≤ 1"
    sizes = [t.memory_s, c.interval.floor_bpm, *c.interval.scales.values()]
    if min(sizes) < 0:
        return "memory_s or a value of interval is below 0"
    if bad := [name for name, feature in features if feature.std <= 0 or feature.low > feature.high]:
        return f"std is not above 0, or low is above high, for {', '.join(bad)}"
    return ""


def write(path: Path, calibration: Calibration) -> None:
    """Write a calibration file."""
    write_json(path, asdict(calibration))
