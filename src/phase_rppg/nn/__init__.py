"""The networks: PHASE-Net, its parts, and the published ones it is compared with.

One file per network, found by its NAME. Needs the extra `train` (torch); measuring a video does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import registry
from ..errors import UsageError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["build", "names"]


def names() -> list[str]:
    """The registered networks."""
    return registry.names("nn")


def build(name: str, **overrides: Any) -> nn.Module:
    """Build a network: pixels (B,T,H,W,3) in 0–255 go in, an `Output` with `.wave` (B,T) comes out."""
    try:
        module = registry.load("nn", name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UsageError("networks need torch: pip install 'phase-rppg[train]'") from error
    network: nn.Module = module.build(**overrides)
    return network
