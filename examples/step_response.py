"""Step response: the readings of a camera after a step of the heart rate from 80 to 120 bpm.

The gate refuses most windows that contain both rates, so the curve has a gap.
"""

import sys
from math import nan

from matplotlib.figure import Figure

from phase_rppg import Estimate, Frame, Session, WindowResult, synth
from phase_rppg.report.plot_style import INK, PULSE, styled
from phase_rppg.synth.recording import make_recording

STEP = {"pulse.bpm": 80, "pulse.step_factor": 1.5, "pulse.step_s": 15}


@styled
def draw(path: str) -> None:
    made = make_recording(synth.load("studio"), 3, 0, seconds=36, height=180, width=240, fixed=STEP)
    session = Session()
    rows = []
    for pixels, t_s in zip(made.frames(), made.t_s, strict=True):
        for event in session.push(Frame(pixels, t_s)):
            if isinstance(event, WindowResult):
                found = event.reading
                shown = isinstance(found, Estimate)
                rows.append((event.end_s, *((found.bpm, found.low, found.high) if shown else 3 * (nan,))))
    end_s, bpm, low, high = zip(*rows, strict=True)
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(made.t_s, made.bpm(made.t_s), color=INK, lw=1, label="true rate")
    axes.fill_between(end_s, low, high, color=PULSE, alpha=0.2)
    axes.plot(end_s, bpm, "o-", color=PULSE, label="reading at the end of its window")
    axes.set(xlabel="time (s)", ylabel="heart rate (bpm)", xlim=(0, 36))
    axes.legend(loc="upper left")
    figure.savefig(path, dpi=100)


draw(sys.argv[1])
