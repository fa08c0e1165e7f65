"""Run a trained network with onnxruntime alone: the manifest says what it is, the step model runs it.

from phase_rppg.infer import load
model = load()                      # the network that comes along
wave = model.step(crops)            # (t,S,S,3) u8 -> (t,), any t ≥ 1; the state is kept inside
"""

from __future__ import annotations

from .manifest import Manifest
from .onnx import DEFAULT, StepModel, load, names

__all__ = ["DEFAULT", "Manifest", "StepModel", "load", "names"]
