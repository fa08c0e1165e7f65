"""Recipes: short commented TOML files that say everything about a training run.

Keys are checked against the dataclasses below; an unknown one is refused with the nearest name.
"""

from __future__ import annotations

import dataclasses
import difflib
import sys
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ..errors import RecipeError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent.parent / "recipes"
T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """Where clips come from: exactly one of `clips`, `world`, `prepared`."""

    clips: str = ""  # a folder made by `phase synth --as clips`
    world: str = ""  # a world of the generator
    prepared: str = ""  # a folder made by `phase prepare`
    weight: float = 1.0  # share of the clips of an epoch
    part: tuple[float, float] = (0.0, 1.0)  # of the clips (or of the subjects, if prepared), in order
    # for a world
    count: int = 1000  # clips
    seconds: float = 10.0
    size: int = 64
    seed: int = 0
    faces: str = ""  # a folder of portraits instead of painted faces
    cache: str = ""  # make the clips once and keep them here; empty: make them anew each time
    # for a prepared data set
    dataset: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.clips, self.world, self.prepared))) != 1:
            raise RecipeError("source", "needs exactly one of: clips, world, prepared")
        if not 0 <= self.part[0] < self.part[1] <= 1:
            raise RecipeError("source.part", f"got {list(self.part)}, accepted: [from, to] within 0–1")
        _positive("source", self, "weight", "count", "seconds", "size")


@dataclass(frozen=True)
class Data:
    """Which clips are learnt from, and which ones tell how well."""

    train: tuple[Source, ...]
    validate: tuple[Source, ...] = ()
    frames: int = 128  # of a training clip
    clips_per_epoch: int = 0  # 0: as many as there are
    validate_clips: int = 64  # at most
    workers: int = 1  # processes that load and augment; 0: the training process itself

    def __post_init__(self) -> None:
        _positive("data", self, "frames", "validate_clips")
        if not self.train:
            raise RecipeError("data.train", "needs at least one source")


@dataclass(frozen=True)
class Augment:
    """How clips are varied; each is a pure function of (seed, epoch, index). Zero switches one off."""

    flip: float = 0.5  # probability
    shift: float = 0.06  # of the crop, as a share of its side
    scale: tuple[float, float] = (0.88, 1.06)  # side of the crop relative to the stored one
    stretch: tuple[float, float] = (0.8, 1.25)  # of time: changes the rate and its label together
    gain: float = 0.1  # spread of each colour's gain
    gamma: float = 0.15  # spread of the logarithm of gamma
    brightness: float = 0.15  # spread of the logarithm of brightness
    noise: float = 1.5  # largest standard deviation, in grey levels
    codec: float = 0.0  # probability that a clip is stored once more as H.264, before all else
    crf: tuple[float, float] = (18.0, 30.0)  # at a quality of this range: 0 best … 51 worst

    def __post_init__(self) -> None:
        for name in ("scale", "stretch"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise RecipeError(f"augment.{name}", f"got {[low, high]}, accepted: [low, high] above 0")
        for name in ("flip", "codec"):
            if not 0 <= getattr(self, name) <= 1:
                raise RecipeError(f"augment.{name}", f"got {getattr(self, name)}, accepted: 0–1")
        if not 0 <= self.crf[0] <= self.crf[1] <= 51:
            raise RecipeError("augment.crf", f"got {list(self.crf)}, accepted: [low, high] within 0–51")


@dataclass(frozen=True)
class Loss:
    """What is minimised: main + λ · auxiliary."""

    main: str = "pearson"  # negative Pearson; or "contrast" (Contrast-Phys+), for the network contrast-phys
    labelled: float = 1.0  # share of the clips whose reference "contrast" may see; 0: none, unsupervised
    target: str = "wave"  # what the network's wave shall be: the pulse, or "difference", its slope
    # "latent", "spectral", "oscillator", "none"; where the generator knows the skin, "skin" or "cover"
    auxiliary: str = "latent"
    weight: float = 0.1  # λ
    warmup_frames: int = 15  # at the start of a clip that are not judged: the network has seen too little

    def __post_init__(self) -> None:
        for name, choices in (("main", ("pearson", "contrast")), ("target", ("wave", "difference"))):
            if getattr(self, name) not in choices:
                accepted = " or ".join(map(repr, choices))
                raise RecipeError(f"loss.{name}", f"got {getattr(self, name)!r}, accepted: {accepted}")
        if not 0 <= self.labelled <= 1:
            raise RecipeError("loss.labelled", f"got {self.labelled}, accepted: 0–1")


@dataclass(frozen=True)
class Optimise:
    """How the weights are changed."""

    epochs: int = 15
    batch: int = 4  # clips per step, over all processes
    micro: int = 0  # clips per forward pass (BatchNorm sees these together); 0: the whole share of a process
    lr: float = 1e-4
    schedule: str = "constant"  # or "cosine", to a hundredth
    warmup_steps: int = 0
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    clip_norm: float = 0.0  # largest gradient norm; 0: any
    ema: float = 0.0  # decay of the running average of the weights; 0: none
    norm_momentum: float = 0.1  # of BatchNorm's statistics, per step

    def __post_init__(self) -> None:
        _positive("optimise", self, "epochs", "batch", "lr", "norm_momentum")
        if self.schedule not in ("constant", "cosine"):
            raise RecipeError("optimise.schedule", f"got {self.schedule!r}, accepted: 'constant', 'cosine'")
        if self.micro and self.batch % self.micro:
            raise RecipeError("optimise.micro", f"{self.micro} does not divide the batch of {self.batch}")


@dataclass(frozen=True)
class Watch:
    """When to look, save and stop. In steps."""

    log_every: int = 10
    save_every: int = 200
    validate_every: int = 200
    patience: int = 0  # stop after so many validations without improvement; 0: never


@dataclass(frozen=True)
class Recipe:
    """A whole training run."""

    network: Mapping[str, Any]  # name, and any option of that network
    data: Data
    augment: Augment = field(default_factory=Augment)
    loss: Loss = field(default_factory=Loss)
    optimise: Optimise = field(default_factory=Optimise)
    watch: Watch = field(default_factory=Watch)
    seed: int = 0
    delay_frames: int = 0  # the network answers for the picture so many frames ago
    init: str = ""  # start from a checkpoint, an exported network, or one that comes along
    after: str = ""  # or a recipe that is trained first, and from whose weights this one goes on

    def __post_init__(self) -> None:
        if self.init and self.after:
            raise RecipeError("init, after", "got both, accepted: a checkpoint, or a recipe that makes one")
        if not isinstance(self.network.get("name"), str):
            raise RecipeError("network", "needs a name, e.g. name = 'phasenet-stream'")
        if self.delay_frames < 0:
            raise RecipeError("delay_frames", f"got {self.delay_frames}, accepted: 0 or more")
        together = self.optimise.micro or self.optimise.batch
        if self.loss.main == "contrast" and together < 2:
            raise RecipeError("loss.main", "'contrast' compares clips: needs 2 or more in a forward pass")
        if self.data.frames <= max(self.loss.warmup_frames, self.delay_frames) + 30:
            raise RecipeError("data.frames", f"{self.data.frames} leaves less than a second to judge")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        plain: dict[str, Any] = dataclasses.asdict(self)
        return plain


def load(name: str | Path, settings: Sequence[str] = ()) -> Recipe:
    """Read a recipe: a file, or the name of one that comes with the package; settings are "key=value"."""
    path = Path(name)
    if not path.is_file() and (FOLDER / f"{name}.toml").is_file():
        path = FOLDER / f"{name}.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.toml")))
        raise RecipeError(
            str(name), f"{error.strerror or error}; recipes that come along: {known}"
        ) from error
    except ValueError as error:
        raise RecipeError(str(path), f"not valid TOML ({error})") from error
    for setting in settings:
        _set(values, setting)
    return from_dict(values, str(path))


def from_dict(values: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Check plain values and make them a recipe."""
    return _make(Recipe, values, where)


def _make(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    hints = typing.get_type_hints(cls)
    for key in values:
        if key not in hints:
            near = difflib.get_close_matches(key, hints, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise RecipeError(where, f"unknown key {key!r}: {hint}accepted: {', '.join(sorted(hints))}")
    given = {key: _value(hints[key], value, f"{where}: {key}") for key, value in values.items()}
    for item in dataclasses.fields(cls):  # type: ignore[arg-type]
        missing = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if missing and item.name not in given:
            raise RecipeError(where, f"the key {item.name!r} is missing")
    return cls(**given)


def _value(kind: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        return _make(typing.cast("type[Any]", kind), value, where)
    if origin is tuple and isinstance(value, (list, tuple)):
        if arguments[-1] is Ellipsis:
            return tuple(_value(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(value) == len(arguments):
            return tuple(_value(each, item, where) for each, item in zip(arguments, value, strict=True))
    if origin is not None and origin is not tuple and isinstance(value, Mapping):
        return dict(value)
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise RecipeError(where, f"got {value!r}, accepted: {getattr(kind, '__name__', kind)}")


def _set(values: dict[str, Any], setting: str) -> None:
    """Apply "a.b.0.c=value"; the value is read as TOML, or else as text."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise RecipeError("--set", f"got {setting!r}, accepted: key=value, e.g. optimise.lr=3e-4")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        value = text
    *parents, last = key.strip().split(".")
    place: Any = values
    for step, name in enumerate(parents):
        try:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        except (ValueError, IndexError) as error:
            raise RecipeError("--set", f"{'.'.join(parents[: step + 1])}: no such entry") from error
    if isinstance(place, list):
        if not last.isdigit() or int(last) >= len(place):
            raise RecipeError("--set", f"{key}: no such entry")
        place[int(last)] = value
    elif isinstance(place, dict):
        place[last] = value
    else:
        raise RecipeError("--set", f"{key}: {parents[-1]} is a value, not a table")


def _positive(where: str, owner: object, *names: str) -> None:
    for name in names:
        if not getattr(owner, name) > 0:
            raise RecipeError(f"{where}.{name}", f"got {getattr(owner, name)}, accepted: above 0")
