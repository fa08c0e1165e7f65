"""How much is trained: the paper's settings, or just enough to see that every cell runs.

Every network gets the same clips, the same number of them, the same batch and the same schedule; the size of
its pictures, the length of its clips and what its wave is trained to be are its own convention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import registry
from ..errors import UnknownNameError
from .plan import Model

if TYPE_CHECKING:
    from ..train.recipe import Recipe

CLIP_FRAMES = 128  # an epoch is the training recordings cut into clips of this length, for every network
_PLAIN = {
    "flip": 0.5, "shift": 0.0, "scale": [1.0, 1.0], "stretch": [1.0, 1.0], "gain": 0.0, "gamma": 0.0,
    "brightness": 0.0, "noise": 0.0,
}  # fmt: skip
_TINY_PHASENET = {
    "size": 32, "stem": 4, "stem_stride": 2, "channels": (6, 8), "pools": (2, 1), "expansion": 2,
    "asf_hidden": 4, "hidden": 8, "tcn_dilations": (1, 2, 4),
}  # fmt: skip
_TINY: dict[str, dict[str, Any]] = {
    "phasenet": _TINY_PHASENET,
    "phasenet-stream": _TINY_PHASENET,
    "physnet": {"size": 16},
    "deepphys": {"size": 16},
    "ts-can": {"size": 16},
    "efficientphys": {"size": 16},
    "physformer": {"size": 32, "width": 16, "hidden": 16, "depth": 1},
    "rhythmformer": {"size": 32, "width": 16, "depth": 1},
    "contrast-phys": {"size": 16, "places": 1},
    "physmamba": {"size": 16},
    "factorizephys": {"size": 71},
}
# All at the smallest side that RhythmFormer takes.
_SMALL: dict[str, dict[str, Any]] = {
    name: {"size": 32}
    for name in (
        "physnet", "deepphys", "ts-can", "efficientphys", "physformer", "rhythmformer", "contrast-phys",
        "physmamba", "phasenet-stream",
    )
} | {"phasenet": {"size": 32, "stem_stride": 2, "pools": (2, 1, 1)}}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """How cells are trained and tested."""

    name: str
    size: int  # of the stored crops; each network gets its own size from them
    frames: int  # of a training clip; 0: the network's own
    epochs: int
    clips_per_epoch: int  # 0: all of the training recordings, in clips
    batch: int
    lr: float
    window_s: float  # of the windowed evaluation
    workers: int = 0
    schedule: str = "constant"
    warmup_frames: int = 0
    clip_norm: float = 0.0
    validates: bool = True  # choose the best checkpoint by the validation subjects, where there are some
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    augment: Mapping[str, Any] = field(default_factory=lambda: dict(_PLAIN))
    rates: Mapping[str, float] = field(default_factory=dict)  # learning rates other than `lr`
    targets: Mapping[str, str] = field(default_factory=dict)  # other than the network's own
    # for worlds
    clips: int = 0  # per world
    seconds: float = 8.0
    tested: int = 0  # clips of the world that is left out; 0: all

    def recipe(self, model: Model, sources: Sequence[str], clips: Sequence[int], seed: int) -> Recipe:
        """The training run of a network on these domains, which hold so many clips each."""
        from ..train.recipe import from_dict

        module = registry.load("nn", model.name)
        loss = {"auxiliary": "none", "target": self.targets.get(model.name, module.TARGET)}
        if model.name == "phasenet":
            loss |= {"auxiliary": "latent", "weight": 0.1}
        if model.name == "contrast-phys":
            loss |= {"main": "contrast"}
        per_epoch = max(self.clips_per_epoch or sum(clips), self.batch)
        train = [{"prepared": s, "weight": float(n)} for s, n in zip(sources, clips, strict=True)]
        return from_dict(
            {
                "seed": seed,
                "network": {
                    "name": model.name,
                    **_plain({**self.options.get(model.name, {}), **model.options}),
                },
                "data": {
                    "train": train,
                    "frames": self.frames or module.FRAMES,
                    "clips_per_epoch": per_epoch,
                    "workers": self.workers,
                },
                "augment": dict(self.augment),
                "loss": {**loss, "warmup_frames": self.warmup_frames, **model.loss},
                "optimise": {
                    "epochs": self.epochs,
                    "batch": self.batch,
                    "lr": self.rates.get(model.name, self.lr),
                    "schedule": self.schedule,
                    "clip_norm": self.clip_norm,
                },
                "watch": {"log_every": 10, "save_every": 100, "validate_every": per_epoch // self.batch},
            },
            f"recipe of {model.name}",
        )


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has it, so that hashes and checkpoints agree."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}


_SMOKE = Budget(
    "smoke", size=32, frames=64, epochs=1, clips_per_epoch=2, batch=2, lr=1e-3, window_s=3.0, options=_TINY,
    clips=3, seconds=4.0,
)  # fmt: skip
# Short clips and small batches: many steps for little time, the same for everybody.
_STUDY = Budget(
    "paper", size=48, frames=80, epochs=1, clips_per_epoch=256, batch=2, lr=2e-3, window_s=8.0,
    schedule="cosine", warmup_frames=15, clip_norm=1.0, validates=False, options=_SMALL, clips=96,
    augment={}, tested=48,
    # Its authors' target. With that of the rPPG-Toolbox it had learnt nothing after so few clips.
    targets={"physnet": "wave"},
)  # fmt: skip
BUDGETS = {
    "smoke": _SMOKE,
    "paper": Budget(
        "paper", size=128, frames=0, epochs=15, clips_per_epoch=0, batch=4, lr=1e-4, window_s=10.0, workers=2
    ),
}  # fmt: skip


def budget_of(name: str, *, worlds: bool = False) -> Budget:
    """A budget by name; for the study of worlds the large one is what a core does in an hour."""
    if name not in BUDGETS:
        raise UnknownNameError("budget", name, BUDGETS)
    return _STUDY if worlds and name == "paper" else BUDGETS[name]
