"""Videos, image sequences and cameras: pictures with the time they were taken, and back into files.

    probe    what a file says about itself           camera   a live camera
    decode   files and images as sources of frames   encode   frames into a file
    guard    decoding in a child process; decoder.py is what runs there

Nothing here imports av until it is needed.
"""

from .camera import Camera
from .decode import ImageSequence, VideoFile
from .encode import write_video
from .probe import VideoInfo

__all__ = ["Camera", "ImageSequence", "VideoFile", "VideoInfo", "write_video"]
