"""Replace one stage of rPPG-Toolbox at a time by ours and record the change of the rate.

    python benchmarks/toolbox_reference.py UBFC -o toolbox.npz      # in an environment with OpenCV 4
    python benchmarks/toolbox_stages.py UBFC --reference toolbox.npz [--recording NAME …]

The first command decodes and crops as rPPG-Toolbox; this one starts from its result. A row states the largest
difference of the rate over all recordings, in bpm, by method. The result is the key `stages` of
`benchmarks/results/toolbox_parity.json`; recordings that are already there are kept. UBFC is a folder in the
layout of UBFC-rPPG. `toolbox_parity.py` compares what comes after the crops: labels, methods and metrics.

The last rows do not belong to the convention `toolbox`: they show how little a weak pulse allows to change.

If the file of the first command contains rows by the code of rPPG-Toolbox (`--toolbox`), they are compared
with `phase evaluate --convention toolbox` on the same videos: rate, true rate, SNR and MACC of whole
recordings. The result is the key `toolbox_code`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import toolbox_reference as reference
from phase_rppg.datasets import base
from phase_rppg.datasets.face_crops import static_box
from phase_rppg.datasets.prepare import stretched
from phase_rppg.datasets.ubfc_rppg import read_reference
from phase_rppg.evaluate import clip_evaluation, convention_evaluation
from phase_rppg.evaluate.conventions import TOOLBOX
from phase_rppg.face import haar_cascade
from phase_rppg.face.crop import AreaCrop, Box, to_bytes
from phase_rppg.face.detector import Detector
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.methods.toolbox_variants import VARIANTS, extract
from phase_rppg.types import RgbTrace, Waveform

FPS, SIDE = 30.0, 72
KEYS = ("sha256", "face", "colours")
OUT = Path("benchmarks/results/toolbox_parity.json")
STAGES = {
    "decoder": "PyAV in place of cv2.VideoCapture of OpenCV 4",
    "face box": "our Haar cascade in place of cv2.CascadeClassifier",
    "reduction": "our area mean to 72 pixels in place of cv2.INTER_AREA",
    "all": "all of the above, which is the convention `toolbox`",
    "128 pixels": "not in the convention: reduction to 128 pixels, as in the former version",
    "no rounding": "not in the convention: mean of the crop without rounding to bytes",
    "YuNet": "not in the convention: face box of YuNet, as in the former version",
}
QUANTITIES = ("bpm", "truth_bpm", "snr_db", "macc")
Colours = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path, help="folder in the layout of UBFC-rPPG")
    parser.add_argument("--reference", type=Path, required=True, help="file of toolbox_reference.py")
    parser.add_argument("--recording", action="append", default=[], help="name; default: all of the folder")
    options = parser.parse_args()
    document = json.loads(OUT.read_text())
    recordings = document.get("stages", {}).get("recordings", {})
    rows = document.get("toolbox_code", {}).get("recordings", {})
    with np.load(options.reference) as theirs:
        for one in base.find("ubfc_rppg", options.root):
            if not options.recording or one.name in options.recording:
                recordings[one.name] = compare(one, {k: theirs[f"{one.name}/{k}"] for k in KEYS})
                judged = {n: theirs[k] for n in VARIANTS if (k := f"{one.name}/toolbox/{n}") in theirs}
                if judged:
                    rows[one.name] = both_programs(one, judged)
        opencv, version = str(theirs["opencv"]), str(theirs["version"])
    if rows:
        document["toolbox_code"] = toolbox_code(rows, version)
    document["stages"] = {
        "command": "python benchmarks/toolbox_stages.py UBFC --reference toolbox.npz",
        "opencv": opencv,
        "identical_frames": all(one["identical_frames"] for one in recordings.values()),
        "about": STAGES,
        "largest_difference_bpm": {
            stage: {name: largest(recordings, stage, name) for name in VARIANTS} for stage in STAGES
        },
        "recordings": recordings,
    }
    write_json(OUT, document)
    print(dump_json(document["stages"]["largest_difference_bpm"]))


def both_programs(one: base.Found, judged: dict[str, Colours]) -> dict[str, Any]:
    """Return the rows of one recording by method, of this package and of rPPG-Toolbox."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, theirs in judged.items():
            task = convention_evaluation.Task("ubfc_rppg", name, TOOLBOX.name, 10.0, folder, None)
            ours = convention_evaluation.evaluate_recording(one, task).whole
            found[name] = {
                "phase": [getattr(ours, key) for key in QUANTITIES],
                "rPPG-Toolbox": [float(number) for number in theirs],
            }
    return found


def toolbox_code(rows: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the largest differences of whole recordings and of the MAE, by method."""
    sides = {
        name: [np.array([row[name][side] for row in rows.values()]) for side in ("phase", "rPPG-Toolbox")]
        for name in VARIANTS
    }
    return {
        "command": "python benchmarks/toolbox_reference.py UBFC -o toolbox.npz --toolbox FOLDER"
        " --version COMMIT, then python benchmarks/toolbox_stages.py UBFC --reference toolbox.npz",
        "version": version,
        "quantities": list(QUANTITIES),
        "largest_difference": {
            name: dict(zip(QUANTITIES, np.abs(ours - theirs).max(0).tolist(), strict=True))
            | {"mae": abs(mae(ours) - mae(theirs))}
            for name, (ours, theirs) in sides.items()
        },
        "recordings": rows,
    }


def mae(rows: Colours) -> float:
    return float(np.abs(rows[:, 0] - rows[:, 1]).mean())


def largest(recordings: dict[str, Any], stage: str, method: str) -> float:
    return max(abs(r["bpm"][stage][method] - r["bpm"]["rPPG-Toolbox"][method]) for r in recordings.values())


def compare(one: base.Found, theirs: dict[str, Any]) -> dict[str, Any]:
    """Return the rates of one recording by stage and method."""
    face = tuple(float(n) for n in theirs["face"])
    sources, digest, boxes = our_colours(one, (face[0], face[1], face[2], face[3]))
    sources = {"face box": sources["decoder"], "all": sources["reduction"]} | sources
    label = stretched(read_reference(one).values, len(theirs["colours"]))[0]
    return {
        "identical_frames": digest == str(theirs["sha256"]),
        "boxes": {"rPPG-Toolbox": list(face), **boxes},
        "bpm": {
            stage: {name: rate_bpm(name, colours, label) for name in VARIANTS}
            for stage, colours in {"rPPG-Toolbox": theirs["colours"], **sources}.items()
        },
    }


def our_colours(one: base.Found, face: Box) -> tuple[dict[str, Colours], str, dict[str, list[float]]]:
    """Return the mean colours (T,3) by stage, the digest of all frames, and both face boxes."""
    digest, found = hashlib.sha256(), {}
    boxes: dict[str, Box] = {}
    crops: dict[str, Callable[[Any], Any]] = {}
    for frame in base.open_file(one.video).frames():
        digest.update(frame.rgb.tobytes())
        if not crops:
            boxes = {
                "Haar cascade": max(haar_cascade.detect(frame.rgb), key=lambda box: box[2]),
                "YuNet": max(Detector().detect(frame.rgb), key=lambda seen: seen.box[2] * seen.box[3]).box,
            }
            crops = crops_of(frame.rgb.shape, face, boxes["Haar cascade"], boxes["YuNet"])
        for stage, crop in crops.items():
            found.setdefault(stage, []).append(crop(frame.rgb).mean((0, 1), dtype=float))
    colours = {stage: np.array(values) for stage, values in found.items()}
    return colours, digest.hexdigest(), {name: list(box) for name, box in boxes.items()}


def crops_of(shape: tuple[int, ...], face: Box, haar: Box, yunet: Box) -> dict[str, Callable[[Any], Any]]:
    """Return one function from a frame to its crop for every stage before the formulas."""
    box = static_box(face, shape)
    small, large, own = (
        AreaCrop(b, n, shape) for b, n in ((box, SIDE), (box, 128), (static_box(haar, shape), SIDE))
    )
    left, top, width, height = (int(n) for n in box)
    found = {
        "decoder": lambda rgb: reference.crop(rgb[None], face)[0],
        "reduction": lambda rgb: to_bytes(small.mean(rgb)),
        "128 pixels": lambda rgb: to_bytes(large.mean(rgb)),
        "no rounding": lambda rgb: rgb[top : top + height, left : left + width],
        "YuNet": lambda rgb: reference.crop(rgb[None], yunet)[0],
    }
    if haar != face:  # otherwise these two stages have the same crops as others
        found["face box"] = lambda rgb: reference.crop(rgb[None], haar)[0]
        found["all"] = lambda rgb: to_bytes(own.mean(rgb))
    return found


def rate_bpm(name: str, colours: Colours, label: Colours) -> float:
    wave = extract(name, RgbTrace(colours, FPS, 0.0, np.ones(len(colours), bool)))
    count = int(np.flatnonzero(wave.valid)[-1]) + 1  # CHROM has no value after its last window
    values = Waveform(wave.values[:count], FPS, 0.0, wave.valid[:count])
    found = clip_evaluation.compare(
        values, Waveform(label, FPS, 0.0, np.ones(len(label), bool)), False, TOOLBOX
    )
    assert found is not None
    return found.bpm


if __name__ == "__main__":
    main()
