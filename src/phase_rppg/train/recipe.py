"""Recipes: TOML files that define a training run completely.

Keys are checked against the dataclasses below. An unknown key is refused, and the nearest one is named.
"""

from __future__ import annotations

import dataclasses
import difflib
import errno
import os
import re
import sys
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ..errors import InputError, RecipeError
from ..fileio import TomlError, parse_toml, read_toml

FOLDER = Path(__file__).parent.parent / "recipes"
# Of fields that are newer than some stored recipes: `to_dict` leaves them out if they have their default.
_LATER = {"later": True}
MAIN_LOSSES = ("pearson", "mse", "physformer", "rhythmformer", "contrast", "sinc")
OPTIMISERS = ("adamw", "adam")
SCHEDULES = ("constant", "cosine", "one-cycle")
T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """A source of clips: exactly one of `clips`, `world`, `prepared`."""

    clips: str = ""  # a folder made by `phase synth --as clips`
    world: str = ""  # a world of the generator
    prepared: str = ""  # a folder made by `phase prepare`
    weight: float = 1.0  # relative share of the clips of an epoch
    part: tuple[float, float] = (0.0, 1.0)  # range of the clips, or of the subjects if prepared
    count: int = 1000  # world: number of clips
    seconds: float = 10.0  # world: length of a clip
    size: int = 64  # world: side of a clip in pixels
    seed: int = 0  # world: seed of the random numbers
    faces: str = ""  # world: a folder of portraits instead of painted faces
    cache: str = ""  # world: keep the clips in this folder below OUT; empty: generate them again each time
    dataset: str = ""  # prepared: use the recordings of this data set only; empty: all

    def __post_init__(self) -> None:
        if sum(map(bool, (self.clips, self.world, self.prepared))) != 1:
            raise RecipeError("source", "needs exactly one of: clips, world, prepared")
        if not 0 <= self.part[0] < self.part[1] <= 1:
            raise RecipeError("source.part", f"got {list(self.part)}, accepted: [from, to] within 0–1")
        _positive("source", self, "weight", "count", "seconds", "size")

    def overlaps(self, other: Source) -> bool:
        """Whether both sources are parts of one prepared folder that have clips in common."""
        if not (self.prepared and self.prepared == other.prepared):
            return False
        if self.dataset and other.dataset and self.dataset != other.dataset:
            return False
        return self.part[0] < other.part[1] and other.part[0] < self.part[1]


@dataclass(frozen=True)
class Data:
    """The clips for training and for validation."""

    train: tuple[Source, ...]  # sources of the training clips
    validate: tuple[Source, ...] = ()  # sources of the clips that choose the best checkpoint
    # Subjects that are kept for testing. Training refuses to use them; it does not read their clips.
    test: tuple[Source, ...] = field(default=(), metadata=_LATER)
    frames: int = 128  # length of a training clip
    clips_per_epoch: int = 0  # 0: all clips
    validate_clips: int = 64  # largest number of clips in a validation
    workers: int = 1  # processes that load and augment clips; 0: the training process itself

    def __post_init__(self) -> None:
        _positive("data", self, "frames", "validate_clips")
        if not self.train:
            raise RecipeError("data.train", "needs at least one source")
        for table in ("train", "validate"):
            for used in getattr(self, table):
                if any(used.overlaps(tested) for tested in self.test):
                    raise RecipeError(
                        f"data.{table}", f"the part {list(used.part)} has subjects of data.test"
                    )


@dataclass(frozen=True)
class Augment:
    """Augmentation, a pure function of (seed, epoch, index). Zero disables each."""

    flip: float = 0.5  # probability of mirroring a clip
    shift: float = 0.06  # largest shift of the crop, as a share of its side
    scale: tuple[float, float] = (0.88, 1.06)  # range of the side of the crop, relative to the stored one
    stretch: tuple[float, float] = (0.8, 1.25)  # range of the time scale, which also scales the heart rate
    gain: float = 0.1  # standard deviation of the gain of each colour channel
    gamma: float = 0.15  # standard deviation of the logarithm of gamma
    brightness: float = 0.15  # standard deviation of the logarithm of brightness
    noise: float = 1.5  # largest standard deviation, in grey levels
    codec: float = 0.0  # probability of encoding a clip as H.264, before all other augmentation
    crf: tuple[float, float] = (18.0, 30.0)  # range of the constant rate factor: 0 best … 51 worst
    # Probability of resampling a clip so that a rate above 90 bpm is halved, or one below 75 bpm doubled
    octave: float = field(default=0.0, metadata=_LATER)

    def __post_init__(self) -> None:
        for name in ("scale", "stretch"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise RecipeError(f"augment.{name}", f"got {[low, high]}, accepted: [low, high] above 0")
        for name in ("flip", "codec", "octave"):
            if not 0 <= getattr(self, name) <= 1:
                raise RecipeError(f"augment.{name}", f"got {getattr(self, name)}, accepted: 0–1")
        if not 0 <= self.crf[0] <= self.crf[1] <= 51:
            raise RecipeError("augment.crf", f"got {list(self.crf)}, accepted: [low, high] within 0–51")


@dataclass(frozen=True)
class Loss:
    """The loss: main + λ · auxiliary."""

    # "pearson": negative Pearson correlation; "mse": squared error to the target of unit variance;
    # "physformer" and "rhythmformer": with the spectrum as a classifier of the rate; "contrast": for
    # contrast-phys only; "sinc": without references
    main: str = "pearson"
    labelled: float = 1.0  # share of the clips whose reference "contrast" uses; 0: unsupervised
    target: str = "wave"  # what the network predicts: the pulse, or "difference", its slope
    # "latent", "spectral", "oscillator" or "none"; for clips with a known skin mask also "skin" or "cover"
    auxiliary: str = "latent"
    weight: float = 0.1  # λ
    warmup_frames: int = 15  # frames at the start of a clip without loss: too few frames precede them

    def __post_init__(self) -> None:
        for name, choices in (("main", MAIN_LOSSES), ("target", ("wave", "difference"))):
            if getattr(self, name) not in choices:
                accepted = " or ".join(map(repr, choices))
                raise RecipeError(f"loss.{name}", f"got {getattr(self, name)!r}, accepted: {accepted}")
        if not 0 <= self.labelled <= 1:
            raise RecipeError("loss.labelled", f"got {self.labelled}, accepted: 0–1")


@dataclass(frozen=True)
class Optimise:
    """Settings of the optimiser."""

    epochs: int = 15  # passes over the clips
    batch: int = 4  # clips per step, over all processes
    micro: int = 0  # clips per forward pass, and so per BatchNorm batch; 0: all clips of a process
    lr: float = 1e-4  # learning rate
    # "cosine" falls to 1 % of lr; "one-cycle" rises from 4 % to lr and falls to almost 0, with the momentum
    # against it, as torch's OneCycleLR does
    schedule: str = "constant"
    warmup_steps: int = 0  # steps in which the learning rate rises from 0
    weight_decay: float = 0.0  # of AdamW
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    clip_norm: float = 0.0  # largest gradient norm; 0: no limit
    ema: float = 0.0  # decay of the running average of the weights; 0: none
    norm_momentum: float = 0.1  # momentum of the BatchNorm statistics, per step
    # "adam" adds the weight decay to the gradient, "adamw" to the weights
    optimiser: str = field(default="adamw", metadata=_LATER)

    def __post_init__(self) -> None:
        _positive("optimise", self, "epochs", "batch", "lr", "norm_momentum")
        for name, choices in (("schedule", SCHEDULES), ("optimiser", OPTIMISERS)):
            if getattr(self, name) not in choices:
                accepted = " or ".join(map(repr, choices))
                raise RecipeError(f"optimise.{name}", f"got {getattr(self, name)!r}, accepted: {accepted}")
        if self.micro and self.batch % self.micro:
            raise RecipeError("optimise.micro", f"{self.micro} does not divide the batch of {self.batch}")


@dataclass(frozen=True)
class Watch:
    """When to log, save, validate and stop, in steps."""

    log_every: int = 10  # steps between lines of log.csv
    save_every: int = 200  # steps between checkpoints
    validate_every: int = 200  # steps between validations
    patience: int = 0  # validations without improvement before training stops; 0: never stop early


@dataclass(frozen=True)
class Recipe:
    """One training run."""

    network: Mapping[str, Any]  # name and options of the network
    data: Data  # the clips
    augment: Augment = field(default_factory=Augment)  # changes of each clip
    loss: Loss = field(default_factory=Loss)  # what is minimised
    optimise: Optimise = field(default_factory=Optimise)  # how it is minimised
    watch: Watch = field(default_factory=Watch)  # when to log and save
    seed: int = 0  # of the random numbers
    delay_frames: int = 0  # the wave at frame t is the pulse at frame t − delay
    init: str = ""  # start from a checkpoint: a file, or the name of a bundled one

    def __post_init__(self) -> None:
        if not isinstance(self.network.get("name"), str):
            raise RecipeError("network", "needs a name, e.g. name = 'phasenet-stream'")
        if self.delay_frames < 0:
            raise RecipeError("delay_frames", f"got {self.delay_frames}, accepted: 0 or more")
        together = self.optimise.micro or self.optimise.batch
        if self.loss.main in ("contrast", "sinc") and together < 2:
            raise RecipeError(
                "loss.main", f"{self.loss.main!r} compares clips and needs 2 or more in a forward pass"
            )
        if self.data.frames <= max(self.loss.warmup_frames, self.delay_frames) + 30:
            raise RecipeError("data.frames", f"{self.data.frames} leaves less than a second for the loss")

    def network_options(self) -> tuple[str, dict[str, Any]]:
        """Return the arguments of `nn.build`: the name of the network and its options."""
        options = dict(self.network)
        return options.pop("name"), options

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that can be written as JSON."""
        plain: dict[str, Any] = dataclasses.asdict(self)
        _drop_defaults(self, plain)
        return plain


def _drop_defaults(owner: Any, plain: dict[str, Any]) -> None:
    """Remove the later fields with their default values from the plain values of a dataclass."""
    for item in dataclasses.fields(owner):
        value = getattr(owner, item.name)
        if item.metadata == _LATER and value == item.default:
            del plain[item.name]
        elif dataclasses.is_dataclass(value):
            _drop_defaults(value, plain[item.name])


@dataclass(frozen=True)
class Stage:
    """One stage of a recipe file; it starts from the weights of the stage before."""

    name: str
    recipe: Recipe


def load_stages(name: str | Path, settings: Sequence[str] = ()) -> list[Stage]:
    """Read a recipe file, or a bundled recipe by its name; settings are "key=value".

    Every `[[stage]]` of the file has a name and the values in which it differs from the rest of the file. A
    file without stages is one stage.
    """
    path = Path(name)
    if not path.is_file() and (FOLDER / f"{name}.toml").is_file():
        path = FOLDER / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.toml")))
        raise RecipeError(str(name), f"{os.strerror(errno.ENOENT)}; bundled recipes: {known}")
    try:
        values = read_toml(path)
    except TomlError as error:
        raise RecipeError(str(path), str(error).removeprefix(f"{path}: ")) from error
    for setting in settings:
        _set(values, setting)
    return stages_from_dict(values, str(path))


def stages_from_dict(values: Mapping[str, Any], where: str = "recipe") -> list[Stage]:
    """Return the stages of a recipe file from its plain values."""
    common = {key: value for key, value in values.items() if key != "stage"}
    if "stage" not in values:
        return [Stage(Path(where).stem, from_dict(common, where))]
    tables = values["stage"]
    if not (isinstance(tables, list) and tables and all(isinstance(table, Mapping) for table in tables)):
        raise RecipeError(where, f"stage: got {tables!r}, accepted: tables [[stage]]")
    stages: list[Stage] = []
    for number, table in enumerate(tables, 1):
        name = table.get("name")
        if not (isinstance(name, str) and re.fullmatch(r"[\w-]+", name)):
            raise RecipeError(
                where, f"stage {number}: got the name {name!r}, accepted: letters, digits, -, _"
            )
        if name in {stage.name for stage in stages}:
            raise RecipeError(where, f"stage {number}: the name {name!r} is used twice")
        if "init" in table and stages:
            raise RecipeError(where, f"stage {name}: init is accepted in the first stage only")
        merged = _merge(common, {key: value for key, value in table.items() if key != "name"})
        if stages:
            merged.pop("init", None)
        stages.append(Stage(name, from_dict(merged, f"{where}: stage {name}")))
    return stages


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with some values replaced; tables are merged, lists are replaced."""
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        merged[key] = _merge(base[key], value) if both else value
    return merged


def from_dict(values: Mapping[str, Any], where: str = "recipe") -> Recipe:
    """Return a recipe from plain values, which are checked."""
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
        if abs(value) <= sys.float_info.max:  # False for NaN and infinity, and for integers beyond it
            return float(value)
        raise RecipeError(where, "accepted: a finite number")
    if isinstance(kind, type) and isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise RecipeError(where, f"got {value!r}, accepted: {getattr(kind, '__name__', kind)}")


def _set(values: dict[str, Any], setting: str) -> None:
    """Apply "a.b.0.c=value"; the value is read as TOML, or else as text."""
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise RecipeError("--set", f"got {setting!r}, accepted: key=value, e.g. optimise.lr=3e-4")
    try:
        value = parse_toml(f"value = {text}", "--set")["value"]
    except InputError:
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
