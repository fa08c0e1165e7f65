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
    """With the factorisation, as `MD_INFERENCE: True`; the last frame is repeated before the difference."""
    return torch.cat([_factorizephys(state, clip[None]) for clip in pixels])


def _factorizephys(state: State, pixels: Tensor) -> Tensor:
    x = pixels.float().permute(0, 4, 1, 2, 3)
    x = F.instance_norm(torch.diff(torch.cat([x, x[:, :, -1:]], 2), dim=2))
    for name in _CONVS:
        if name == f"{_HEAD}final_layer.0":
            x = x + F.instance_norm((x - x.min() + 1) * _positive_mask(state, x - x.min()))
        stride = (1, 2, 2) if name in (f"{_BODY}1", f"{_BODY}5") else 1
        padding = 1 if name == f"{_BODY}0" else (1, 0, 0)
        x = conv(state, f"{name}.conv_block_3d.0", x, stride=stride, padding=padding)
        x = F.instance_norm(x.tanh())
    return conv(state, f"{_HEAD}final_layer.2", x, padding=(1, 0, 0)).reshape(len(pixels), -1)


def _positive_mask(state: State, x: Tensor) -> Tensor:
    """The features in their order in memory as a T×N matrix; three updates of both factors, one of one."""
    x = conv(state, f"{_HEAD}fsam.pre_conv_block.0", x).relu()
    frames = x.shape[2]
    matrix = torch.stack(
        [x.flatten()[i * x.numel() // frames :][: x.numel() // frames] for i in range(frames)]
    )
    bases, coef = torch.full((frames, 1), frames**-0.5), torch.ones(matrix.shape[1], 1)
    for _ in range(3):
        coef = coef * (matrix.T @ bases) / (coef @ (bases.T @ bases) + 1e-6)
        bases = bases * (matrix @ coef) / (bases @ (coef.T @ coef) + 1e-6)
    coef = coef * (matrix.T @ bases) / (coef @ (bases.T @ bases) + 1e-6)
    mask = (bases @ coef.T).flatten().view(x.shape)
    mask = conv(
        state,
        f"{_HEAD}fsam.post_conv_block.1",
        conv(state, f"{_HEAD}fsam.post_conv_block.0.conv", mask).relu(),
    )
    return mask - mask.min() + 1


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


# --- DeepPhys, TS-CAN, EfficientPhys ---

_BRANCH = {1: (32, 3), 2: (32, 32), 3: (64, 32), 4: (64, 64)}
_MOTION = {k: v for i, w in _BRANCH.items() for k, v in conv_shapes(f"motion_conv{i}", *w, 3, 3).items()}
_LOOKS = {k: v for i, w in _BRANCH.items() for k, v in conv_shapes(f"apperance_conv{i}", *w, 3, 3).items()}
_ENDS = {
    **conv_shapes("apperance_att_conv1", 1, 32, 1, 1), **conv_shapes("apperance_att_conv2", 1, 64, 1, 1),
    **conv_shapes("final_dense_1", 128, 16384), **conv_shapes("final_dense_2", 1, 128),
}  # fmt: skip
DEEPPHYS: dict[str, tuple[int, ...]] = {**_MOTION, **_LOOKS, **_ENDS}
TS_CAN = DEEPPHYS
EFFICIENTPHYS: dict[str, tuple[int, ...]] = {**_MOTION, **_ENDS, **norm_shapes("batch_norm", 3)}


def conv2(state: State, name: str, x: Tensor, **options: object) -> Tensor:
    return F.conv2d(x, state[f"{name}.weight"], state[f"{name}.bias"], **options)  # type: ignore[arg-type]


def linear(state: State, name: str, x: Tensor) -> Tensor:
    return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def standardised(pixels: Tensor) -> Tensor:
    """(B,T,H,W,3) -> (B,T,3,H,W)."""
    x = pixels.double().permute(0, 1, 4, 2, 3)
    spread = x.flatten(1).std(1, correction=0).view(-1, 1, 1, 1, 1)
    return ((x - x.mean((1, 2, 3, 4), keepdim=True)) / spread).float()


def _shifted(x: Tensor) -> Tensor:
    """Within ten frames, a third of the channels from the next frame and a third from the previous one."""
    windows, fold = x.view(-1, 10, *x.shape[1:]), x.shape[1] // 3
    out = torch.zeros_like(windows)
    out[:, :-1, :fold] = windows[:, 1:, :fold]
    out[:, 1:, fold : 2 * fold] = windows[:, :-1, fold : 2 * fold]
    out[:, :, 2 * fold :] = windows[:, :, 2 * fold :]
    return out.view(x.shape)


def _attention_network(state: State, motion: Tensor, looks: Tensor | None, *, shift: bool) -> Tensor:
    """Two pairs of convolutions, gated by masks, for frames (N,3,H,W) -> (N,)."""
    for pair in (1, 2):
        for index, padding in ((2 * pair - 1, 1), (2 * pair, 0)):
            motion = _shifted(motion) if shift else motion
            motion = conv2(state, f"motion_conv{index}", motion, padding=padding).tanh()
            if looks is not None:
                looks = conv2(state, f"apperance_conv{index}", looks, padding=padding).tanh()
        gate = conv2(state, f"apperance_att_conv{pair}", motion if looks is None else looks).sigmoid()
        gate = gate / gate.sum((2, 3), keepdim=True) * gate.shape[2] * gate.shape[3] * 0.5
        motion = F.avg_pool2d(motion * gate, 2)
        looks = None if looks is None else F.avg_pool2d(looks, 2)
    return linear(state, "final_dense_2", linear(state, "final_dense_1", motion.flatten(1)).tanh()).squeeze(1)


def deepphys(state: State, pixels: Tensor, *, shift: bool = False) -> Tensor:
    motion = diff_normalised(pixels).transpose(1, 2).flatten(0, 1)
    looks = standardised(pixels).flatten(0, 1)
    return _attention_network(state, motion, looks, shift=shift).view(pixels.shape[:2])


def ts_can(state: State, pixels: Tensor) -> Tensor:
    return deepphys(state, pixels, shift=True)


BIGSMALL: dict[str, tuple[int, ...]] = {
    **{k: v for i, w in enumerate([(32, 3), (32, 32), (32, 32), (64, 32), (64, 64), (64, 64)], 1)
       for k, v in conv_shapes(f"big_conv{i}", *w, 3, 3).items()},
    **{k: v for i, w in _BRANCH.items() for k, v in conv_shapes(f"small_conv{i}", w[0], w[1], 3, 3).items()},
    **{k: v for head, n in {"au": 12, "bvp": 1, "resp": 1}.items()
       for k, v in {**conv_shapes(f"{head}_fc1", 128, 5184), **conv_shapes(f"{head}_fc2", n, 128)}.items()},
}  # fmt: skip
BIGSMALL["small_conv3.weight"], BIGSMALL["small_conv3.bias"] = (32, 32, 3, 3), (32,)
BIGSMALL["small_conv4.weight"] = (64, 32, 3, 3)


def _wrapped(x: Tensor) -> Tensor:
    """As `_shifted`, within three frames and in a circle."""
    segments, fold = x.view(-1, 3, *x.shape[1:]), x.shape[1] // 3
    out = segments.clone()
    for t in range(3):
        out[:, t, :fold] = segments[:, (t + 1) % 3, :fold]
        out[:, t, fold : 2 * fold] = segments[:, (t + 2) % 3, fold : 2 * fold]
    return out.view(x.shape)


def bigsmall(state: State, pixels: Tensor) -> Tensor:
    looks = standardised(pixels)[:, ::3].flatten(0, 1)
    for pair, pool in ((1, 2), (2, 2), (3, 4)):
        for index in (2 * pair - 1, 2 * pair):
            looks = conv2(state, f"big_conv{index}", looks, padding=1).relu()
        looks = F.avg_pool2d(looks, pool)
    small = pixels.float().unflatten(2, (9, 16)).unflatten(4, (9, 16)).mean((3, 5))
    x = diff_normalised(small).transpose(1, 2).flatten(0, 1)
    for index in range(1, 5):
        x = conv2(state, f"small_conv{index}", _wrapped(x), padding=1).relu()
    x = (x + looks.repeat_interleave(3, 0)).flatten(1)
    return linear(state, "bvp_fc2", linear(state, "bvp_fc1", x).relu()).view(pixels.shape[:2])


def efficientphys(state: State, pixels: Tensor) -> Tensor:
    frames = standardised(pixels)
    change = torch.diff(torch.cat([frames, frames[:, -1:]], 1), dim=1).flatten(0, 1)
    return _attention_network(state, normed(state, "batch_norm", change), None, shift=True).view(
        pixels.shape[:2]
    )


# --- PhysFormer ---

PHYSFORMER: dict[str, tuple[int, ...]] = {
    **conv_shapes("Stem0.0", 24, 3, 1, 5, 5), **norm_shapes("Stem0.1", 24),
    **conv_shapes("Stem1.0", 48, 24, 3, 3, 3), **norm_shapes("Stem1.1", 48),
    **conv_shapes("Stem2.0", 96, 48, 3, 3, 3), **norm_shapes("Stem2.1", 96),
    **conv_shapes("patch_embedding", 96, 96, 4, 4, 4),
    **conv_shapes("upsample.1", 96, 96, 3, 1, 1), **norm_shapes("upsample.2", 96),
    **conv_shapes("upsample2.1", 48, 96, 3, 1, 1), **norm_shapes("upsample2.2", 48),
    **conv_shapes("ConvBlockLast", 1, 48, 1),
}  # fmt: skip
_LAYERS = [f"transformer{part}.blocks.{index}" for part in (1, 2, 3) for index in range(4)]
for _block in _LAYERS:
    for _part in ("q", "k"):
        PHYSFORMER |= {f"{_block}.attn.proj_{_part}.0.conv.weight": (96, 96, 3, 3, 3)}
        PHYSFORMER |= norm_shapes(f"{_block}.attn.proj_{_part}.1", 96)
    PHYSFORMER |= {
        f"{_block}.attn.proj_v.0.weight": (96, 96, 1, 1, 1),
        **conv_shapes(f"{_block}.proj", 96, 96),
    }
    PHYSFORMER |= {f"{_block}.norm{n}.{part}": (96,) for n in (1, 2) for part in ("weight", "bias")}
    for _part, _shape in (("fc1", (144, 96, 1)), ("STConv", (144, 1, 3)), ("fc2", (96, 144, 1))):
        PHYSFORMER |= {f"{_block}.pwff.{_part}.0.weight": (*_shape, _shape[2], _shape[2])}
        PHYSFORMER |= norm_shapes(f"{_block}.pwff.{_part}.1", _shape[0])


def difference_conv(state: State, name: str, x: Tensor, theta: float) -> Tensor:
    weight = state[f"{name}.conv.weight"]
    outer = (weight[:, :, 0] + weight[:, :, 2]).sum((-1, -2))[..., None, None, None]
    return F.conv3d(x, weight, padding=1) - theta * F.conv3d(x, outer)


def _transformer_layer(state: State, block: str, x: Tensor) -> Tensor:
    """(B,96,t,h,w) -> same."""

    def over_channels(name: str, x: Tensor) -> Tensor:
        parts = (state[f"{block}.{name}.weight"], state[f"{block}.{name}.bias"])
        return F.layer_norm(x.movedim(1, -1), (96,), *parts, eps=1e-6).movedim(-1, 1)

    y = over_channels("norm1", x)
    query, key = (
        normed(state, f"{block}.attn.proj_{n}.1", difference_conv(state, f"{block}.attn.proj_{n}.0", y, 0.7))
        for n in ("q", "k")
    )
    value = conv(state, f"{block}.attn.proj_v.0", y)
    heads = []
    for head in range(4):
        q, k, v = (part[:, 24 * head : 24 * head + 24].flatten(2) for part in (query, key, value))  # (B,24,N)
        heads.append(v @ (q.transpose(1, 2) @ k / 2.0).softmax(-1).transpose(1, 2))
    mixed = torch.cat(heads, 1).transpose(1, 2)  # (B,N,96)
    x = x + linear(state, f"{block}.proj", mixed).transpose(1, 2).reshape(x.shape)
    y = over_channels("norm2", x)
    y = F.elu(normed(state, f"{block}.pwff.fc1.1", conv(state, f"{block}.pwff.fc1.0", y)))
    y = conv(state, f"{block}.pwff.STConv.0", y, padding=1, groups=144)
    y = F.elu(normed(state, f"{block}.pwff.STConv.1", y))
    return x + normed(state, f"{block}.pwff.fc2.1", conv(state, f"{block}.pwff.fc2.0", y))


def physformer(state: State, pixels: Tensor) -> Tensor:
    x = diff_normalised(pixels)
    for stage in range(3):
        x = conv(state, f"Stem{stage}.0", x, padding=(0, 2, 2) if stage == 0 else 1)
        x = F.max_pool3d(normed(state, f"Stem{stage}.1", x).relu(), (1, 2, 2))
    x = conv(state, "patch_embedding", x, stride=4)
    for block in _LAYERS:
        x = _transformer_layer(state, block, x)
    for name in ("upsample", "upsample2"):
        x = conv(state, f"{name}.1", x.repeat_interleave(2, dim=2), padding=(1, 0, 0))
        x = F.elu(normed(state, f"{name}.2", x))
    x = x.mean((-1, -2))
    return F.conv1d(x, state["ConvBlockLast.weight"], state["ConvBlockLast.bias"]).squeeze(1)


# --- RhythmFormer ---

RHYTHMFORMER: dict[str, tuple[int, ...]] = {
    **conv_shapes("patch_embedding", 64, 64, 1, 4, 4), **conv_shapes("ConvBlockLast", 1, 64, 1),
}  # fmt: skip
for _name, _shape in {
    "11": (64, 3, 5, 5),
    "12": (64, 12, 5, 5),
    "21": (64, 64, 3, 3),
    "22": (64, 64, 3, 3),
}.items():
    RHYTHMFORMER |= conv_shapes(f"Fusion_Stem.stem{_name}.0", *_shape)
    RHYTHMFORMER |= norm_shapes(f"Fusion_Stem.stem{_name}.1", 64)
for _stage in range(3):
    for _index in range(_stage + 1):
        _down, _up = (f"stages.{_stage}.{way}sample_layers.{_index}" for way in ("down", "up"))
        RHYTHMFORMER |= norm_shapes(f"{_down}.0", 64) | conv_shapes(f"{_down}.1", 64, 64, 2, 1, 1)
        RHYTHMFORMER |= conv_shapes(f"{_up}.1", 64, 64, 3, 1, 1) | norm_shapes(f"{_up}.2", 64)
    for _index in range(2):
        _block = f"stages.{_stage}.blocks.{_index}"
        RHYTHMFORMER |= norm_shapes(f"{_block}.norm1", 64) | norm_shapes(f"{_block}.norm2", 64)
        RHYTHMFORMER |= conv_shapes(f"{_block}.attn.lepe", 64, 1, 3, 3, 3)
        RHYTHMFORMER |= conv_shapes(f"{_block}.attn.qkv_linear", 192, 64, 1, 1, 1)  # never used
        RHYTHMFORMER |= conv_shapes(f"{_block}.attn.output_linear", 64, 64, 1, 1, 1)
        for _part in ("q", "k"):
            RHYTHMFORMER |= {f"{_block}.attn.proj_{_part}.0.conv.weight": (64, 64, 3, 3, 3)}
            RHYTHMFORMER |= norm_shapes(f"{_block}.attn.proj_{_part}.1", 64)
        RHYTHMFORMER |= {f"{_block}.attn.proj_v.0.weight": (64, 64, 1, 1, 1)}
        for _part, _shape in {"0": (96, 64, 1), "3": (96, 96, 3), "6": (64, 96, 1)}.items():
            RHYTHMFORMER |= conv_shapes(f"{_block}.mlp.{_part}", *_shape, _shape[2], _shape[2])
            RHYTHMFORMER |= norm_shapes(f"{_block}.mlp.{int(_part) + 1}", _shape[0])


def _fusion_stem(state: State, frames: Tensor) -> Tensor:
    """(B,T,3,H,W) -> (B,64,T,H/4,W/4)."""
    last = frames.shape[1] - 1

    def at(step: int) -> Tensor:
        return torch.stack([frames[:, min(max(t + step, 0), last)] for t in range(last + 1)], 1)

    def entry(name: str, x: Tensor) -> Tensor:
        x = normed(
            state, f"Fusion_Stem.{name}.1", conv2(state, f"Fusion_Stem.{name}.0", x, stride=2, padding=2)
        )
        return F.max_pool2d(x.relu(), 3, stride=2, padding=1)

    def mix(name: str, x: Tensor) -> Tensor:
        return normed(
            state, f"Fusion_Stem.{name}.1", conv2(state, f"Fusion_Stem.{name}.0", x, padding=1)
        ).relu()

    change = torch.cat([at(step + 1) - at(step) for step in (-2, -1, 0, 1)], 2).flatten(0, 1)
    change, plain = entry("stem12", change), entry("stem11", frames.flatten(0, 1))
    fused = 0.5 * mix("stem21", 0.5 * plain + 0.5 * change) + 0.5 * mix("stem22", change)
    return fused.unflatten(0, frames.shape[:2]).transpose(1, 2)


def _routed_attention(state: State, name: str, x: Tensor, span: int) -> Tensor:
    """Each region attends to its 40 most similar regions, region by region: (1,64,t,h,w) -> same."""
    query, key = (
        normed(state, f"{name}.proj_{n}.1", difference_conv(state, f"{name}.proj_{n}.0", x, 0.2))
        for n in ("q", "k")
    )
    value = conv(state, f"{name}.proj_v.0", x)
    size = (span, x.shape[3] // 4, x.shape[4] // 4)
    places = [
        (slice(t, t + size[0]), slice(h, h + size[1]), slice(w, w + size[2]))
        for t in range(0, x.shape[2], size[0])
        for h in range(0, x.shape[3], size[1])
        for w in range(0, x.shape[4], size[2])
    ]
    queries, keys, values = (
        [part[0][(slice(None), *place)].flatten(1).T for place in places] for part in (query, key, value)
    )  # each region (n,64)
    means = torch.stack([each.mean(0) for each in keys])
    out = torch.zeros_like(x)
    for place, region in zip(places, queries, strict=True):
        chosen = (means @ region.mean(0)).topk(40).indices.tolist()
        some_keys, some_values = (torch.cat([each[i] for i in chosen]) for each in (keys, values))
        for head in range(4):
            part = slice(16 * head, 16 * head + 16)
            scores = (region[:, part] * 64**-0.5 @ some_keys[:, part].T).softmax(-1)
            box = out[0][(part, *place)]
            box.copy_((scores @ some_values[:, part]).T.reshape(box.shape))
    local = conv(state, f"{name}.lepe", value, padding=1, groups=64)
    return conv(state, f"{name}.output_linear", out + local)


def rhythmformer(state: State, pixels: Tensor) -> Tensor:
    return torch.cat([_rhythmformer(state, clip[None]) for clip in pixels])


def _rhythmformer(state: State, pixels: Tensor) -> Tensor:
    x = conv(state, "patch_embedding", _fusion_stem(state, standardised(pixels)), stride=(1, 4, 4))
    for stage in range(3):
        for index in range(stage + 1):
            name = f"stages.{stage}.downsample_layers.{index}"
            x = conv(state, f"{name}.1", normed(state, f"{name}.0", x), stride=(2, 1, 1))
        for index in range(2):
            block = f"stages.{stage}.blocks.{index}"
            y = normed(state, f"{block}.norm1", x)
            x = x + _routed_attention(state, f"{block}.attn", y, max(4 // 2 ** (stage + 1), 1))
            y = conv(state, f"{block}.mlp.0", normed(state, f"{block}.norm2", x))
            y = conv(state, f"{block}.mlp.3", F.gelu(normed(state, f"{block}.mlp.1", y)), padding=1)
            y = conv(state, f"{block}.mlp.6", F.gelu(normed(state, f"{block}.mlp.4", y)))
            x = x + normed(state, f"{block}.mlp.7", y)
        for index in range(stage + 1):
            name = f"stages.{stage}.upsample_layers.{index}"
            x = conv(state, f"{name}.1", x.repeat_interleave(2, dim=2), padding=(1, 0, 0))
            x = F.elu(normed(state, f"{name}.2", x))
    return F.conv1d(x.mean((-1, -2)), state["ConvBlockLast.weight"], state["ConvBlockLast.bias"]).squeeze(1)


# --- Contrast-Phys+ ---

CONTRAST_PHYS: dict[str, tuple[int, ...]] = {
    **conv_shapes("start.0", 32, 3, 1, 5, 5), **norm_shapes("start.1", 32),
    **conv_shapes("end.1", 1, 64, 1, 1, 1),
}  # fmt: skip
for _name in ("loop1", "encoder1", "encoder2", "loop4"):
    for _index in (1, 4):
        _in = 32 if (_name, _index) == ("loop1", 1) else 64
        CONTRAST_PHYS |= conv_shapes(f"{_name}.{_index}", 64, _in, 3, 3, 3) | norm_shapes(
            f"{_name}.{_index + 1}", 64
        )
for _name in ("decoder1", "decoder2"):
    CONTRAST_PHYS |= conv_shapes(f"{_name}.0", 64, 64, 3, 1, 1) | norm_shapes(f"{_name}.1", 64)


def contrast_phys(state: State, pixels: Tensor) -> Tensor:
    x = pixels.double().permute(0, 4, 1, 2, 3)
    x = ((x - x.mean((2, 3, 4), keepdim=True)) / x.flatten(2).std(2).view(-1, 3, 1, 1, 1)).float()
    x = F.elu(normed(state, "start.1", conv(state, "start.0", x, padding=(0, 2, 2))))
    for name, pool in (("loop1", (1, 2, 2)), ("encoder1", 2), ("encoder2", 2), ("loop4", (1, 2, 2))):
        x = F.avg_pool3d(x, pool)
        for index in (1, 4):
            x = F.elu(normed(state, f"{name}.{index + 1}", conv(state, f"{name}.{index}", x, padding=1)))
    for name in ("decoder1", "decoder2"):
        x = conv(state, f"{name}.0", x.repeat_interleave(2, dim=2), padding=(1, 0, 0))
        x = F.elu(normed(state, f"{name}.1", x))
    block = conv(state, "end.1", F.adaptive_avg_pool3d(x, (pixels.shape[1], 2, 2)))
    return block.mean((-1, -2)).squeeze(1)


# --- The public code of PHASE-Net ---

PHASENET_RELEASE: dict[str, tuple[int, ...]] = {
    **conv_shapes("base_encoder.0", 16, 3, 1, 5, 5),
    **conv_shapes("attention_head.attention_conv.0", 64, 128, 3, 3),
    **conv_shapes("attention_head.attention_conv.2", 1, 64, 3, 3),
    **conv_shapes("encoder_head", 128, 128), **conv_shapes("temporal_model.final_conv", 128, 128, 1),
    **conv_shapes("temporal_model.network.0.downsample", 128, 256, 1),
    **conv_shapes("regressor_head.head.0", 32, 64), **conv_shapes("regressor_head.head.2", 1, 32),
    # for training only:
    **conv_shapes("projection_encoder.0", 80, 128), **conv_shapes("decoder.final_fc", 128, 16384),
}  # fmt: skip
for _index, _in in enumerate((16, 32, 64), start=3):
    _wide, _block = 4 * _in, f"base_encoder.{_index}"
    PHASENET_RELEASE |= {f"{_block}.stage1.0.weight": (_wide, _in, 1, 1, 1)}
    PHASENET_RELEASE |= {f"{_block}.stage2.0.weight": (_wide, 1, 1, 3, 3)}
    PHASENET_RELEASE |= {f"{_block}.stage3.0.weight": (_wide, 1, 3, 1, 1)}
    PHASENET_RELEASE |= {f"{_block}.se.fc.0.weight": (_in, _wide, 1, 1, 1)}
    PHASENET_RELEASE |= {f"{_block}.se.fc.2.weight": (_wide, _in, 1, 1, 1)}
    PHASENET_RELEASE |= {f"{_block}.proj.0.weight": (2 * _in, _wide, 1, 1, 1)}
for _index in range(4):
    for _name in ("conv_linear", "conv_gate"):
        _conv = f"temporal_model.network.{_index}.{_name}"
        PHASENET_RELEASE |= {
            f"{_conv}.bias": (128,),
            f"{_conv}.parametrizations.weight.original0": (128, 1, 1),
        }
        PHASENET_RELEASE |= {f"{_conv}.parametrizations.weight.original1": (128, 128 if _index else 256, 3)}
for _index in range(2):
    _gru, _end = "regressor_head.gru", f"l{_index}"
    PHASENET_RELEASE |= {f"{_gru}.weight_ih_{_end}": (192, 64 if _index else 128)}
    PHASENET_RELEASE |= {f"{_gru}.weight_hh_{_end}": (192, 64)}
    PHASENET_RELEASE |= {f"{_gru}.bias_{part}_{_end}": (192,) for part in ("ih", "hh")}


def _recurrent(state: State, x: Tensor, layer: int) -> Tensor:
    """A GRU, step by step: (B,T,·) -> (B,T,64)."""
    weights = {
        n: state[f"regressor_head.gru.{n}_l{layer}"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    hidden, out = torch.zeros(len(x), 64), []
    for t in range(x.shape[1]):
        new = (x[:, t] @ weights["weight_ih"].T + weights["bias_ih"]).chunk(3, 1)
        old = (hidden @ weights["weight_hh"].T + weights["bias_hh"]).chunk(3, 1)
        reset, update = (new[0] + old[0]).sigmoid(), (new[1] + old[1]).sigmoid()
        hidden = (1 - update) * (new[2] + reset * old[2]).tanh() + update * hidden
        out.append(hidden)
    return torch.stack(out, 1)


def phasenet_release(state: State, pixels: Tensor) -> Tensor:
    x = F.instance_norm(
        conv(state, "base_encoder.0", pixels.float().permute(0, 4, 1, 2, 3), padding=(0, 2, 2))
    ).relu()
    for index in (3, 4, 5):
        block = f"base_encoder.{index}"
        x = F.instance_norm(conv(state, f"{block}.stage1.0", x)).relu()
        shifted, fold, wide = x.clone(), x.shape[1] // 8, x.shape[1]
        shifted[:, :fold, :-1], shifted[:, :fold, -1] = x[:, :fold, 1:], 0
        shifted[:, fold : 2 * fold] = 0
        x = F.instance_norm(conv(state, f"{block}.stage2.0", shifted, padding=(0, 1, 1), groups=wide)).relu()
        x = F.instance_norm(conv(state, f"{block}.stage3.0", x, padding=(1, 0, 0), groups=wide)).relu()
        gate = conv(state, f"{block}.se.fc.0", F.adaptive_avg_pool3d(x, 1)).relu()
        x = x * conv(state, f"{block}.se.fc.2", gate).sigmoid()
        x = F.max_pool3d(F.instance_norm(conv(state, f"{block}.proj.0", x)), (1, 2, 2))
    rows = []
    for t in range(x.shape[2]):
        frame = conv2(state, "attention_head.attention_conv.0", x[:, :, t], padding=1).relu()
        scores = conv2(state, "attention_head.attention_conv.2", frame, padding=1).flatten(1).softmax(1)
        rows.append((x[:, :, t].flatten(2) * scores[:, None]).sum(-1))
    z = linear(state, "encoder_head", torch.stack(rows, 1))
    slope = torch.cat([torch.zeros_like(z[:, :1]), z[:, 1:] - z[:, :-1]], 1)
    y = torch.cat([z, slope], -1).transpose(1, 2)
    for index in range(4):
        layer = f"temporal_model.network.{index}"
        gated = []
        for name in ("conv_linear", "conv_gate"):
            size, way = (state[f"{layer}.{name}.parametrizations.weight.original{n}"] for n in (0, 1))
            weight = way * (size / way.flatten(1).norm(dim=1).view(-1, 1, 1))
            gated.append(
                F.conv1d(y, weight, state[f"{layer}.{name}.bias"], padding=2**index, dilation=2**index)
            )
        if index == 0:
            y = F.conv1d(y, state[f"{layer}.downsample.weight"], state[f"{layer}.downsample.bias"])
        y = (gated[0].tanh() * gated[1].sigmoid() + y).relu()
    y = F.conv1d(
        y, state["temporal_model.final_conv.weight"], state["temporal_model.final_conv.bias"]
    ).transpose(1, 2)
    y = _recurrent(state, _recurrent(state, y, 0), 1)
    return linear(state, "regressor_head.head.2", linear(state, "regressor_head.head.0", y).relu()).squeeze(
        -1
    )
