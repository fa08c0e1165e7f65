"""What the network remembers between frames: a value that can be seen, copied, saved and reset.

`Network.step(state, pixels) -> (state, output)` never changes the state it was given. The size of a state
depends on the network and the batch only, not on how many frames went through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ...errors import ArgumentError


@dataclass(frozen=True)
class FrontState:
    """Memory of the front end; `log` and `high` are absent when the pixels go in as they are."""

    weight: Tensor  # (1,) how many frames the running mean holds: 0 before the first frame, then 1 and more
    log: Tensor | None  # (B,3,S,S) log-intensity of the last frame
    high: Tensor | None  # (B,3,S,S) log-intensity minus its running mean, at the last frame


@dataclass(frozen=True)
class MaskState:
    """Memory of where to look; each part is absent in networks that go without it."""

    unrest: Tensor | None  # (B,2,H·W·K) running mean and variance of what the mask watches
    mask: Tensor | None  # (B,M·H·W) running mean of the masks


@dataclass(frozen=True)
class State:
    """Everything PHASE-Net remembers."""

    front: FrontState
    est: tuple[Tensor, ...]  # per block (B,k−1,C,h,w): the last frames before its temporal convolution
    z: Tensor | None  # (B,M·C) aggregated features of the last frame, for the derivative v
    bank: Tensor | None  # (B,2,K) position and velocity of the oscillators
    tcn: tuple[Tensor, ...]  # per layer (B,D,1,(k−1)·dilation): its last inputs
    look: MaskState

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, in a fixed order (these are also the names in the exported graph)."""
        return dict(_walk(self, ""))

    def replace(self, tensors: Mapping[str, Tensor]) -> State:
        """A state of the same make with other tensors."""
        own = self.tensors()
        if own.keys() != tensors.keys():
            raise ArgumentError("state", f"tensors {sorted(tensors)}", f"{sorted(own)}")
        return self._map(lambda name, _: tensors[name])

    def clone(self) -> State:
        """An independent copy."""
        return self._map(lambda _, tensor: tensor.detach().clone())

    @property
    def batch(self) -> int:
        return int(self.est[0].shape[0])

    @property
    def nbytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    def _map(self, function: Callable[[str, Tensor], Tensor]) -> State:
        new: State = _rebuild(self, "", function)
        return new


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _walk(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _walk(item, _join(name, str(index)))
    elif value is not None:
        for field in dataclasses.fields(value):
            yield from _walk(getattr(value, field.name), _join(name, field.name))


def _rebuild(value: Any, name: str, function: Callable[[str, Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return function(name, value)
    if isinstance(value, tuple):
        return tuple(_rebuild(item, _join(name, str(i)), function) for i, item in enumerate(value))
    if value is None:
        return None
    fields = {
        field.name: _rebuild(getattr(value, field.name), _join(name, field.name), function)
        for field in dataclasses.fields(value)
    }
    return type(value)(**fields)
