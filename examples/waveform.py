"""Waveform, spectrum and rate over time: the plot of a result."""

import sys

from phase_rppg import measure

measure("demo.mp4").plot().savefig(sys.argv[1], dpi=100)
