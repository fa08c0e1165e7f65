"""Data sets: from a folder on the disk to recordings with labels, to prepared clips, and an audit of both."""

from __future__ import annotations

from .base import Survey, load, look

__all__ = ["Survey", "load", "look"]
