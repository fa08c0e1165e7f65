"""A live session: what a program sees while frames arrive."""

import sys

from matplotlib.figure import Figure

from phase_rppg import Estimate, Session, WindowResult
from phase_rppg.report.plot_style import PULSE, styled
from phase_rppg.video.decode import VideoFile


@styled
def draw(path: str) -> None:
    session = Session(window_s=6, step_s=0.5)
    readings = []
    for frame in VideoFile("demo.mp4").frames():
        for event in session.push(frame):
            if isinstance(event, WindowResult) and isinstance(event.reading, Estimate):
                readings.append((event.end_s, event.reading.bpm, event.reading.low, event.reading.high))
    end_s, bpm, low, high = zip(*readings, strict=True)
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(end_s, low, high, color=PULSE, alpha=0.2)
    axes.plot(end_s, bpm, "o-", color=PULSE)
    axes.set(xlabel="time of the last frame (s)", ylabel="heart rate (bpm)", xlim=(0, 12))
    figure.savefig(path, dpi=100)


draw(sys.argv[1])
