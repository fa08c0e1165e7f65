"""Compare the convention `toolbox` with an independent implementation of rPPG-Toolbox's formulas.

    python benchmarks/toolbox_parity.py --real UBFC [--n 6] [--seconds 20] [--out FILE]

One side is `phase evaluate --convention toolbox`. The other side is `toolbox_reference.py`, which shares no
code with this package: OpenCV decodes and resizes the video, dense matrices and loops compute the methods,
rate, SNR and MACC. Only the face box of the first frame is shared, because OpenCV 5 has no Haar cascades;
`toolbox_stages.py` compares it. The videos are those of a folder in the layout of UBFC-rPPG, and generated
ones.

Rows that end with "(same crops)" give both sides the same images, so that only the convention is compared:
they agree to rounding. The other rows also contain OpenCV's decoder and its reduction to 72 pixels.

PhysNet has random weights, the same on both sides, and three recordings of each set. It tests the
normalisation over the whole video, the joining of clips and the integration of the slope.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import toolbox_reference as reference
from phase_rppg.datasets import base, cache
from phase_rppg.datasets.prepare import prepare_one
from phase_rppg.evaluate import clip_evaluation, metrics
from phase_rppg.evaluate.conventions import TOOLBOX
from phase_rppg.evaluate.predictors import MethodPredictor, shrink
from phase_rppg.face import haar_cascade
from phase_rppg.face.detector import Detector
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.methods.toolbox_variants import VARIANTS
from phase_rppg.synth.writers import RecordingJob, writer

FPS, CLIP, SIDE = 30.0, 128, 72
NETWORK_RECORDINGS = 3  # of each set; a network takes most of the time
SAME = " (same crops)"
LIMITS = {"bpm": 0.1, "truth_bpm": 0.1, "snr_db": 0.1, "macc": 0.01}
Row = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", type=Path, help="folder in the layout of UBFC-rPPG")
    parser.add_argument("--n", type=int, default=6, help="generated recordings")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/toolbox_parity.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sets = {"generated": generated(Path(folder) / "ubfc", options.n, options.seconds)}
        if options.real is not None:
            sets["UBFC-rPPG"] = options.real
        network = physnet()
        found = {name: compare_set(root, Path(folder) / "cache", network) for name, root in sets.items()}
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    document = {
        **{key: kept[key] for key in ("stages", "toolbox_code") if key in kept},  # of toolbox_stages.py
        "command": "python benchmarks/toolbox_parity.py --real UBFC",
        "opencv": cv2.__version__,
        "limits": LIMITS,
        "same_crops": worst([row for rows in found.values() for n, row in rows["rows"].items() if SAME in n]),
        "whole_pipeline": {
            name: worst([row for n, row in rows["rows"].items() if SAME not in n])
            for name, rows in found.items()
        },
        "data": found,
    }
    write_json(options.out, document)
    print(dump_json({key: document[key] for key in ("same_crops", "whole_pipeline")}))


def worst(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the largest difference of every quantity, and of the MAE of a row."""
    found = {key: max(row["largest_difference"][key] for row in rows) for key in LIMITS}
    return found | {"mae": max(abs(row["phase"]["MAE"][0] - row["reference"]["MAE"][0]) for row in rows)}


def generated(root: Path, count: int, seconds: float) -> Path:
    """Write recordings of the world `studio` in the layout of UBFC-rPPG."""
    fixed = {"codec.name": "mjpeg", "motion.kind": "still", "camera.fps": FPS}
    job = RecordingJob("ubfc_rppg", str(root), "studio", seconds, height=240, fixed=fixed)
    for shot in writer("ubfc_rppg").plan(count):
        job(shot)
    return root


def physnet() -> Any:
    """Return PhysNet with random weights and the slope as its output."""
    import torch

    from phase_rppg import nn
    from phase_rppg.nn.output import IntegratedNetwork
    from phase_rppg.train.predict import TrainedNetwork

    torch.manual_seed(0)
    torch.set_num_threads(1)
    return TrainedNetwork("physnet", IntegratedNetwork(nn.build("physnet", size=SIDE)).eval(), SIDE, CLIP)


def compare_set(root: Path, cache_root: Path, network: Any) -> dict[str, Any]:
    """Return both sides for every method on every recording of a folder."""
    rows: dict[str, dict[str, list[Row]]] = {}
    found = base.find("ubfc_rppg", root)
    for number, one in enumerate(found):
        sides_of = both_sides(one, cache_root, network if number < NETWORK_RECORDINGS else None)
        for name, (ours, theirs) in sides_of.items():
            rows.setdefault(name, {"phase": [], "reference": []})
            rows[name]["phase"].append(ours)
            rows[name]["reference"].append(theirs)
    return {
        "recordings": [one.name for one in found],
        "rows": {
            name: {
                "phase": summary(sides["phase"]),
                "reference": {k: list(v) for k, v in reference.errors(sides["reference"]).items()},
                "largest_difference": {
                    key: max(
                        abs(a[key] - b[key]) for a, b in zip(sides["phase"], sides["reference"], strict=True)
                    )
                    for key in LIMITS
                },
                "recordings": [
                    {"phase": a, "reference": b}
                    for a, b in zip(sides["phase"], sides["reference"], strict=True)
                ],
            }
            for name, sides in rows.items()
        },
    }


def both_sides(one: base.Found, cache_root: Path, network: Any) -> dict[str, tuple[Row, Row]]:
    """Return (this package, reference) by method for one recording."""
    from phase_rppg.train.predict import NetworkPredictor

    outcome = prepare_one("ubfc_rppg", one, str(cache_root), clip_evaluation.preparation(TOOLBOX, SIDE))
    assert outcome.path is not None
    entry = cache.open_entry(outcome.path, verify=False)
    clip = (entry.pixels, entry.wave, entry.valid, entry.fps)
    frames = reference.read_frames(one.video)
    label = reference.read_label(one.reference, len(frames))
    faces = haar_cascade.detect(frames[0]) or [seen.box for seen in Detector().detect(frames[0])]
    face = max(faces, key=lambda box: box[2] * box[3])
    images = reference.crop(frames, face, SIDE)
    colours = images.mean((1, 2))
    found = {}
    for name in VARIANTS:
        ours = clip_evaluation.evaluate_clip(clip, MethodPredictor(name), TOOLBOX, 10.0).whole
        theirs = reference.judge(reference.METHODS[name](colours, FPS), label, FPS)
        found[name] = (row(ours), theirs)
        same = reference.METHODS[name](np.asarray(entry.pixels).mean((1, 2)), FPS)
        found[f"{name}{SAME}"] = (row(ours), reference.judge(same, label, FPS))
    if network is None:
        return found
    wave = clip_evaluation.evaluate_clip(clip, NetworkPredictor(network), TOOLBOX, 10.0).whole
    slope = predicted_slope(
        network.network.network, reference.diff_normalised(shrink(entry.pixels, SIDE).astype(float))
    )
    steps = reference.diff_label(label)[: len(slope)]
    found[f"physnet{SAME}"] = (row(wave), reference.judge(slope, steps, FPS, difference=True))
    return found


def predicted_slope(network: Callable[..., Any], normalised: Any) -> Any:
    """Return the joined outputs for clips of input that is normalised already."""
    import torch

    from phase_rppg.nn import preprocessing

    own = preprocessing.difference
    preprocessing.difference = lambda frames: frames
    try:
        parts = []
        for first in range(0, len(normalised) - CLIP + 1, CLIP):
            clip = torch.from_numpy(normalised[None, first : first + CLIP].astype(np.float32))
            with torch.no_grad():
                parts.append(network(clip).wave[0].numpy().astype(float))
    finally:
        preprocessing.difference = own
    return np.concatenate(parts)


def row(found: metrics.Comparison | None) -> Row:
    assert found is not None
    return {key: float(getattr(found, key)) for key in LIMITS}


def summary(rows: list[Row]) -> dict[str, list[float]]:
    """Return the metrics of this package, as a table prints them."""
    found = metrics.summarise_comparisons([metrics.Comparison(**one) for one in rows])
    named = {
        "MAE": found.mae, "RMSE": found.rmse, "MAPE": found.mape, "R": found.pearson, "SNR": found.snr_db,
        "MACC": found.macc,
    }  # fmt: skip
    return {name: [score.value, score.error] for name, score in named.items() if score is not None}


if __name__ == "__main__":
    main()
