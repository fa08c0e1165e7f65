"""Store training clips in shards, which are written atomically and read through memory maps.

OUT/clips.json              the settings of the job
OUT/shard-00000/pixels.npy  (n,T,S,S,3) u8
                waves.npy   (n,T) f32     blood volume, upstroke positive
                bpm.npy     (n,T) f32     instantaneous rate, 0 without a pulse
                masks.npy   (n,S,S) u8    perfused skin in the first frame, 0–255
                meta.json   written last: conditions and beats of each clip, checksums of the files
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import fileio
from ..errors import ArgumentError, InputError, OutputError
from ..types import ByteArray, FloatArray
from ..workers import LOCAL, Engine, map_in_order
from .sample import CLIP_FPS, Sample, sample
from .world import load

FORMAT = 1
GENERATOR = 10  # raised when the same seed gives other clips, so that versions are never mixed
SHARD_CLIPS = 64
_ARRAYS = ("pixels", "waves", "bpm", "masks")


@dataclass(frozen=True, slots=True)
class ClipJob:
    """The settings of a set of clips. Equal jobs give equal clips."""

    world: str
    seconds: float = 10.0
    size: int = 64
    seed: int = 0
    faces: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def make(self, index: int) -> Sample:
        """Render clip `index`."""
        faces = None if self.faces is None else Path(self.faces)
        return sample(
            load(self.world),
            self.seed,
            index,
            seconds=self.seconds,
            size=self.size,
            faces=faces,
            fixed=self.fixed,
        )


def write_clips(
    out: str | Path,
    job: ClipJob,
    n: int,
    *,
    workers: int | None = 1,
    engine: Engine = LOCAL,
    done: Callable[[int], None] | None = None,
) -> Clips:
    """Write clips 0 … n−1 to `out`; finished shards of an earlier, interrupted run are kept.

    `done` is called with the number of clips that were finished since the last call.
    """
    if n < 1:
        raise ArgumentError("n", n, "at least 1 clip")
    root = Path(out)
    recipe = hashlib.sha256(load(job.world).recipe.encode()).hexdigest()
    settings = {
        "format": FORMAT, "generator": GENERATOR, **asdict(job), "fixed": dict(job.fixed),
        "recipe_sha256": recipe,
    }  # fmt: skip
    settings_file = root / "clips.json"
    if settings_file.exists() and fileio.read_json(settings_file) != settings:
        raise OutputError(
            root, "it holds clips of other settings or of another version; choose an empty folder"
        )
    fileio.write_json(settings_file, settings)
    report = done or _ignore
    missing: list[tuple[int, int]] = []
    for shard, first in enumerate(range(0, n, SHARD_CLIPS)):
        count = min(SHARD_CLIPS, n - first)
        if _count(root / f"shard-{shard:05d}") >= count:
            report(count)
        else:
            missing.append((first, count))
    indices = [index for first, count in missing for index in range(first, first + count)]
    making = map_in_order(job.make, indices, workers, name="clip {}".format, engine=engine)
    with contextlib.closing(making) as samples:
        for first, count in missing:
            _write_shard(root / f"shard-{first // SHARD_CLIPS:05d}", job, first, count, samples, report)
    return Clips(root)


def _ignore(count: int) -> None:
    del count


def _count(folder: Path) -> int:
    return int(_read_meta(folder)["count"]) if (folder / "meta.json").is_file() else 0


def _read_meta(folder: Path) -> dict[str, Any]:
    """Read the description of a shard; a damaged one raises an InputError."""
    meta: Any = fileio.read_json(folder / "meta.json")
    try:
        whole = type(meta["count"]) is int and len(meta["clips"]) == meta["count"] >= 0
        whole = whole and all(isinstance(clip, dict) for clip in meta["clips"])
        whole = whole and 0 < meta["fps"] < 1e6 and isinstance(meta["sha256"], dict)
    except (KeyError, TypeError):
        whole = False
    if not whole:
        raise InputError(f"{folder / 'meta.json'}: is damaged; delete {folder} and run phase synth again")
    return dict(meta)


def _write_shard(
    folder: Path,
    job: ClipJob,
    first: int,
    count: int,
    samples: Iterator[Sample],
    report: Callable[[int], None],
) -> None:
    frames = round(job.seconds * CLIP_FPS)
    shapes: dict[str, tuple[tuple[int, ...], npt.DTypeLike]] = {
        "pixels": ((count, frames, job.size, job.size, 3), np.uint8),
        "waves": ((count, frames), np.float32),
        "bpm": ((count, frames), np.float32),
        "masks": ((count, job.size, job.size), np.uint8),
    }
    unfinished = folder.with_name(f".{folder.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        clips = []
        with contextlib.ExitStack() as stack:
            files = {
                name: stack.enter_context(_NpyWriter(unfinished / f"{name}.npy", *shape))
                for name, shape in shapes.items()
            }
            for _ in range(count):
                made = next(samples)
                truth = made.truth
                files["pixels"].append(made.pixels)
                files["waves"].append(truth.wave)
                files["bpm"].append(truth.bpm)
                files["masks"].append(np.rint(255 * np.clip(truth.mask, 0, 1)))
                clips.append(
                    {**truth.conditions, "beat_times_s": [round(float(t), 4) for t in truth.beat_times_s]}
                )
                report(1)
        meta = {
            "format": FORMAT, "first": first, "count": count, "fps": CLIP_FPS,
            "sha256": {name: fileio.sha256(unfinished / f"{name}.npy") for name in _ARRAYS}, "clips": clips,
        }  # fmt: skip
        fileio.write_text(unfinished / "meta.json", fileio.dump_json(meta, indent=None) + "\n")
        unfinished.replace(folder)
    except OSError as error:
        raise OutputError(folder, error.strerror or str(error)) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


class _NpyWriter:
    """Write an array row by row. A memory map would end the process when the disk is full."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
        self._file = open(path, "wb")  # noqa: SIM115 — closed by `__exit__`
        self._row_shape, self._dtype = shape[1:], np.dtype(dtype)
        header = {"shape": shape, "fortran_order": False, "descr": np.lib.format.dtype_to_descr(self._dtype)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def __enter__(self) -> _NpyWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, row: np.ndarray) -> None:
        values = np.ascontiguousarray(row, self._dtype)
        if values.shape != self._row_shape:
            raise ValueError(f"a row has the shape {values.shape}, not {self._row_shape}")
        self._file.write(values.data)


class Clips:
    """The clips of a folder. They are read through memory maps, which are opened on first use."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        if not (self.root / "clips.json").is_file():
            raise InputError(
                f"{root}: has no clips.json; make clips with: phase synth --out {root} --as clips"
            )
        self.job: dict[str, Any] = fileio.read_json(self.root / "clips.json")
        found = self.job.get("format") if isinstance(self.job, dict) else None
        if found != FORMAT:
            raise InputError(f"{root}: has clips of format {found}; this version reads format {FORMAT}")
        self._shards: list[tuple[Path, dict[str, Any]]] = []
        for folder in sorted(self.root.glob("shard-*")):
            if (folder / "meta.json").is_file():
                self._shards.append((folder, _read_meta(folder)))
        self._starts = np.cumsum([0, *(meta["count"] for _, meta in self._shards)])
        self._open: dict[int, dict[str, np.ndarray]] = {}

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": {}}  # another process opens its own maps

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        """Return (pixels (T,S,S,3) as a view of the file, wave (T,), fps, conditions) of one clip."""
        shard, row = self._find(index)
        arrays, meta = self._arrays(shard), self._shards[shard][1]
        conditions = {**meta["clips"][row], "mask": np.asarray(arrays["masks"][row], np.float32) / 255}
        return arrays["pixels"][row], np.asarray(arrays["waves"][row]), float(meta["fps"]), conditions

    def bpm(self, index: int) -> FloatArray:
        """Return the true instantaneous rate (T,)."""
        shard, row = self._find(index)
        return np.asarray(self._arrays(shard)["bpm"][row])

    def mask(self, index: int) -> FloatArray:
        """Return the perfused skin in the first frame, (S,S) in 0–1."""
        mask: FloatArray = self.clip(index)[3]["mask"]
        return mask

    def verify(self) -> None:
        """Compare every file with its checksum; raise an InputError for the first one that differs."""
        for folder, meta in self._shards:
            for name, wanted in meta["sha256"].items():
                if fileio.sha256(folder / f"{name}.npy") != wanted:
                    raise InputError(
                        f"{folder / name}.npy is damaged; delete {folder} and run phase synth again"
                    )

    def _find(self, index: int) -> tuple[int, int]:
        if not 0 <= index < len(self):
            raise ArgumentError("index", index, f"0 … {len(self) - 1}")
        shard = int(np.searchsorted(self._starts, index, side="right")) - 1
        return shard, index - int(self._starts[shard])

    def _arrays(self, shard: int) -> dict[str, np.ndarray]:
        if shard not in self._open:
            folder = self._shards[shard][0]
            try:
                self._open[shard] = {
                    name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
                    for name in _ARRAYS
                }
            except (OSError, ValueError) as error:
                raise InputError(
                    f"{folder}: cannot be read ({error}); delete it and run phase synth again"
                ) from error
        return self._open[shard]
