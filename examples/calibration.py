"""Calibration: stated probabilities against outcomes, for an overconfident forecaster."""

import sys

import numpy as np

from phase_rppg.evaluate import plots
from phase_rppg.evaluate.selective import reliability

rng = np.random.default_rng(1)
true_p = rng.beta(4, 1.5, 600)
right = rng.random(600) < true_p
stated = np.clip(true_p + 0.3 * true_p * (1 - true_p) * 2, 0, 1)
plots.reliability(reliability(stated, right), title="too sure").savefig(sys.argv[1], dpi=100)
