"""PHASE-Net: the paper's network and its streaming variant, built from the same blocks."""
