"""Attention: where the network looks for the pulse.

The mask of the Adaptive Spatial Filter at four times, its mean, and the share on skin.
"""

import sys

from phase_rppg.measurement.attention import record_attention
from phase_rppg.report import attention_plots
from phase_rppg.video.decode import VideoFile

video = VideoFile("demo.mp4")
recorded = record_attention(video, "phasenet-stream")
face = recorded.result.faces[0]
times_s = recorded.attentions[face.id].spaced_times(4)
attention_plots.save(sys.argv[1], video, recorded, face, times_s)
