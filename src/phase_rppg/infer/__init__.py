"""Run an exported network with ONNX Runtime, without torch.

from phase_rppg.infer import load
model = load()                      # the bundled network
wave = model.step(crops)            # (t,S,S,3) u8 -> (t,), any t ≥ 1; the model keeps its state
"""

from __future__ import annotations

from .manifest import Manifest
from .onnx import DEFAULT, StepModel, load, names

__all__ = ["DEFAULT", "Manifest", "StepModel", "load", "names"]
