"""Check that a state dict fits a network before it is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from ..errors import WeightsError

MAX_NAMES = 4  # per kind of problem in an error message


def check_tensors(
    given: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: str | Path, network: str
) -> None:
    """Raise `WeightsError` with the names of all tensors that do not fit the network.

    A tensor is refused if it is missing, unexpected, of another shape, or holds NaN or infinity. `path` is
    used in the message only.
    """
    shapes = [
        f"{name} {tuple(given[name].shape)} instead of {tuple(wanted[name].shape)}"
        for name in sorted(given.keys() & wanted.keys())
        if given[name].shape != wanted[name].shape
    ]
    problems = {
        "missing": sorted(wanted.keys() - given.keys()),
        "unexpected": sorted(given.keys() - wanted.keys()),
        "wrong shape": shapes,
        "not finite": sorted(name for name, tensor in given.items() if not torch.isfinite(tensor).all()),
    }
    found = [f"{kind}: {join_names(names)}" for kind, names in problems.items() if names]
    if found:
        raise WeightsError(path, f"does not fit {network}: " + "; ".join(found))


def join_names(names: list[str]) -> str:
    """Return the first names as text, and how many more there are."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
