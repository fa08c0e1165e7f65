"""The published networks as plain arithmetic on their state dicts, under their published names.

Written against the layer lists of the rPPG-Toolbox: which tensors there are, of which shapes, and what is
done with them. Slow and literal on purpose; our networks must give the same numbers from the same tensors.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

State = dict[str, Tensor]


def draw(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> State:
    """A state dict with these names and shapes, of sizes that keep signals alive."""
    generator = torch.Generator().manual_seed(seed)
    state: State = {}
    for name, shape in shapes.items():
        values = torch.rand(shape, generator=generator)
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif len(shape) > 1 and not name.endswith("_log"):
            fan_in = shape[0] if name.startswith("upsample") and len(shape) == 5 else values[0].numel()
            state[name] = (values - 0.5) * (6 / fan_in) ** 0.5
        else:
            state[name] = values + 0.5 if name.endswith(("weight", "var", "D", "D_b")) else values - 0.5
    return state


def norm_shapes(name: str, width: int) -> dict[str, tuple[int, ...]]:
    parts = {f"{name}.{part}": (width,) for part in ("weight", "bias", "running_mean", "running_var")}
    return {**parts, f"{name}.num_batches_tracked": ()}


def conv_shapes(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": (shape[0],)}


def normed(state: State, name: str, x: Tensor) -> Tensor:
    values = (state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
    return F.batch_norm(x, *values)


def conv(state: State, name: str, x: Tensor, **options: object) -> Tensor:
    return F.conv3d(x, state[f"{name}.weight"], state.get(f"{name}.bias"), **options)  # type: ignore[arg-type]


def diff_normalised(pixels: Tensor) -> Tensor:
    """(B,T,H,W,3) -> (B,3,T,H,W)."""
    x = pixels.double()
    change = (x[:, 1:] - x[:, :-1]) / (x[:, 1:] + x[:, :-1] + 1e-7)
    change = change / change.flatten(1).std(1, correction=0).view(-1, 1, 1, 1, 1)
    return torch.cat([change, torch.zeros_like(x[:, :1])], 1).permute(0, 4, 1, 2, 3).float()


# --- PhysNet ---

PHYSNET: dict[str, tuple[int, ...]] = {}
for _index, (_in, _out) in enumerate([(3, 16), (16, 32), (32, 64), *[(64, 64)] * 6], start=1):
    _kernel = (1, 5, 5) if _index == 1 else (3, 3, 3)
    PHYSNET |= conv_shapes(f"ConvBlock{_index}.0", _out, _in, *_kernel) | norm_shapes(
        f"ConvBlock{_index}.1", _out
    )
for _name in ("upsample", "upsample2"):
    PHYSNET |= conv_shapes(f"{_name}.0", 64, 64, 4, 1, 1) | norm_shapes(f"{_name}.1", 64)
PHYSNET |= conv_shapes("ConvBlock10", 1, 64, 1, 1, 1)


def physnet(state: State, pixels: Tensor) -> Tensor:
    x = diff_normalised(pixels)
    for index in range(1, 10):
        x = conv(state, f"ConvBlock{index}.0", x, padding=(0, 2, 2) if index == 1 else 1)
        x = normed(state, f"ConvBlock{index}.1", x).relu()
        if index in (1, 7):
            x = F.max_pool3d(x, (1, 2, 2))
        if index in (3, 5):
            x = F.max_pool3d(x, 2)
    for name in ("upsample", "upsample2"):
        weight, bias = state[f"{name}.0.weight"], state[f"{name}.0.bias"]
        x = F.conv_transpose3d(x, weight, bias, stride=(2, 1, 1), padding=(1, 0, 0))
        x = F.elu(normed(state, f"{name}.1", x))
    x = F.adaptive_avg_pool3d(x, (pixels.shape[1], 1, 1))
    return conv(state, "ConvBlock10", x).reshape(len(pixels), -1)


# --- FactorizePhys ---

_BODY, _HEAD = "rppg_feature_extractor.FeatureExtractor.", "rppg_head."
_CONVS = {
    f"{_BODY}0": (8, 3), f"{_BODY}1": (12, 8), f"{_BODY}2": (12, 12), f"{_BODY}4": (12, 12),
    f"{_BODY}5": (16, 12), f"{_BODY}6": (16, 16),
    **{f"{_HEAD}conv_block.{index}": (16, 16) for index in range(3)},
    f"{_HEAD}final_layer.0": (12, 16), f"{_HEAD}final_layer.1": (8, 12),
}  # fmt: skip
FACTORIZEPHYS: dict[str, tuple[int, ...]] = {
    **{f"{name}.conv_block_3d.0.weight": (*widths, 3, 3, 3) for name, widths in _CONVS.items()},
    f"{_HEAD}final_layer.2.weight": (1, 8, 3, 3, 3),
    **conv_shapes(f"{_HEAD}fsam.pre_conv_block.0", 8, 16, 1, 1, 1),
    f"{_HEAD}fsam.post_conv_block.0.conv.weight": (8, 8, 1, 1, 1),
    f"{_HEAD}fsam.post_conv_block.1.weight": (16, 8, 1, 1, 1),
}


def factorizephys(state: State, pixels: Tensor) -> Tensor:
    """At inference, without the factorisation; the last frame is repeated before the difference."""
    x = pixels.float().permute(0, 4, 1, 2, 3)
    x = F.instance_norm(torch.diff(torch.cat([x, x[:, :, -1:]], 2), dim=2))
    for name in _CONVS:
        stride = (1, 2, 2) if name in (f"{_BODY}1", f"{_BODY}5") else 1
        padding = 1 if name == f"{_BODY}0" else (1, 0, 0)
        x = conv(state, f"{name}.conv_block_3d.0", x, stride=stride, padding=padding)
        x = F.instance_norm(x.tanh())
    return conv(state, f"{_HEAD}final_layer.2", x, padding=(1, 0, 0)).reshape(len(pixels), -1)


# --- PhysMamba ---

_KERNELS = {
    1: (16, 3, 1, 5, 5),
    2: (32, 16, 3, 3, 3),
    3: (64, 32, 3, 3, 3),
    4: (64, 64, 4, 1, 1),
    5: (32, 64, 2, 1, 1),
    6: (32, 32, 3, 1, 1),
}
PHYSMAMBA: dict[str, tuple[int, ...]] = {}
for _index, _shape in _KERNELS.items():
    PHYSMAMBA |= conv_shapes(f"ConvBlock{_index}.0", *_shape) | norm_shapes(f"ConvBlock{_index}.1", _shape[0])
for _index in range(1, 7):
    _width = 64 if _index <= 3 else 32
    _inner, _rank = 2 * _width, _width // 16
    _block, _mamba = f"Block{_index}", f"Block{_index}.3.mamba"
    PHYSMAMBA |= {f"{_block}.0.conv.weight": (_width, _width, 3, 3, 3), **norm_shapes(f"{_block}.1", _width)}
    PHYSMAMBA |= {f"{_block}.3.norm{n}.{part}": (_width,) for n in (1, 2) for part in ("weight", "bias")}
    PHYSMAMBA |= {
        f"{_mamba}.in_proj.weight": (2 * _inner, _width),
        f"{_mamba}.out_proj.weight": (_width, _inner),
    }
    for _end in ("", "_b"):
        PHYSMAMBA |= {f"{_mamba}.A{_end}_log": (_inner, 16), f"{_mamba}.D{_end}": (_inner,)}
        PHYSMAMBA |= conv_shapes(f"{_mamba}.conv1d{_end}", _inner, 1, 4)
        PHYSMAMBA |= {f"{_mamba}.x_proj{_end}.weight": (_rank + 32, _inner)}
        PHYSMAMBA |= conv_shapes(f"{_mamba}.dt_proj{_end}", _inner, _rank)
    PHYSMAMBA |= {f"{_block}.4.fc.0.weight": (_width // 2, _width, 1, 1, 1)}
    PHYSMAMBA |= {f"{_block}.4.fc.2.weight": (_width, _width // 2, 1, 1, 1)}
for _name in ("fuse_1", "fuse_2"):
    PHYSMAMBA |= conv_shapes(f"{_name}.conv.0", 64, 32, 3, 1, 1) | norm_shapes(f"{_name}.conv.1", 64)
PHYSMAMBA |= conv_shapes("upsample1.1", 64, 64, 3, 1, 1) | norm_shapes("upsample1.2", 64)
PHYSMAMBA |= conv_shapes("upsample2.1", 48, 96, 3, 1, 1) | norm_shapes("upsample2.2", 48)
PHYSMAMBA |= conv_shapes("ConvBlockLast", 1, 48, 1, 1, 1)


def _sweep(state: State, mamba: str, end: str, x: Tensor) -> Tensor:
    """One direction of Mamba, token by token: (B,L,D) -> (B,L,D)."""
    weight, bias = state[f"{mamba}.conv1d{end}.weight"], state[f"{mamba}.conv1d{end}.bias"]
    x = F.silu(F.conv1d(F.pad(x.transpose(1, 2), (3, 0)), weight, bias, groups=len(weight))).transpose(1, 2)
    selected = x @ state[f"{mamba}.x_proj{end}.weight"].T
    rank = selected.shape[-1] - 32
    step, into, out = selected[..., :rank], selected[..., rank : rank + 16], selected[..., rank + 16 :]
    step = F.softplus(step @ state[f"{mamba}.dt_proj{end}.weight"].T + state[f"{mamba}.dt_proj{end}.bias"])
    decay = -state[f"{mamba}.A{end}_log"].exp()
    memory, answers = torch.zeros(len(x), *decay.shape), []
    for t in range(x.shape[1]):
        memory = memory * torch.exp(step[:, t, :, None] * decay)
        memory = memory + (step[:, t] * x[:, t])[..., None] * into[:, t, None]
        answers.append((memory * out[:, t, None]).sum(-1))
    return torch.stack(answers, 1) + state[f"{mamba}.D{end}"] * x


def _mamba_block(state: State, block: str, x: Tensor) -> Tensor:
    weight = state[f"{block}.0.conv.weight"]
    outer = (weight[:, :, 0] + weight[:, :, 2]).sum((-1, -2))[..., None, None, None]
    x = F.conv3d(x, weight, padding=1) - 0.5 * F.conv3d(x, outer)
    x = normed(state, f"{block}.1", x).relu()
    tokens, width = x.flatten(2).transpose(1, 2), x.shape[1]
    mamba = f"{block}.3.mamba"
    before, after = (
        {part: state[f"{block}.3.norm{n}.{part}"] for part in ("weight", "bias")} for n in (1, 2)
    )
    inside, gate = (F.layer_norm(tokens, (width,), **before) @ state[f"{mamba}.in_proj.weight"].T).chunk(
        2, -1
    )
    there = _sweep(state, mamba, "", inside) * F.silu(gate)
    back = (_sweep(state, mamba, "_b", inside.flip(1)) * F.silu(gate.flip(1))).flip(1)
    tokens = F.layer_norm(tokens + (there + back) @ state[f"{mamba}.out_proj.weight"].T, (width,), **after)
    x = tokens.transpose(1, 2).reshape(x.shape)
    pooled = [F.adaptive_avg_pool3d(x, 1), F.adaptive_max_pool3d(x, 1)]
    gates = [conv(state, f"{block}.4.fc.2", conv(state, f"{block}.4.fc.0", p).relu()) for p in pooled]
    return x * (gates[0] + gates[1]).sigmoid()


def physmamba(state: State, pixels: Tensor) -> Tensor:
    def step(index: int, x: Tensor, **options: object) -> Tensor:
        return normed(state, f"ConvBlock{index}.1", conv(state, f"ConvBlock{index}.0", x, **options))

    def half(x: Tensor) -> Tensor:
        return F.max_pool3d(x, (1, 2, 2))

    def rise(name: str, x: Tensor) -> Tensor:
        x = conv(state, f"{name}.1", x.repeat_interleave(2, dim=2), padding=(1, 0, 0))
        return F.elu(normed(state, f"{name}.2", x))

    x = half(step(1, diff_normalised(pixels), padding=(0, 2, 2)).relu())
    x = half(step(3, step(2, x, padding=1).relu(), padding=1).relu())
    slow, fast = step(4, x, stride=(4, 1, 1)).relu(), step(5, x, stride=(2, 1, 1)).relu()
    for index in (1, 2):
        slow = half(_mamba_block(state, f"Block{index}", slow))
        fast = half(_mamba_block(state, f"Block{index + 3}", fast))
        side = conv(state, f"fuse_{index}.conv.0", fast, stride=(2, 1, 1), padding=(1, 0, 0))
        slow = slow + normed(state, f"fuse_{index}.conv.1", side).relu()
    slow = rise("upsample1", _mamba_block(state, "Block3", slow))
    fast = F.elu(step(6, _mamba_block(state, "Block6", fast), padding=(1, 0, 0)))
    x = rise("upsample2", torch.cat([fast, slow], 1)).mean((-1, -2), keepdim=True)
    return conv(state, "ConvBlockLast", x).reshape(len(pixels), -1)
