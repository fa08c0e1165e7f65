"""Training: recipes, losses, clips, the loop that can be killed and resumed, and the export to ONNX.

Needs the extra `train` (torch). `phase train RECIPE` is the way in.
"""
