#!/usr/bin/env python3
"""Write the conformance suite from the reference implementation, or check that it is current.

python conformance/write.py            write index.json, constants.json and vectors/ in conformance
python conformance/write.py --check    exit code 1 if the session of Python gives other results
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import constants  # beside this script
import reference

from phase_rppg import registry
from phase_rppg.fileio import write_text
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import Event

FOLDER = Path(__file__).parent
VECTORS = FOLDER / "vectors"
# Results of the same code on other processors differ by less than this, relative to 1 or to the number.
CHECK = 1e-7
# These stages compute in single precision, in which the order of a sum depends on the processor. Between an
# AMD EPYC and an Intel Xeon with AVX-512, crops differed by 9e-7 and sessions by 3e-5.
CHECK_SINGLE = {"crop": 1e-5, "skin": 1e-5, "moving": 1e-5, "detect": 1e-5, "sessions": 3e-4}

# Largest difference that a port may have; relative to the largest of an array, or absolute.
TOLERANCES: dict[str, dict[str, float]] = {
    "filters": {"values": 1e-9},
    "resample": {"values": 1e-9},
    "rate": {"power": 1e-7, "bpm": 1e-6, "snr_db": 1e-6, "sigma_bpm": 1e-5, "beats_s": 1e-6},
    "track": {"bpm": 1e-6, "support": 1e-8, "sigma_bpm": 1e-6},
    "windows": {"wave": 1e-7, "quality": 1e-6, "p_ok": 1e-6, "bpm": 1e-5},
    "rhythm": {"values": 1e-6},
    "hrv": {"values": 1e-6},
    "jitter": {"values": 1e-6},
    "crop": {"values": 1e-6},
    "skin": {"values": 1e-5},
    "moving": {"cells": 1e-5, "colour": 1e-4, "face_widths": 1e-6, "values": 1e-5},
    "detect": {"values": 1e-5},
    "faces": {"values": 1e-9},
    "film": {},
    # The registration adds in single precision; the slope of the gate turns that into thousandths of p_ok.
    "sessions": {"wave": 1e-2, "quality": 2e-2, "p_ok": 2e-3, "bpm": 1e-2, "beats_s": 1e-3},
}
# What the port in web/phase-rppg has; the rest of the Python session is listed under `lacks`.
PORTED: dict[str, frozenset[str]] = {
    "methods": frozenset({"pos", "chrom"}),
    "events": frozenset({"FaceEvent", "WavePiece", "WindowResult"}),
    "options": frozenset(
        {"method", "model", "window_s", "step_s", "fps", "faces", "gated", "context_s", "second"}
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the conformance suite.")
    parser.add_argument("--check", action="store_true", help="only compare with the stored suite")
    made = {name: reference.plain(vectors) for name, vectors in reference.make().items()}
    return check(made) if parser.parse_args().check else write(made)


def write(made: dict[str, Any]) -> int:
    VECTORS.mkdir(exist_ok=True)
    for name, vectors in made.items():
        write_text(VECTORS / f"{name}.json", json.dumps(vectors, separators=(",", ":")) + "\n")
    write_text(FOLDER / "index.json", json.dumps(index(), indent=2) + "\n")
    write_text(FOLDER / "constants.json", json.dumps(constants.constants(), indent=2) + "\n")
    return 0


def check(made: dict[str, Any]) -> int:
    stored = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in VECTORS.glob("*.json")}
    found = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
    now = json.loads(json.dumps(made))
    different = sorted(
        name
        for name in now.keys() | stored.keys()
        if not same(now.get(name), stored.get(name), CHECK_SINGLE.get(name, CHECK))
    )
    different += [] if found == index() else ["index.json"]
    numbers = json.loads((FOLDER / "constants.json").read_text(encoding="utf-8"))
    different += [] if numbers == json.loads(json.dumps(constants.constants())) else ["constants.json"]
    if different:
        names = ", ".join(different)
        print(f"conformance: {names} changed. Run python conformance/write.py,", file=sys.stderr)
        print("  then make the port in web/phase-rppg pass (npm test in web/).", file=sys.stderr)
    return 1 if different else 0


def index() -> dict[str, Any]:
    """Return the stages with their tolerances, and what the port has and lacks."""
    methods = {*registry.names("methods")}
    events = {kind.__name__ for kind in get_args(Event)}
    options = {field.name for field in fields(SessionConfig)}
    here = {"methods": methods, "events": events, "options": options}
    stages = {
        name: {"file": f"vectors/{name}.json", "tolerance": limits} for name, limits in TOLERANCES.items()
    }
    return {
        "stages": stages,
        "ported": {kind: sorted(names & PORTED[kind]) for kind, names in here.items()},
        "lacks": {kind: sorted(names - PORTED[kind]) for kind, names in here.items()},
    }


def same(one: Any, other: Any, rounding: float) -> bool:
    """Return whether two JSON values agree: numbers within `rounding`, everything else exactly."""
    if isinstance(one, float) or isinstance(other, float):
        numbers = all(type(value) in (int, float) for value in (one, other))
        return numbers and math.isclose(one, other, rel_tol=rounding, abs_tol=rounding)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], rounding) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b, rounding) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


if __name__ == "__main__":
    sys.exit(main())
