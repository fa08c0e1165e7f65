"""Conventions of published results: how a recording becomes a rate, an SNR and a MACC.

    ours     crop that follows the face, labels by timestamps, interpolated spectral peak
    toolbox  rPPG-Toolbox: one crop per recording, labels by index, clips joined, largest bin in 0.6–3.3 Hz
    release  the code that the authors of PHASE-Net released: the same with 0.75–2.5 Hz and squared SNR

Numbers of different conventions are not comparable; `only` refuses to mix them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..datasets.face_crops import STATIC_SCALE
from ..errors import InputError, UnknownNameError
from ..signal.constants import BAND_HZ, TOOLBOX_BAND_HZ

INDEX_FPS = 30.0  # frame rate of every recording whose labels are matched by index


@dataclass(frozen=True, slots=True)
class Convention:
    """All rules between a recording and its row in a table."""

    name: str
    crop: Literal["followed", "haar"]  # haar: the face box of the first frame, enlarged, for all frames
    labels: Literal["timestamps", "index"]  # index: stretched to the number of frames, at INDEX_FPS
    # stream: a causal network reads the recording as one sequence. clips: every clip is predicted on its own,
    # the clips are joined, frames that do not fill a clip are dropped, and a slope is integrated last.
    joining: Literal["stream", "clips"]
    band_hz: tuple[float, float]
    interpolates: bool  # the spectral peak; otherwise the rate is that of the largest bin
    squared_snr: bool = False  # the SNR uses the squared power spectrum, which about doubles it in dB
    last_lag: bool = True  # MACC includes the largest circular lag
    lead_in_s: float = 0.0  # not compared, because a causal network has seen too few frames
    partial_last_window: bool = False  # the shorter window at the end is compared as well
    toolbox_methods: bool = False  # classical methods with the filters of rPPG-Toolbox and the whole crop

    def facts(self) -> dict[str, Any]:
        """Return the rules as JSON values, for the record of a run."""
        return asdict(self) | {"band_hz": list(self.band_hz)}

    def describe(self) -> str:
        """Return the rules in one line."""
        low, high = self.band_hz
        parts = [
            "crop follows the face" if self.crop == "followed" else f"one crop, face box ×{STATIC_SCALE:g}",
            "labels by timestamps" if self.labels == "timestamps" else f"labels by index, {INDEX_FPS:g} fps",
            "one sequence" if self.joining == "stream" else "clips joined, then integrated",
            f"{low:g}–{high:g} Hz",
            "interpolated peak" if self.interpolates else "largest bin",
            "squared SNR" if self.squared_snr else "SNR of power",
            f"first {self.lead_in_s:g} s dropped" if self.lead_in_s else "nothing dropped at the start",
        ]
        return f"{self.name}: {', '.join(parts)}"


OURS = Convention("ours", "followed", "timestamps", "stream", BAND_HZ, interpolates=True, lead_in_s=1.0)
TOOLBOX = Convention(
    "toolbox", "haar", "index", "clips", TOOLBOX_BAND_HZ, interpolates=False, last_lag=False,
    partial_last_window=True, toolbox_methods=True,
)  # fmt: skip
RELEASE = Convention(
    "release", "haar", "index", "clips", (0.75, 2.5), interpolates=False, squared_snr=True, last_lag=False,
    partial_last_window=True, toolbox_methods=True,
)  # fmt: skip
ALL = {one.name: one for one in (OURS, TOOLBOX, RELEASE)}


def get(name: str) -> Convention:
    """Return a convention by name."""
    if name not in ALL:
        raise UnknownNameError("convention", name, ALL)
    return ALL[name]


def single_convention(names: Iterable[tuple[str, str]]) -> str:
    """Return the convention that all results share; `names` are (result, convention).

    Results of different conventions are refused, because their numbers are not comparable.
    """
    found: dict[str, str] = {}
    for result, convention in names:
        found.setdefault(convention, result)
    if len(found) > 1:
        mixed = ", ".join(f"{result} ({convention})" for convention, result in found.items())
        raise InputError(f"mixed conventions in one table: {mixed}; repeat with one --convention")
    return next(iter(found), "")
