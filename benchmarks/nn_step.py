"""Compare the speed of PHASE-Net with a naive implementation (grouped Conv3d).

    python benchmarks/nn_step.py [--size 64] [--frames 128] [--repeats 3] [--out FILE.json]

Both have the same weights, and their outputs are compared first. Times are CPU seconds of one thread, the
best of several alternating repeats. The exit code is 1 if the speed-up is below 4× forward or 3× forward and
backward. Forward runs twice: with the default allocator, as in an application, and with freed memory kept, as
in training. The naive implementation gains more from the latter; both figures are written.
"""

from __future__ import annotations

import argparse
import copy
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from phase_rppg import fileio
from phase_rppg.nn import build
from phase_rppg.nn.memory_allocator import keep_memory
from phase_rppg.nn.phasenet.est import ESTBlock
from phase_rppg.nn.phasenet.fold_batchnorm import fold
from phase_rppg.nn.phasenet.front_end import PIXEL_CENTRE, PIXEL_SPREAD
from phase_rppg.nn.phasenet.layers import ConvNorm
from phase_rppg.nn.phasenet.model import PhaseNet

MUST_FORWARD, MUST_TRAIN = 4.0, 3.0


def conv3d(
    weight: Tensor, kernel: tuple[int, int, int], *, groups: int = 1, bias: Tensor | None = None
) -> nn.Conv3d:
    """A Conv3d with the weights of a 2-D convolution; causal padding in time, symmetric in space."""
    outputs, inputs = weight.shape[0], weight.shape[1] * groups
    padding = (0, kernel[1] // 2, kernel[2] // 2)
    conv = nn.Conv3d(inputs, outputs, kernel, padding=padding, groups=groups, bias=bias is not None)
    conv.weight.data.copy_(weight.reshape(conv.weight.shape))
    if bias is not None and conv.bias is not None:
        conv.bias.data.copy_(bias)
    return conv


def norm3d(norm: nn.Module) -> nn.BatchNorm3d:
    assert isinstance(norm, nn.BatchNorm2d)
    copy = nn.BatchNorm3d(norm.num_features)
    copy.load_state_dict(norm.state_dict())
    return copy


def conv_norm(source: ConvNorm, side: int) -> nn.Sequential:
    return nn.Sequential(conv3d(source.conv.weight, (1, side, side)), norm3d(source.norm))


class NaiveBlock(nn.Module):
    """An EST block in the paper's order on (B,C,T,H,W): grouped Conv3d, 3-D pooling at the end."""

    def __init__(self, block: ESTBlock) -> None:
        super().__init__()
        width, kernel = block.spatial.out_channels, block.temporal.kernel
        self.zas, self.pool, self.past = copy.deepcopy(block.zas), block.pool.side, kernel - 1
        self.zas.inplace = False
        self.expand = conv_norm(block.expand, 1)
        self.spatial = conv3d(block.spatial.weight, (1, 3, 3), groups=width)
        self.temporal = conv3d(block.temporal.weight, (kernel, 1, 1), groups=width)
        self.norm = norm3d(block.temporal.norm)
        self.down, self.up = copy.deepcopy(block.excite.down), copy.deepcopy(block.excite.up)
        self.project = conv_norm(block.project, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.expand(x))
        frames = x.transpose(1, 2)  # (B,T,C,H,W)
        x = self.zas(frames.flatten(0, 1)).reshape(frames.shape).transpose(1, 2)
        x = self.temporal(F.pad(self.spatial(x), (0, 0, 0, 0, self.past, 0)))
        x = F.relu(self.norm(x))
        squeezed = x.mean((3, 4)).transpose(1, 2)  # (B,T,C)
        weight = torch.sigmoid(self.up(F.relu(self.down(squeezed)))).transpose(1, 2)
        return F.avg_pool3d(self.project(x * weight[..., None, None]), (1, self.pool, self.pool))


class Naive(nn.Module):
    """Naive implementation of PHASE-Net with the weights of a given network."""

    def __init__(self, network: PhaseNet) -> None:
        super().__init__()
        self.stem = conv_norm(network.stem, 5)
        self.blocks = nn.Sequential(*(NaiveBlock(block) for block in network.blocks))
        self.hidden = conv_norm(network.filter.hidden, 3)
        self.logits = conv3d(network.filter.logits.weight, (1, 3, 3))
        self.tail = copy.deepcopy(network)

    def forward(self, pixels: Tensor) -> Tensor:
        x = ((pixels.float() - PIXEL_CENTRE) / PIXEL_SPREAD).permute(0, 4, 1, 2, 3)  # (B,3,T,H,W)
        x = self.blocks(F.relu(self.stem(x)))
        logits = self.logits(F.relu(self.hidden(x)))
        mask = torch.softmax(logits.flatten(3), 3).reshape(logits.shape)
        z = (x * mask).sum((3, 4))  # (B,C,T)
        v = torch.diff(z, dim=2, prepend=z[:, :, :1])
        y = self.tail.mix(self.tail.norm(torch.cat([z, v], 1)[:, :, None]))
        y, _ = self.tail.tcn(y, self.tail.tcn.initial_state(y, len(y)))
        wave: Tensor = self.tail.head(y)[:, 0, 0]
        return wave


def best_s(functions: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the smallest CPU time of each function; they alternate after one warm-up."""
    best = dict.fromkeys(functions, float("inf"))
    for turn in range(repeats + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if turn:
                best[name] = min(best[name], time.process_time() - start)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--frames", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "nn_step.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    network = build("phasenet", size=options.size)
    pixels = torch.randint(0, 256, (1, options.frames, options.size, options.size, 3), dtype=torch.uint8)
    with torch.no_grad():
        naive, difference = naive_copy(network, pixels)
        forward = best_s(
            {"ours": lambda: network(pixels).wave, "naive": lambda: naive(pixels)},
            options.repeats,
        )
    keep_memory()  # as `phase train` does
    with torch.no_grad():
        kept = best_s(
            {"ours": lambda: network(pixels).wave, "naive": lambda: naive(pixels)},
            options.repeats,
        )
    network.train(), naive.train()
    train = best_s(
        {
            "ours": lambda: network(pixels).wave.std().backward(),
            "naive": lambda: naive(pixels).std().backward(),
        },
        options.repeats,
    )
    steps = {
        name: step_ms(name, size) for name, size in (("phasenet", options.size), ("phasenet-stream", 36))
    }
    result = {
        "command": f"python benchmarks/nn_step.py --size {options.size} --frames {options.frames} "
        f"--repeats {options.repeats}",
        "torch": torch.__version__,
        "threads": 1,
        "frames": options.frames,
        "size": options.size,
        "largest_relative_difference": difference,
        "forward_s_per_clip": forward,
        "forward_and_backward_s_per_clip": train,
        "forward_s_per_clip_memory_kept": kept,
        "forward_speedup_memory_kept": kept["naive"] / kept["ours"],
        "forward_speedup": forward["naive"] / forward["ours"],
        "forward_and_backward_speedup": train["naive"] / train["ours"],
        "step_ms_per_frame": steps,
    }
    fileio.write_json(options.out, result)
    print(fileio.dump_json(result))
    return int(
        result["forward_speedup"] < MUST_FORWARD or result["forward_and_backward_speedup"] < MUST_TRAIN
    )


def naive_copy(network: PhaseNet, pixels: Tensor) -> tuple[Naive, float]:
    """Return the naive implementation with the same weights, and the largest relative difference."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0  # one forward pass sets the statistics
    network(pixels)
    naive = Naive(network).eval()
    network.eval()
    ours, theirs = network(pixels).wave, naive(pixels)
    difference = ((ours - theirs).abs().max() / ours.std()).item()
    assert difference < 1e-3, f"the naive implementation gives another result: {difference}"
    return naive, difference


def step_ms(name: str, size: int) -> dict[str, float]:
    """Return CPU ms per frame, frame by frame and in chunks of 30, with folded BatchNorm."""
    network = fold(build(name, size=size))
    frames = torch.randint(0, 256, (1, 30, size, size, 3), dtype=torch.uint8)

    def one_by_one() -> None:
        state = network.initial_state()
        for t in range(30):
            state, _ = network.step(state, frames[:, t : t + 1])

    times = best_s({"frame": one_by_one, "chunk": lambda: network.step(network.initial_state(), frames)}, 3)
    return {key: 1e3 * seconds / 30 for key, seconds in times.items()}


if __name__ == "__main__":
    raise SystemExit(main())
