"""The tensor names of a published state dict, as metadata of a network file (`PUBLISHED_LAYOUT`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedLayout:
    """Our name → published name of every layer, and what a published file may lack or have in addition."""

    names: Mapping[str, str]  # of layers or tensors; suffixes such as `.weight` are the same
    optional: frozenset[str] = frozenset()  # published tensors that some files lack; the initial value stays
    ignored: tuple[str, ...] = ()  # patterns of published names that inference never uses
    sizes: tuple[int, ...] = ()  # published sizes in pixels, if the shape of a tensor depends on the size
    sized: str = ""  # the published tensor whose shape tells the size
    file_words: tuple[str, ...] = ()  # words in published file names, for layouts that are alike
