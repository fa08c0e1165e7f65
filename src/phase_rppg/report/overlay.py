"""The overlay video of a measured result: face box, attention mask, waveform and rate."""

from __future__ import annotations

from pathlib import Path

from ..measurement.attention import record_attention
from ..measurement.sources import open_source
from ..session.results import Result
from .attention_video import save_mp4


def save(path: Path, video: Path, result: Result, method: str, fps: float | None) -> bool:
    """Write the overlay of the largest face of a result; return False if there is no face to draw.

    The network measures the video a second time, to record its masks. The waveform and the rate are those of
    the result.
    """
    source = open_source(video, fps)
    recorded = record_attention(source, method)
    face = next((face for face in result.faces if face.id in recorded.attentions), None)
    if face is None:
        return False
    save_mp4(path, source, recorded, face)
    return True
