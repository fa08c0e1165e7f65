"""Training settings of `phase reproduce`: those of the paper, or a short test of every cell.

All networks get the same clips, number of clips, batch size and schedule. Each network has its own image
size, clip length and training target. A model with the training "published" gets the loss, optimiser,
schedule, epochs and batch size of its authors instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import registry
from ..errors import UnknownNameError
from .plan import Model

if TYPE_CHECKING:
    from ..train.compute import Compute
    from ..train.recipe import Recipe

BALANCES = ("source", "clip")
CLIP_FRAMES = 128  # an epoch has one clip for each such number of frames of the training recordings
_FLIP_ONLY = {
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
    "phasenet-release": {"size": 16},
    "rhythmmamba": {"size": 16, "width": 16, "depth": 2},
    "bigsmall": {"size": 32},
    "me-rppg": {"size": 16},
}
# The smallest image size that RhythmFormer accepts.
_SMALL: dict[str, dict[str, Any]] = {
    name: {"size": 32}
    for name in (
        "physnet", "deepphys", "ts-can", "efficientphys", "physformer", "rhythmformer", "contrast-phys",
        "physmamba", "phasenet-stream",
    )
} | {"phasenet": {"size": 32, "stem_stride": 2, "pools": (2, 1, 1)}}  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """Where and how networks are trained and tested; the options of `phase reproduce`."""

    device: str = "cpu"
    precision: str = "fp32"
    channels_last: bool = False
    compiled: bool = False

    def compute(self) -> Compute:
        """Return the settings for torch."""
        from ..train.compute import Compute

        return Compute(self.device, self.precision, self.channels_last, self.compiled)


CPU = Machine()


@dataclass(frozen=True)
class Budget:
    """Settings for training and testing cells."""

    name: str
    size: int  # of the stored face images; they are resized for each network
    frames: int  # of a training clip; 0 means the network's own
    epochs: int
    clips_per_epoch: int  # 0 means one for each CLIP_FRAMES frames of the training recordings
    batch: int
    lr: float
    window_s: float  # window length of the windowed evaluation
    workers: int = 0
    schedule: str = "constant"
    warmup_frames: int = 0
    clip_norm: float = 0.0
    validates: bool = True  # select the best checkpoint on the validation subjects, if there are any
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    augment: Mapping[str, Any] = field(default_factory=lambda: dict(_FLIP_ONLY))
    rates: Mapping[str, float] = field(default_factory=dict)  # learning rates that differ from `lr`
    targets: Mapping[str, str] = field(default_factory=dict)  # that differ from the network's own
    # The following are for worlds.
    clips: int = 0  # per world
    seconds: float = 8.0
    test_clips: int = 0  # of the world that is left out; 0 means all

    def recipe(
        self,
        model: Model,
        sources: Sequence[str],
        clips: Sequence[int],
        seed: int,
        balance: str = "source",
    ) -> Recipe:
        """Return the recipe that trains a model on domains; `clips` is the number of clips of each.

        An epoch has the same number of clips of each source, or with the balance "clip" of each recording.
        """
        from ..train.recipe import from_dict

        module = registry.load("nn", model.name)
        loss = {"auxiliary": "none", "target": self.targets.get(model.name, module.TARGET)}
        if model.name == "phasenet":
            loss |= {"auxiliary": "latent", "weight": 0.1}
        if model.name == "contrast-phys":
            loss |= {"main": "contrast"}
        per_epoch = max(self.clips_per_epoch or sum(clips), self.batch)
        weights = [float(n) for n in clips] if check_balance(balance) == "clip" else [1.0] * len(clips)
        train = [{"prepared": s, "weight": w} for s, w in zip(sources, weights, strict=True)]
        recipe = from_dict(
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
        return recipe if model.training == "equal" else self._published(recipe, model, sum(clips))

    def _published(self, recipe: Recipe, model: Model, clips: int) -> Recipe:
        """Return the recipe with the published settings; a reduced budget keeps its sizes and epochs."""
        from ..train.published import with_published_training

        keep = [f"loss.{name}" for name in model.loss]
        keep += ["network.size"] if model.name in self.options else []
        keep += ["data.frames"] if self.frames else []
        keep += ["optimise.epochs", "optimise.batch"] if self.clips_per_epoch else []
        found = with_published_training(recipe, keep)
        batch, frames = found.optimise.batch, found.data.frames
        per_epoch = max(self.clips_per_epoch or clips * CLIP_FRAMES // frames, batch)
        return replace(
            found,
            data=replace(found.data, clips_per_epoch=per_epoch),
            watch=replace(found.watch, validate_every=max(1, per_epoch // batch)),
        )

    def selects(self, model: Model) -> bool:
        """Whether validation subjects, if there are any, select the checkpoint of a model."""
        if not self.validates or model.training == "equal":
            return self.validates
        return bool(registry.load("nn", model.name).TRAINING.selection == "validation")


def check_balance(balance: str) -> str:
    """Return the balance of several sources if it is known."""
    if balance not in BALANCES:
        raise UnknownNameError("balance", balance, BALANCES)
    return balance


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON stores them, so that hashes and checkpoints agree."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}


_SMOKE = Budget(
    "smoke", size=32, frames=64, epochs=1, clips_per_epoch=2, batch=2, lr=1e-3, window_s=3.0, options=_TINY,
    clips=3, seconds=4.0,
)  # fmt: skip
# Short clips and small batches give many steps in little time.
_STUDY = Budget(
    "paper", size=48, frames=80, epochs=1, clips_per_epoch=256, batch=2, lr=2e-3, window_s=8.0,
    schedule="cosine", warmup_frames=15, clip_norm=1.0, validates=False, options=_SMALL, clips=96,
    augment={}, test_clips=48,
    # The target of the original authors. With that of rPPG-Toolbox, 256 clips are too few to train PhysNet.
    targets={"physnet": "wave"},
)  # fmt: skip
BUDGETS = {
    "smoke": _SMOKE,
    "paper": Budget(
        "paper", size=128, frames=0, epochs=15, clips_per_epoch=0, batch=4, lr=1e-4, window_s=10.0, workers=2
    ),
}  # fmt: skip


def get_budget(name: str, *, worlds: bool = False) -> Budget:
    """Return a budget by name; for worlds, "paper" is smaller: about one hour per network on a CPU core."""
    if name not in BUDGETS:
        raise UnknownNameError("budget", name, BUDGETS)
    return _STUDY if worlds and name == "paper" else BUDGETS[name]
