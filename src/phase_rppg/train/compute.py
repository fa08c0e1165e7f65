"""Where and how networks compute: device, precision, memory layout and compilation.

The default on a CPU is float32 without any of these, and its results do not change with this module.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..errors import ArgumentError, UsageError

DEVICES = ("auto", "cpu", "cuda", "mps")
_LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the axes of a convolution's weight
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Compute:
    """How to run a network."""

    device: str = "cpu"  # "auto": CUDA, else MPS, else the CPU
    precision: str = "fp32"  # "bf16" and "fp16" use automatic mixed precision; the weights stay float32
    channels_last: bool = False
    compile: bool = False  # torch.compile

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise ArgumentError("--device", self.device, ", ".join(DEVICES))
        if self.precision not in PRECISIONS:
            raise ArgumentError("--precision", self.precision, ", ".join(PRECISIONS))
        if self.precision == "fp16" and self.resolve().type == "cpu":
            raise ArgumentError("--precision", "fp16", "bf16 or fp32 on a CPU")

    def resolve(self) -> torch.device:
        """Return the torch device; under torchrun, each process of a machine gets its own GPU."""
        available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        name = self.device
        if name == "auto":
            name = next(kind for kind, present in available.items() if present)
        elif not available[name]:
            raise UsageError(f"--device {name}: this installation of torch finds no such device")
        return (
            torch.device(name, int(os.environ.get("LOCAL_RANK", "0")))
            if name == "cuda"
            else torch.device(name)
        )

    def place(self, module: nn.Module) -> nn.Module:
        """Move a module to the device, with weights in the memory layout."""
        module = module.to(self.resolve())
        if self.channels_last:
            for parameter in module.parameters():
                if layout := _LAYOUTS.get(parameter.ndim):
                    parameter.data = parameter.data.contiguous(memory_format=layout)
        return module

    def compiled(self, module: nn.Module) -> nn.Module:
        """Return the module to call; its parameters are those of the given one."""
        return torch.compile(module) if self.compile else module  # type: ignore[return-value]

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context of a forward pass."""
        mixed = self.precision != "fp32"
        kind = self.resolve().type
        return torch.autocast(kind, PRECISIONS[self.precision] if mixed else None, enabled=mixed)

    def scaler(self) -> torch.amp.GradScaler | None:
        """Return the loss scaler that float16 needs, or None."""
        return torch.amp.GradScaler(self.resolve().type) if self.precision == "fp16" else None

    @property
    def backend(self) -> str:
        """The backend of torch.distributed."""
        return "nccl" if self.resolve().type == "cuda" else "gloo"

    @property
    def pins_memory(self) -> bool:
        """Whether batches are copied to page-locked memory, from which a GPU reads asynchronously."""
        return self.resolve().type == "cuda"

    def facts(self) -> dict[str, object]:
        """Return what determines the rounding of a result, for the record of a run."""
        return {"device": self.resolve().type, "precision": self.precision}


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to a device; from page-locked memory the copy is asynchronous."""
    return tensor if tensor.device == device else tensor.to(device, non_blocking=True)
