"""Synthetic face video with ground truth: pulse → skin → head → motion → light → camera → codec.

world = load("wild")
clip = sample(world, seed=0, index=7, seconds=10, size=64)   # clip.pixels, clip.truth
Clips("OUT").clip(7)                                        # a clip that `write_clips` stored
"""

from .clips import ClipJob, Clips, write_clips
from .sample import Sample, Truth, sample
from .world import World, load, names

__all__ = ["ClipJob", "Clips", "Sample", "Truth", "World", "load", "names", "sample", "write_clips"]
