"""A network on disk: one safetensors file that knows which network it is.

Tensors and, in the file's own header, the name of the network, how it was built, and facts about where the
weights come from. Reading it never runs code, and what does not fit is refused by name.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .. import fileio
from ..errors import PhaseError, WeightsError
from . import build
from .output import Output

FORMAT = "phase-rppg weights 1"
SHOWN = 4  # names per kind of problem in an error


def save(
    path: str | Path,
    network: str,
    state: Mapping[str, Tensor],
    *,
    overrides: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write the state of `nn.build(network, **overrides)`, whole or not at all."""
    header = {
        "format": FORMAT,
        "network": network,
        "overrides": fileio.dump_json(dict(overrides or {}), indent=None),
        "facts": fileio.dump_json(dict(facts or {}), indent=None),
    }
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    with fileio.atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata=header)


class Summed(nn.Module):
    """A network that was trained on the slope of the pulse, with its wave summed up to the pulse."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.size = network.size

    def forward(self, pixels: Tensor) -> Output:
        out: Output = self.network(pixels)
        wave = (out.wave - out.wave.mean(1, keepdim=True)).cumsum(1)
        return dataclasses.replace(out, wave=wave - wave.mean(1, keepdim=True))


def load(path: str | Path) -> tuple[nn.Module, dict[str, Any]]:
    """The network of a weights file, in evaluation mode, and the facts stored with it.

    If the fact `target` says that it was trained on the slope ("difference"), its wave comes summed up.
    """
    if not Path(path).is_file():
        raise WeightsError(path, "no such file")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise WeightsError(path, "not a safetensors file, or damaged") from error
    if header.get("format") != FORMAT:
        raise WeightsError(
            path, f"has no header of phase-rppg ({FORMAT!r}); published files: phase import-weights"
        )
    try:
        overrides, facts = json.loads(header["overrides"]), json.loads(header["facts"])
        network = build(header["network"], **overrides)
    except (KeyError, ValueError, TypeError, PhaseError) as error:
        raise WeightsError(path, f"its header cannot be read ({error})") from error
    check(tensors, network.state_dict(), path, header["network"])
    network.load_state_dict(tensors)
    whole = Summed(network) if facts.get("target") == "difference" else network
    return whole.eval(), facts


def check(given: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: str | Path, network: str) -> None:
    """Refuse tensors that do not fit the network, naming them."""
    shapes = [
        f"{name} {tuple(given[name].shape)} instead of {tuple(wanted[name].shape)}"
        for name in sorted(given.keys() & wanted.keys())
        if given[name].shape != wanted[name].shape
    ]
    problems = {
        "missing": sorted(wanted.keys() - given.keys()),
        "unexpected": sorted(given.keys() - wanted.keys()),
        "mis-shaped": shapes,
        "not finite": sorted(name for name, tensor in given.items() if not torch.isfinite(tensor).all()),
    }
    listed = [f"{kind}: {listing(names)}" for kind, names in problems.items() if names]
    if listed:
        raise WeightsError(path, f"does not fit {network}: " + "; ".join(listed))


def listing(names: list[str]) -> str:
    """The first names, and how many more."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
