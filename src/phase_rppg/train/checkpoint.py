"""Checkpoints: one safetensors file each, with its JSON inside, written whole or not at all.

Nothing in a checkpoint is executed. What is missing, foreign, mis-shaped or not finite is refused by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ..errors import WeightsError
from ..fileio import atomic_path, dump_json

FORMAT = 1


def save(path: str | Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts to one file."""
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    header = {"phase": dump_json({"format": FORMAT, **facts}, indent=None)}
    with atomic_path(path) as temporary:
        save_file(plain, temporary, metadata=header)


def load(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and facts of a checkpoint."""
    try:
        with safe_open(str(path), framework="pt") as file:
            header = (file.metadata() or {}).get("phase")
            if header is None:
                raise WeightsError(path, "not a checkpoint of phase train")
            facts: dict[str, Any] = json.loads(header)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise WeightsError(path, "no such file") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise WeightsError(path, f"damaged or not a safetensors file ({error})") from error
    if facts.get("format") != FORMAT:
        raise WeightsError(path, f"format {facts.get('format')}, this version reads {FORMAT}")
    return tensors, facts


def group(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors under "prefix/", without it."""
    return {name[len(prefix) + 1 :]: t for name, t in tensors.items() if name.startswith(f"{prefix}/")}


def judged(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights that were validated: the average, if there is one."""
    return group(tensors, "average") or group(tensors, "network")


def grouped(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def put(network: nn.Module, weights: Mapping[str, Tensor], path: str | Path) -> None:
    """Give a network its weights, or say which one does not fit."""
    own = network.state_dict()
    for name in own:
        if name not in weights:
            raise WeightsError(path, f"the tensor {name!r} is missing")
    for name, tensor in weights.items():
        if name not in own:
            raise WeightsError(path, f"the tensor {name!r} does not belong to this network")
        if tensor.shape != own[name].shape:
            shapes = f"{tuple(tensor.shape)}, the network has {tuple(own[name].shape)}"
            raise WeightsError(path, f"the tensor {name!r} has the shape {shapes}")
        if not torch.isfinite(tensor).all():
            raise WeightsError(path, f"the tensor {name!r} holds values that are not numbers")
    network.load_state_dict(dict(weights))


def digest(tensors: Mapping[str, Tensor]) -> str:
    """One hash of all tensors: equal exactly when every bit is."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        total.update(name.encode())
        total.update(tensors[name].detach().cpu().contiguous().numpy().tobytes())
    return total.hexdigest()
