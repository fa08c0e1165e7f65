"""Read the weights that others published: state dicts of the rPPG-Toolbox, renamed to our layers.

Files are opened with torch's safe loader (tensors only, no code). Every name and shape must fit: what is
missing, unexpected or mis-shaped is refused by its published name. `docs/import-weights.md` shows the
mapping.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import UnknownNameError, WeightsError
from . import build, weights

MAX_BYTES = 256 * 2**20  # the largest published file has 30 MB
WRAPPERS = ("state_dict", "model_state_dict", "model")  # keys under which people nest a state dict


@dataclass(frozen=True)
class Source:
    """How one published network is laid out: our prefix → its prefix, and what its wave was trained to be."""

    prefixes: Mapping[str, str]
    target: (
        str  # "difference": the wave's slope, to be summed up before counting beats; "wave": the wave itself
    )
    optional: frozenset[str] = (
        frozenset()
    )  # published names that some files lack; ours keeps its initial value


def _physnet() -> dict[str, str]:
    names = {f"blocks.{index}": f"ConvBlock{index + 1}" for index in range(9)}
    return names | {"rise.0": "upsample", "rise.1": "upsample2", "head": "ConvBlock10"}


def _factorizephys() -> dict[str, str]:
    body, head = "rppg_feature_extractor.FeatureExtractor", "rppg_head"
    names = {f"body.{index}.conv": f"{body}.{index}.conv_block_3d.0" for index in (0, 1, 2, 4, 5, 6)}
    names |= {f"body.{index + 8}.conv": f"{head}.conv_block.{index}.conv_block_3d.0" for index in range(3)}
    names |= {f"head.{index}.conv": f"{head}.final_layer.{index}.conv_block_3d.0" for index in range(2)}
    return names | {
        "head.2": f"{head}.final_layer.2",
        "factorisation.before": f"{head}.fsam.pre_conv_block.0",
        "factorisation.between": f"{head}.fsam.post_conv_block.0.conv",
        "factorisation.after": f"{head}.fsam.post_conv_block.1",
        "offset": f"{head}.bias1",
    }


def _physmamba() -> dict[str, str]:
    names = {f"stem.{index}": f"ConvBlock{index + 1}" for index in range(3)}
    names |= {
        "to_slow": "ConvBlock4",
        "to_fast": "ConvBlock5",
        "fast_end": "ConvBlock6",
        "head": "ConvBlockLast",
    }
    for ours, theirs in (
        ("slow_rise", "upsample1"),
        ("rise", "upsample2"),
    ):  # theirs begin with the upsampling
        names |= {f"{ours}.0": f"{theirs}.1", f"{ours}.1": f"{theirs}.2"}
    for index in range(2):
        names[f"sides.{index}"] = f"fuse_{index + 1}.conv"
    for stream, first in (("slow", 1), ("fast", 4)):
        for index in range(3):
            ours, theirs = f"{stream}.{index}", f"Block{first + index}"
            names |= {f"{ours}.{part}": f"{theirs}.{part}" for part in (0, 1)}
            names |= {f"{ours}.3.before": f"{theirs}.3.norm1", f"{ours}.3.after": f"{theirs}.3.norm2"}
            names |= {f"{ours}.4.down": f"{theirs}.4.fc.0", f"{ours}.4.up": f"{theirs}.4.fc.2"}
            names |= {f"{ours}.3.mamba.enter": f"{theirs}.3.mamba.in_proj"}
            names |= {f"{ours}.3.mamba.leave": f"{theirs}.3.mamba.out_proj"}
            for way, end in (("forwards", ""), ("backwards", "_b")):
                sweep, mamba = f"{ours}.3.mamba.{way}", f"{theirs}.3.mamba"
                names |= {f"{sweep}.conv": f"{mamba}.conv1d{end}", f"{sweep}.select": f"{mamba}.x_proj{end}"}
                names |= {f"{sweep}.step": f"{mamba}.dt_proj{end}", f"{sweep}.skip": f"{mamba}.D{end}"}
                names[f"{sweep}.log_decay"] = f"{mamba}.A{end}_log"
    return names


SOURCES: dict[str, Source] = {
    "physnet": Source(_physnet(), target="difference"),
    # On a GPU the release never registers its one offset, so files trained there lack it; it begins at 1.
    "factorizephys": Source(_factorizephys(), target="wave", optional=frozenset({"rppg_head.bias1"})),
    "physmamba": Source(_physmamba(), target="difference"),
}


def published_names(network: str) -> dict[str, str]:
    """Published name → our name, for every tensor of the network."""
    prefixes = _source(network).prefixes
    names = {}
    for ours in build(network).state_dict():
        prefix = next(
            p for p in sorted(prefixes, key=len, reverse=True) if ours == p or ours.startswith(f"{p}.")
        )
        names[prefixes[prefix] + ours[len(prefix) :]] = ours
    return names


def convert(state: Mapping[str, Tensor], network: str, path: str | Path = "state dict") -> dict[str, Tensor]:
    """A published state dict as ours; `path` is only named in errors."""
    source, names, ours = _source(network), published_names(network), build(network).state_dict()
    given = {
        name.removeprefix("module."): tensor for name, tensor in state.items()
    }  # as DataParallel saves it
    wanted = {theirs: ours[mine] for theirs, mine in names.items()}
    # Old torch did not save the counters of batch norms; they only count.
    free = {name for name in wanted if name in source.optional or name.endswith("num_batches_tracked")}
    weights.check(given, {k: v for k, v in wanted.items() if k in given or k not in free}, path, network)
    return ours | {names[name]: tensor.to(wanted[name].dtype).clone() for name, tensor in given.items()}


def guess(state: Mapping[str, Tensor], path: str | Path = "state dict") -> str:
    """Which network a published state dict belongs to, by its names."""
    given = {name.removeprefix("module.") for name in state}
    shares = {name: len(given & published_names(name).keys()) / max(len(given), 1) for name in SOURCES}
    best = max(shares, key=lambda name: shares[name])
    if shares[best] < 0.5:
        raise WeightsError(
            path, f"not a published state dict of {', '.join(SOURCES)}; name the network if it is"
        )
    return best


def read_published(path: str | Path) -> dict[str, Tensor]:
    """The state dict of a `.pth` file: tensors only; a file that carries code is refused."""
    file = Path(path)
    if not file.is_file():
        raise WeightsError(path, "no such file")
    if file.stat().st_size > MAX_BYTES:
        raise WeightsError(path, f"larger than {MAX_BYTES // 2**20} MB, which no published file is")
    try:
        loaded: Any = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise WeightsError(
            path, "holds more than tensors (code or whole objects); save its state_dict()"
        ) from error
    except (RuntimeError, EOFError, OSError, KeyError, ValueError, AttributeError, IndexError) as error:
        raise WeightsError(path, "not a torch file, or damaged") from error
    for wrapper in WRAPPERS:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(wrapper), Mapping):
            loaded = loaded[wrapper]
    if not isinstance(loaded, Mapping) or not loaded:
        raise WeightsError(path, "not a state dict")
    if bad := [
        str(name)
        for name, value in loaded.items()
        if not (isinstance(name, str) and isinstance(value, Tensor))
    ]:
        raise WeightsError(path, "not a state dict: not tensors: " + weights.listing(bad))
    return dict(loaded)


def _source(network: str) -> Source:
    if network not in SOURCES:
        raise UnknownNameError("network with published weights", network, SOURCES)
    return SOURCES[network]
