"""Faces in pictures: detection, tracking, per-frame following, cropping and the skin mask.

detector              faces in one picture (YuNet)
detection_scheduler   when to detect, the scale of each detection, scans for new faces
tracker               matching faces over time, and when to detect again
registration          following a face in every frame between detections
crop                  the square crop with its margin
skin_mask             skin weights of a crop, and background points
"""

from .crop import AreaCrop, resize_area, square
from .detector import Detection, Detector
from .tracker import Track, Tracker

__all__ = ["AreaCrop", "Detection", "Detector", "Track", "Tracker", "resize_area", "square"]
