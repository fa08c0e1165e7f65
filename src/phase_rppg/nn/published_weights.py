"""Convert published state dicts, mostly of the rPPG-Toolbox, to the layer names of this package.

Files are opened with torch's safe loader (tensors only, no code). Tensors that are missing, unexpected or of
another shape are refused by their published names. `docs/import-weights.md` shows the mapping.
"""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import guarded, limits, registry
from ..errors import InputError, UnknownNameError, WeightsError
from ..fileio import check_regular
from . import build
from .published_layout import PublishedLayout
from .state_dict import check_tensors, join_names

_TORCH_MB = 16384  # address space of a process with torch; most of it is never used
WRAPPERS = ("state_dict", "model_state_dict", "model")  # keys under which state dicts are often nested


def networks() -> list[str]:
    """Return the names of the networks whose published files can be imported."""
    return [name for name in registry.names("nn") if hasattr(registry.load("nn", name), "PUBLISHED_LAYOUT")]


def layout_of(network: str) -> PublishedLayout:
    """Return the published layout of a network."""
    if network not in networks():
        raise UnknownNameError("network with published weights", network, networks())
    found: PublishedLayout = registry.load("nn", network).PUBLISHED_LAYOUT
    return found


@functools.cache
def published_names(network: str) -> dict[str, str]:
    """Return published name → our name for every tensor of the network."""
    layers = layout_of(network).names
    names = {}
    for ours in build(network).state_dict():
        layer = next(
            p for p in sorted(layers, key=len, reverse=True) if ours == p or ours.startswith(f"{p}.")
        )
        names[layers[layer] + ours[len(layer) :]] = ours
    return names


def published_size(state: Mapping[str, Tensor], network: str) -> int | None:
    """Return the size in pixels that a state dict is made for; None if it fits any size."""
    layout = layout_of(network)
    tensor = _plain_names(state).get(layout.sized)
    if tensor is None:
        return None
    ours = published_names(network)[layout.sized]
    shapes = {size: build(network, size=size).state_dict()[ours].shape for size in layout.sizes}
    return next((size for size, shape in shapes.items() if shape == tensor.shape), None)


def convert(
    state: Mapping[str, Tensor], network: str, path: str | Path = "state dict", size: int | None = None
) -> dict[str, Tensor]:
    """Return a published state dict with our names; `path` is used in error messages only.

    `size` is needed if the shapes depend on it, by default the one that `published_size` finds.
    """
    layout, names = layout_of(network), published_names(network)
    size = size or published_size(state, network)
    ours = build(network, **({} if size is None else {"size": size})).state_dict()
    given = {k: v for k, v in _plain_names(state).items() if not any(fnmatch(k, p) for p in layout.ignored)}
    wanted = {theirs: ours[mine] for theirs, mine in names.items()}
    # Old versions of torch did not save the batch counters of BatchNorm, which inference does not need.
    free = {name for name in wanted if name in layout.optional or name.endswith("num_batches_tracked")}
    check_tensors(given, {k: v for k, v in wanted.items() if k in given or k not in free}, path, network)
    return ours | {names[name]: tensor.to(wanted[name].dtype).clone() for name, tensor in given.items()}


def recognise(state: Mapping[str, Tensor], path: str | Path = "state dict") -> str:
    """Return the network whose published names match a state dict best.

    DeepPhys and TS-CAN have the same tensors; then a word in the file name decides.
    """
    given = _plain_names(state).keys()
    shares = {name: len(given & published_names(name).keys()) / max(len(given), 1) for name in networks()}
    best = [name for name, share in shares.items() if share == max(shares.values())]
    if shares[best[0]] < 0.5:
        raise WeightsError(
            path, f"not a published state dict of {', '.join(shares)}; name the network if it is"
        )
    if len(best) > 1:
        file = Path(path).name.lower()
        named = [name for name in best if any(word in file for word in layout_of(name).file_words)]
        if len(named) != 1:
            raise WeightsError(path, f"fits {' and '.join(best)}; state the network with --network")
        best = named
    return best[0]


def _plain_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors without the prefix of DataParallel."""
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def read_published(path: str | Path) -> dict[str, Tensor]:
    """Read the state dict of a `.pth` file; a file that contains more than tensors is refused."""
    file = Path(path)
    if not file.exists():
        raise WeightsError(path, "no such file")
    _check_size(file)
    try:
        answer = guarded.call(_read_tensors, str(file.resolve()), memory_mb=_TORCH_MB)
    except guarded.GuardError as error:
        raise WeightsError(path, str(error)) from error
    except guarded.ParserError as error:
        if error.kind == "UnpicklingError":
            raise WeightsError(
                path, "contains more than tensors (code or objects); save its state_dict() instead"
            ) from error
        raise WeightsError(path, "not a torch file, or damaged") from error
    if "problem" in answer:
        raise WeightsError(path, answer["problem"])
    return {name: torch.from_numpy(np.array(values)) for name, values in answer["tensors"].items()}


def _check_size(file: Path) -> None:
    """Compare the size of a file, and the sum of the sizes inside it, with the limit."""
    try:
        size = check_regular(file).st_size
    except InputError as error:
        raise WeightsError(file, str(error).removeprefix(f"{file}: ")) from error
    most_mb = limits.current().published_mb
    if size > most_mb * 2**20:
        raise WeightsError(file, f"larger than any published file; {limits.hint('published_mb')}")
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # files of old versions of torch are not archives
    if unpacked > most_mb * 2**20:
        raise WeightsError(
            file, f"larger than any published file: it unpacks to {unpacked / 2**20:.0f} MB; "
            + limits.hint("published_mb")
        )  # fmt: skip


def _read_tensors(path: str) -> dict[str, Any]:
    """Return the arrays of a state dict, or a problem; this function runs in the guarded process."""
    loaded: Any = torch.load(path, map_location="cpu", weights_only=True)
    for wrapper in WRAPPERS:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(wrapper), Mapping):
            loaded = loaded[wrapper]
    if not isinstance(loaded, Mapping) or not loaded:
        return {"problem": "not a state dict"}
    if bad := [
        str(name)
        for name, value in loaded.items()
        if not (isinstance(name, str) and isinstance(value, Tensor))
    ]:
        return {"problem": "not a state dict: not tensors: " + join_names(bad)}
    # A tensor can repeat one stored value, so that its values take more memory than the file unpacks to.
    size = sum(value.numel() * value.element_size() for value in loaded.values())
    if size > limits.current().published_mb * 2**20:
        return {"problem": f"declares {size / 2**20:.0f} MB of values; " + limits.hint("published_mb")}
    plain = {
        name: value.float() if value.dtype == torch.bfloat16 else value for name, value in loaded.items()
    }
    return {"tensors": {name: value.detach().numpy() for name, value in plain.items()}}
