"""Overlay film: box, mask, wave and rate on the video.

`phase measure demo.mp4 --overlay` writes the same film beside the results.
"""

import sys
from pathlib import Path

from phase_rppg.measurement.attention import record_attention
from phase_rppg.report.attention_video import save_mp4
from phase_rppg.report.picture import png
from phase_rppg.video.decode import VideoFile

video = VideoFile("demo.mp4")
recorded = record_attention(video, "phasenet-stream")
save_mp4("overlay.mp4", video, recorded, recorded.result.faces[0])

frames = list(VideoFile("overlay.mp4").frames())
Path(sys.argv[1]).write_bytes(png(frames[len(frames) // 2].rgb))
