"""A synthetic world: pulse → skin → head → motion → light → camera → codec, with the truth kept.

world = load("wild")
one = sample(world, seed=0, index=7, seconds=10, size=64)    # one.pixels, one.truth
Clips("OUT").clip(7)                                        # the same, from shards on disk
"""

from .clips import ClipJob, Clips, write_clips
from .sample import Sample, Truth, sample
from .world import World, load, names

__all__ = ["ClipJob", "Clips", "Sample", "Truth", "World", "load", "names", "sample", "write_clips"]
