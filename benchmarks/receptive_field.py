"""Compare the receptive field of the shipped network with the length that Proposition 2 asks for.

    python benchmarks/receptive_field.py [--model phasenet-stream] [--out FILE.json]

Proposition 2 bounds the length R of a FIR filter that replaces a damped oscillator with a relative error ε.
R is computed for oscillators with natural frequencies of heart rates and for damping ratios ζ, once as the
guarantee of the proposition and once exactly, as the length beyond which less than ε of the weight remains.
The lags of the network are counted from its layers. The lags that it uses come from its linearised response.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg.fileio import dump_json, write_json
from phase_rppg.nn.phasenet.impulse_response import response, still_face_features
from phase_rppg.physics.fir import fir_length, truncation_error, truncation_errors
from phase_rppg.physics.kernel import EPS, components
from phase_rppg.physics.oscillator import Oscillator
from phase_rppg.train.export import load_streaming

RATES_BPM = (40, 60, 80, 120, 180)
DAMPING = (0.1, 0.3, 0.7, 1.0, 1.5)
EPSILONS = (0.1, 0.01)


def lengths(bpm: float, zeta: float, fps: float, lags: int) -> dict[str, Any]:
    """Return the lengths that an oscillator needs, and the error of a filter with the lags of the network."""
    omega = 2 * math.pi * bpm / 60
    oscillator = Oscillator(alpha=2 * zeta * omega, omega=omega, dt_s=1 / fps)
    whole = truncation_error(oscillator, 0, 1.0)  # the sum of all weights
    found: dict[str, Any] = {"bpm": bpm, "damping_ratio": zeta}
    for eps in EPSILONS:
        guaranteed = fir_length(oscillator, eps * whole, 1.0)
        errors = truncation_errors(oscillator, guaranteed, 1.0) / whole
        exact = int(np.argmax(errors <= eps))
        found[f"guaranteed_frames_{eps:g}"] = guaranteed
        found[f"exact_frames_{eps:g}"] = exact
        found[f"deficit_frames_{eps:g}"] = max(exact - lags, 0)
    found["error_at_the_lags_of_the_network"] = round(truncation_error(oscillator, lags, 1.0) / whole, 5)
    return found


def used_lags(jacobian: np.ndarray, eps: float) -> int:
    """Return the number of lags beyond which less than `eps` of the weight of the response remains."""
    weight = np.abs(jacobian).sum(0)  # (L,)
    beyond = 1 - np.cumsum(weight) / weight.sum()
    return int(np.argmax(beyond <= eps)) + 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="phasenet-stream")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    network, _ = load_streaming(options.model)
    measured = response(network, still_face_features(network))
    fps, lags = measured.fps, int(measured.jacobian.shape[1])
    table = [lengths(bpm, zeta, fps, lags) for zeta in DAMPING for bpm in RATES_BPM]
    found = components(measured.jacobian, fps)
    enough = {
        f"{eps:g}": [
            f"{row['bpm']} bpm, ζ {row['damping_ratio']:g}"
            for row in table
            if not row[f"deficit_frames_{eps:g}"]
        ]
        for eps in EPSILONS
    }
    document = {
        "command": f"python benchmarks/receptive_field.py --model {options.model}",
        "fps": fps,
        "lags": lags,
        "receptive_field_s": round(lags / fps, 3),
        "lags_used": {f"{eps:g}": used_lags(measured.jacobian, eps) for eps in EPSILONS},
        "eps_of_components": EPS,
        "components": [
            {
                "share": round(c.share, 3),
                "natural_hz": round(c.hz, 3),
                "damping_ratio": round(c.fit.oscillator.damping_ratio, 3),
                "explained": round(c.explained, 3),
                "effective_frames": c.effective_frames,
                "oscillator_frames": c.needed_frames,
                "guaranteed_frames": c.bound_frames,
            }
            for c in found
        ],
        "oscillators": table,
        "without_deficit": enough,
    }
    print(dump_json(document))
    if options.out is not None:
        write_json(options.out, document)


if __name__ == "__main__":
    main()
