"""Faces in pictures: where they are, who is who over time, how to cut them out, and which part is skin."""

from .crop import AreaCrop, resize_area, square
from .detector import Detection, Detector
from .tracker import Track, Tracker

__all__ = ["AreaCrop", "Detection", "Detector", "Track", "Tracker", "resize_area", "square"]
