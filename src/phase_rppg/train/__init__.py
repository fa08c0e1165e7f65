"""Training: recipes, clips, losses, the training loop, checkpoints, and the export to ONNX.

Needs the extra `train` (torch). The command is `phase train RECIPE`.
"""
