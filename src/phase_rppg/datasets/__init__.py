"""Data sets: readers, the cache of prepared clips, subject splits, and the audit."""

from __future__ import annotations

from .base import Survey, load, survey

__all__ = ["Survey", "load", "survey"]
