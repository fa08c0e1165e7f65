"""The settings with which a network was published, as metadata of its file.

A network file sets `TRAINING`. The option `--training published` of `phase train` and `phase reproduce` uses
it; `train.published` turns it into the tables of a recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class PublishedTraining:
    """One published training recipe; values have the names and units of our recipes."""

    source: str  # paper, or public repository and file, that states the values
    loss: str  # `loss.main` of a recipe
    target: str  # "wave" or "difference"
    lr: float  # for a one-cycle schedule its maximum
    epochs: int
    batch: int
    frames: int  # length of a clip
    size: int  # side of the crop in pixels
    pixels: str  # input normalisation, with the names of rPPG-Toolbox; the network applies it itself
    optimiser: str = "adam"
    weight_decay: float = 0.0
    schedule: str = "constant"
    auxiliary: str = "none"
    weight: float = 0.0  # of the auxiliary loss
    labelled: float = 1.0  # share of the clips whose reference is used
    flip: float = 0.0  # probability of mirroring a clip
    octave: float = 0.0  # probability of halving a fast heart rate or doubling a slow one
    scale: tuple[float, float] = (1.0, 1.0)  # range of the side of the crop, as a share of the stored one
    selection: str = "last"  # tested checkpoint: the last one, or the best on "validation" subjects
    options: Mapping[str, Any] = field(default_factory=dict)  # of the network, where they differ from ours

    def facts(self) -> dict[str, Any]:
        """Return all values as plain types."""
        return asdict(self) | {"options": dict(self.options)}
