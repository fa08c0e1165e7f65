"""The state of a streaming network: a value that callers can inspect, copy, save and reset.

Every streaming module declares its own state: `initial_state(...)` stands next to `forward`. A state is a
tensor, a tuple of states, a dataclass of states, or None. The network collects them by module name, so a
new module needs no change here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ...errors import ArgumentError


@dataclass(frozen=True)
class State:
    """The states of a network's modules; its size depends on the network and the batch only."""

    modules: Mapping[str, Any]  # module name -> state of the module
    batch: int

    def __getitem__(self, module: str) -> Any:
        return self.modules[module]

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, for example "blocks.0", in a fixed order."""
        return dict(_walk(self.modules, ""))

    def replace(self, tensors: Mapping[str, Tensor]) -> State:
        """Return a state of the same structure with other tensors."""
        own = self.tensors()
        if own.keys() != tensors.keys():
            raise ArgumentError("state", f"tensors {sorted(tensors)}", f"{sorted(own)}")
        return self._map(lambda name, _: tensors[name])

    def clone(self) -> State:
        """Return an independent copy."""
        return self._map(lambda _, tensor: tensor.detach().clone())

    @property
    def nbytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors().values())

    def _map(self, function: Callable[[str, Tensor], Tensor]) -> State:
        return State(_rebuild(self.modules, "", function), self.batch)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _walk(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif value is not None:
        for key, item in _items(value):
            yield from _walk(item, _join(name, key))


def _rebuild(value: Any, name: str, function: Callable[[str, Tensor], Tensor]) -> Any:
    if value is None:
        return None
    if isinstance(value, Tensor):
        return function(name, value)
    items = {key: _rebuild(item, _join(name, key), function) for key, item in _items(value)}
    if isinstance(value, Mapping):
        return items
    return tuple(items.values()) if isinstance(value, tuple) else type(value)(**items)


def _items(value: Any) -> list[tuple[str, Any]]:
    """Return the named parts of a mapping, a tuple or a dataclass."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple):
        return [(str(index), item) for index, item in enumerate(value)]
    return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
