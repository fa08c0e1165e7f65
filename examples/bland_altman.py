"""Bland–Altman plot: readings of POS against the true rates of synthetic recordings."""

import sys

import numpy as np

from phase_rppg import measure, synth
from phase_rppg.evaluate import plots
from phase_rppg.synth.recording import make_recording

readings, truths, people = [], [], []
for person in range(4):
    made = make_recording(synth.load("studio"), 5, person, seconds=12, height=180, width=240)
    for window in measure(made.frames(), t_s=made.t_s, method="pos").faces[0].windows:
        if window.bpm is not None:
            inside = (made.t_s >= window.start_s) & (made.t_s <= window.end_s)
            readings.append(window.bpm)
            truths.append(float(np.mean(made.bpm(made.t_s[inside]))))
            people.append(f"person {person}")
figure = plots.bland_altman(np.array(readings), np.array(truths), groups=people)
figure.savefig(sys.argv[1], dpi=100)
