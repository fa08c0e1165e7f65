"""Videos, image sequences and cameras as sources of frames with timestamps, and video encoding.

    probe      the header of a file                    camera     a live camera
    decode     files and images as frames              reconnect  a camera that is opened again after a loss
    guard      decoding in a child process             encode     write frames to a file
    decoder    the script of the child process         suffixes   the suffixes of video files

The modules import av only when it is needed.
"""

from .camera import Camera
from .decode import ImageSequence, VideoFile
from .encode import write_video
from .probe import VideoInfo

__all__ = ["Camera", "ImageSequence", "VideoFile", "VideoInfo", "write_video"]
