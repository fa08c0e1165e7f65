"""Codec damage: the pulse of one face after H.264 at several qualities.

The same recording is made with and without a pulse. The difference of the two is the pulse alone.
"""

import sys

import numpy as np
from matplotlib.figure import Figure

from phase_rppg import synth
from phase_rppg.report.plot_style import styled
from phase_rppg.synth.codec import CodecSpec, transcode
from phase_rppg.synth.recording import make_recording

FPS, SECONDS = 30, 5


def green(frames: list[np.ndarray]) -> np.ndarray:
    """Return the mean green of the middle of the picture, (T,)."""
    return np.array([frame[60:120, 90:150, 1].mean() for frame in frames])


@styled
def draw(path: str) -> None:
    fixed = {"pulse.bpm": 72, "subject.fitzpatrick": 2, "motion.kind": "sway", "pulse.amplitude": 0.015}
    films = []
    for present in (True, False):
        made = make_recording(
            synth.load("phone"), 3, 0, seconds=SECONDS, height=180, width=240,
            fixed={**fixed, "pulse.present": present},
        )  # fmt: skip
        films.append([frame.copy() for frame in made.frames()])
    figure = Figure(figsize=(7, 4), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, sharey=True)
    for axes, crf in zip(panels, (None, 18, 30), strict=True):
        pair = films
        if crf is not None:
            spec = CodecSpec(name="h264", crf=crf)
            pair = [list(transcode(np.stack(film), spec, FPS)) for film in films]
        difference = green(pair[1]) - green(pair[0])
        axes.plot(np.arange(len(difference)) / FPS, difference - difference.mean())
        axes.set_title("as filmed" if crf is None else f"H.264, CRF {crf}", loc="left")
    panels[-1].set_xlabel("time (s)")
    panels[1].set_ylabel("change of green by blood (grey levels)")
    figure.savefig(path, dpi=100)


draw(sys.argv[1])
