"""phase-rppg: a face video in, a pulse waveform, a heart rate or an honest "no reading" out."""

from __future__ import annotations

__version__ = "0.1.0"
