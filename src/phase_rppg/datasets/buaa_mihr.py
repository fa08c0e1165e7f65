"""Read BUAA-MIHR: subjects at eleven light levels from 1 to 100 lux; levels from 10 lux on are used.

Xi et al., "Image enhancement for remote photoplethysmography in a low-light environment", FG 2020. The layout
is known only from third-party readers, so several spellings of the file names are accepted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecordingError
from ..types import FloatArray
from ..video.suffixes import VIDEO_SUFFIXES
from . import matlab
from .base import Found, Reference, files, open_file, read_table, subfolders

NAME = "buaa_mihr"
# Train, valid and test of the literature, as fractions of the subjects in natural order.
SPLITS = {"intra": ((0, 0.7), (0, 0), (0.7, 1))}
LAYOUT = (
    "BUAA-MIHR: 'Sub NN/lux X/luxX_*.avi' + luxX_PPGData.mat (or PPGData.mat, or luxX_*_wave.csv); "
    "light levels from 10 lux on"
)
MIN_LUX = 10.0
_SUBJECT = re.compile(r"^sub(?:ject)?[ _-]*(\d+)", re.IGNORECASE)
_LUX = re.compile(r"lux[ _-]*(\d+(?:\.\d+)?)", re.IGNORECASE)


def find(root: Path) -> list[Found]:
    found = []
    for subject_folder in subfolders(root):
        if not (subject := _SUBJECT.match(subject_folder.name)):
            continue
        for folder in subfolders(subject_folder):
            level = _LUX.search(folder.name)
            if level and float(level.group(1)) >= MIN_LUX:
                found.append(_recording(f"Sub {int(subject.group(1)):02d}", float(level.group(1)), folder))
    return found


def _recording(subject: str, lux: float, folder: Path) -> Found:
    videos = files(folder, VIDEO_SUFFIXES)
    own = [p for p in videos if (m := _LUX.search(p.stem)) and float(m.group(1)) == lux]
    mats = [p for p in files(folder, (".mat",)) if p.stem.lower().endswith("ppgdata")]
    waves = [p for p in files(folder, (".csv",)) if p.stem.lower().endswith("wave")]
    video = (own or videos or [folder / f"lux{lux:.1f}.avi"])[0]
    label = (mats or waves or [folder / f"lux{lux:.1f}_PPGData.mat"])[0]
    return Found(subject, f"{subject} lux {lux:.1f}", video, label, {"lux": f"{lux:.1f}"})


def read_reference(found: Found) -> Reference:
    if found.reference.suffix.lower() == ".csv":
        return _over_video_duration(found, read_table(found.name, found.reference, ",")[:, -1])
    variables = matlab.read(found.name, found.reference, (), optional=("PPG", "PPGData"))
    if not variables:
        raise RecordingError(found.name, f"{found.reference.name} has no field PPG or PPGData")
    content = next(iter(variables.values()))
    if isinstance(content, dict) and isinstance(content.get("PPG"), dict):  # PPGData.PPG.data
        content = content["PPG"]
    if not isinstance(content, dict):
        return _over_video_duration(found, matlab.numbers(found.name, found.reference, "PPG", content))
    if "data" not in content:
        raise RecordingError(found.name, f"{found.reference.name}: its struct has no field data")
    values = matlab.numbers(found.name, found.reference, "PPG.data", content["data"])
    if "fs" not in content:
        return _over_video_duration(found, values)
    return Reference(np.arange(len(values)) / _rate_hz(found, content), values)


def _rate_hz(found: Found, content: dict[str, Any]) -> float:
    rates_hz = matlab.numbers(found.name, found.reference, "PPG.fs", content["fs"])
    if len(rates_hz) != 1 or not 10 <= rates_hz[0] <= 1000:
        given = ", ".join(f"{rate_hz:g}" for rate_hz in rates_hz[:2]) or "no number"
        raise RecordingError(found.name, f"{found.reference.name}: the sampling rate PPG.fs is {given} Hz")
    return float(rates_hz[0])


def _over_video_duration(found: Found, values: FloatArray) -> Reference:
    """Spread a PPG without a sampling rate evenly over the duration of its video."""
    duration_s = open_file(found.video).info.duration_s
    if duration_s is None:
        raise RecordingError(found.name, "the PPG has no sampling rate and the video states no duration")
    return Reference(np.linspace(0, duration_s, len(values), endpoint=False), values)
