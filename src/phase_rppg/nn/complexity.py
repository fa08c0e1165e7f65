"""Count parameters and multiply-accumulates (MACs) exactly, for any network.

A dispatch hook counts every convolution and matrix product that torch runs. Padding counts in full, as is
usual. Weight-normed layers and matrix products outside of layers, which popular counters miss, are included.
Element-wise operations (activations, normalisation, gates) are not MACs. The count runs on the device "meta",
which only propagates shapes.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten


def parameters(network: nn.Module) -> int:
    """Return the number of trainable parameters; shared ones count once."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def clip_macs(network: nn.Module, frames: int, size: int) -> int:
    """Return the MACs of one clip (1,frames,size,size,3)."""
    return macs(network, torch.zeros(1, frames, size, size, 3, device="meta"))


def step_macs(network: nn.Module, size: int) -> int:
    """Return the MACs of one frame of a stream, for networks with `initial_state` and `step`."""
    network = copy.deepcopy(network).to("meta").eval()
    frame = torch.zeros(1, 1, size, size, 3, device="meta")
    with torch.no_grad(), _Counter() as counter:
        network.step(network.initial_state(1), frame)  # type: ignore[operator]
    return counter.total


def macs(network: nn.Module, *inputs: Tensor) -> int:
    """Return the MACs of one forward pass with inputs of these shapes."""
    network = copy.deepcopy(network).to("meta").eval()
    with torch.no_grad(), _Counter() as counter:
        network(*(tensor.to("meta") for tensor in inputs))
    return counter.total


def training_bytes(network: nn.Module, batch: int, frames: int, size: int) -> int:
    """Return the memory of a training step: activations, clips, weights, gradients and Adam's moments.

    Activations are the tensors that a forward pass saves for the backward pass. The workspace of a GPU's
    kernels comes on top.
    """
    network = copy.deepcopy(network).to("meta").train()
    saved: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage._cdata] = storage  # holding it keeps its number unique
        return tensor

    pixels = torch.zeros(batch, frames, size, size, 3, device="meta", dtype=torch.uint8)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(pixels)
    own = {p.untyped_storage()._cdata for p in network.parameters()}
    activations = sum(storage.nbytes() for key, storage in saved.items() if key not in own)
    weights = sum(p.numel() * p.element_size() for p in network.parameters())
    return activations + pixels.numel() + 4 * weights


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        out = func(*args, **(kwargs or {}))
        rule = _RULES.get(getattr(func, "overloadpacket", None))
        if rule is not None:
            self.total += rule(args, out)
        return out


def _convolution(args: tuple[Any, ...], out: Tensor) -> int:
    x, weight, transposed = args[0], args[1], args[6]
    per_point = weight.numel() // weight.shape[0]  # kernel points × channels in the group
    return (x if transposed else out).numel() * per_point


def _product(left: int) -> Callable[[tuple[Any, ...], Tensor], int]:
    """Return the rule of a product that sums over the last axis of argument number `left`."""
    return lambda args, out: int(out.numel() * args[left].shape[-1])


def _attention(args: tuple[Any, ...], out: Any) -> int:
    del out
    query, key, value = (tuple(tensor.shape) for tensor in args[:3])
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


_RULES: dict[Any, Callable[[tuple[Any, ...], Any], int]] = {
    _aten.convolution: _convolution,
    _aten._convolution: _convolution,
    _aten.mm: _product(0),
    _aten.bmm: _product(0),
    _aten.mv: _product(0),
    _aten.dot: _product(0),
    _aten.addmm: _product(1),
    _aten.baddbmm: _product(1),
    _aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    _aten._scaled_dot_product_flash_attention: _attention,
    _aten._scaled_dot_product_efficient_attention: _attention,
}
