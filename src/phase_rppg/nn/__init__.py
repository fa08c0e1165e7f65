"""Neural networks: PHASE-Net, its blocks, and published networks for comparison.

Each network is one file, found by its NAME. Needs the extra `train` (torch); measuring does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import registry
from ..errors import MissingPackageError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["build", "names"]


def names() -> list[str]:
    """Return the names of the registered networks."""
    return registry.names("nn")


def build(name: str, **overrides: Any) -> nn.Module:
    """Build a network; it maps pixels (B,T,H,W,3) in 0–255 to an `Output` with `.wave` (B,T)."""
    try:
        module = registry.load("nn", name)
    except ModuleNotFoundError as error:
        if (missing := MissingPackageError.from_import(error)) is None:
            raise
        raise missing from error
    network: nn.Module = module.build(**overrides)
    return network
