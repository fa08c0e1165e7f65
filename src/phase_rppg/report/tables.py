"""Results of many videos as Parquet tables: `videos`, `faces`, `windows`, and on request `beats` and `waves`.

    ROOT/videos/method=phasenet-stream/part-0f….parquet
    ROOT/faces/method=phasenet-stream/part-0f….parquet
    ROOT/windows/…

A part holds the rows of several videos and has the same name in each table. The file in `videos` is written
last: a part without it does not count and is removed by the next run. So a video is in all tables or in none,
also after the writer was killed. ROOT is a folder or an address of an object store. One program writes to it
at a time.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from .. import guarded
from ..errors import InputError, OutputError, require
from ..fileio import read_bytes, write_bytes, writing
from ..measurement import object_store
from ..measurement.batch import FaceChoice, VideoInput
from ..measurement.measure import MeasureOptions, run
from ..session.results import Result
from ..workers import WorkerDied
from .document import document
from .folder import content_hash, settings

VIDEOS = "videos"  # the table that is written last
PART_VIDEOS = 64  # a part is written when it has so many videos, …
PART_ROWS = 200_000  # … so many rows, …
MAX_ROWS = 10_000  # of the videos in a part that is read
PART_S = 60.0  # … or when its first video has waited so long

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its Arrow type, and what it holds."""

    name: str
    type: str
    about: str


_VIDEO = (
    Column("video", "string", "name or address of the video, as it was given"),
    Column("key", "string", "SHA-256 of content, options and version; joins the tables with `video`"),
)
_FACE = (*_VIDEO, Column("face", "int32", "number of the face in the video"))
_RATE = (
    Column("bpm", "double", "heart rate in beats per minute; null without a reading"),
    Column("low", "double", "lower end of the interval of the rate"),
    Column("high", "double", "upper end of the interval of the rate"),
    Column("p_ok", "double", "probability that the rate is within 5 bpm of the truth"),
    Column("p_alive", "double", "probability that a living pulse causes the spectral peak"),
    Column("reason", "string", "why there is no reading; null with a reading"),
)
TABLES: dict[str, tuple[Column, ...]] = {
    VIDEOS: (
        *_VIDEO,
        Column("sha256", "string", "SHA-256 of the content"),
        Column("fingerprint", "string", "tag and size in the object store; empty for a file"),
        Column("settings", "string", "SHA-256 of options and version"),
        Column("options", "string", "options of the measurement as JSON"),
        Column("software", "string", "program and version"),
        Column("duration_s", "double", "length of the video in seconds; null after an error"),
        Column("faces", "int32", "number of faces that were measured"),
        Column("readings", "int32", "number of faces with a heart rate"),
        Column("reason", "string", "why no face was measured"),
        Column("error", "string", "why the video could not be measured"),
        Column("warnings", "list<string>", "warnings about the video"),
    ),
    "faces": (
        *_FACE,
        Column("position", "string", "place of the face in the picture"),
        *_RATE,
        Column("range_low", "double", "lowest rate over time"),
        Column("range_high", "double", "highest rate over time"),
        Column("probable_bpm", "double", "likely rate of a face without a reading"),
        Column("beats", "int32", "number of beats behind the variability"),
        Column("rmssd_ms", "double", "RMSSD in milliseconds; null if it is not reliable"),
        Column("sdnn_ms", "double", "SDNN in milliseconds; null if it is not reliable"),
        Column("breaths_per_minute", "double", "respiration rate; null if it is not reliable"),
    ),
    "windows": (
        *_FACE,
        Column("start_s", "double", "start of the window in seconds"),
        Column("end_s", "double", "end of the window in seconds"),
        *_RATE,
        Column("snr_db", "double", "signal-to-noise ratio of the spectral peak"),
    ),
    "beats": (
        *_FACE,
        Column("time_s", "double", "time of the beat in seconds"),
        Column("ibi_s", "double", "interval to the previous beat in seconds; null for the first"),
    ),
    "waves": (
        *_FACE,
        Column("fps", "double", "samples per second"),
        Column("start_s", "double", "time of the first sample in seconds"),
        Column("values", "list<float>", "pulse waveform; null where it is not valid"),
    ),
}


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier run stored about a video."""

    key: str
    fingerprint: str
    settings: str
    readings: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Measured:
    """The rows of one video by table; none if an earlier run stored them (`known`)."""

    rows: Mapping[str, list[Row]] = field(default_factory=dict)
    known: Known | None = None


@dataclass(frozen=True, slots=True)
class TableJob:
    """Measure one video and return its rows; it is sent to the worker."""

    options: MeasureOptions
    face: FaceChoice
    full: bool = False

    def __call__(self, video: VideoInput, stored: tuple[Known, ...]) -> Measured:
        chosen = settings(self.options, self.face)
        digest = _digest(chosen)
        candidates = [known for known in stored if known.settings == digest]
        mark = object_store.fingerprint(video)
        for known in candidates:
            if mark and known.fingerprint == mark:
                return Measured(known=known)  # the object is not fetched
        with object_store.fetched(video) as local:
            sha256 = content_hash(local.path)
            key = _digest({"sha256": sha256, "settings": digest})
            for known in candidates:
                if known.key == key:
                    return Measured(known=known)
            about = {
                "video": video.name, "key": key, "sha256": sha256, "fingerprint": mark, "settings": digest,
                "options": json.dumps(chosen["options"], sort_keys=True), "software": chosen["software"],
            }  # fmt: skip
            try:
                result = self.face.apply(run(local.path, self.options))
            except (WorkerDied, OutputError):
                raise  # not a property of the video: a repeated command tries again
            except InputError as error:
                return Measured({VIDEOS: [about | {"error": problem_of(error), "faces": 0, "readings": 0}]})
            return Measured(rows_of(result, about, full=self.full))


def problem_of(error: Exception) -> str:
    """Return what is wrong without the name of the video, so that equal problems can be counted."""
    return str(getattr(error, "problem", error))


def rows_of(result: Result, about: Row, *, full: bool) -> dict[str, list[Row]]:
    """Return the rows of a result by table; `about` holds the columns of the video that are known before."""
    found = document(result, full=full)
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    readings = 0
    for face in found["faces"]:
        place = {"video": about["video"], "key": about["key"], "face": face["id"]}
        rows["faces"].append(place | {"position": face["position"]} | (face["hrv"] or {}) | face["summary"])
        rows["windows"] += [place | window for window in face["windows"]]
        rows["beats"] += [place | beat for beat in face.get("beats", ())]
        if "wave" in face:
            rows["waves"].append(place | face["wave"])
        readings += face["summary"]["bpm"] is not None
    rows[VIDEOS] = [
        about
        | {"duration_s": found["duration_s"], "faces": len(found["faces"]), "readings": readings}
        | {"reason": found.get("reason"), "warnings": found["warnings"]}
    ]
    return rows


class Files(Protocol):
    """The files below a root: a folder, or a part of an object store."""

    def names(self, pattern: str) -> list[str]: ...
    def read(self, name: str) -> bytes: ...
    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """A folder; files are written atomically."""

    root: Path

    def names(self, pattern: str) -> list[str]:
        """Return the files inside the folder; the hidden file of an unfinished write is none of them."""
        inside = self.root.resolve()
        files = (file for file in self.root.glob(pattern) if not file.name.startswith("."))
        return sorted(
            file.relative_to(self.root).as_posix() for file in files if file.resolve().is_relative_to(inside)
        )

    def read(self, name: str) -> bytes:
        return read_bytes(self.root / name, "json_mb")

    def write(self, name: str, data: bytes) -> None:
        write_bytes(self.root / name, data)

    def remove(self, name: str) -> None:
        with writing(self.root / name):
            (self.root / name).unlink(missing_ok=True)


class ObjectFiles:
    """A part of an object store, which replaces objects atomically."""

    def __init__(self, address: str) -> None:
        self._system, root = object_store.open_system(address)
        self._root = root.rstrip("/")

    def names(self, pattern: str) -> list[str]:
        self._system.invalidate_cache()
        found = object_store.ask(self._root, lambda: self._system.glob(f"{self._root}/{pattern}"))
        return sorted(str(path).removeprefix(self._root).lstrip("/") for path in found)

    def read(self, name: str) -> bytes:
        data: bytes = object_store.ask(name, lambda: self._system.cat_file(f"{self._root}/{name}"))
        return data

    def write(self, name: str, data: bytes) -> None:
        try:
            self._system.pipe_file(f"{self._root}/{name}", data)
        except Exception as error:  # stores raise errors of many types
            raise OutputError(f"{self._root}/{name}", f"{type(error).__name__}: {error}") from None

    def remove(self, name: str) -> None:
        object_store.ask(name, lambda: self._system.rm_file(f"{self._root}/{name}"))


def open_files(root: str) -> Files:
    """Return the files below a folder or an address."""
    path = object_store.local_path(root) if object_store.scheme_of(root) else root
    return ObjectFiles(root) if path is None else LocalFiles(Path(path))


class TableStore:
    """The tables below a root: what is stored, and writing of new parts."""

    def __init__(self, root: str, method: str) -> None:
        require("pyarrow")
        self.root, self._files = root, open_files(root)
        name = Path(method).stem if Path(method).suffix in (".json", ".onnx") else method
        self._partition = f"method={quote(name, safe='')}"
        self._waiting: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._since_s = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether no table has a part."""
        return not any(self._files.names(f"{table}/*/*.parquet") for table in TABLES)

    def clear(self) -> None:
        """Remove all parts, those of the videos first."""
        for table in TABLES:
            for name in self._files.names(f"{table}/*/*.parquet"):
                self._files.remove(name)

    def remove_incomplete(self) -> None:
        """Remove the files of parts whose writer was killed before it wrote the videos."""
        complete = {name.partition("/")[2] for name in self._files.names(f"{VIDEOS}/*/*.parquet")}
        for table in TABLES:
            for name in self._files.names(f"{table}/*/*.parquet"):
                if name.partition("/")[2] not in complete:
                    self._files.remove(name)

    def known(self) -> dict[str, tuple[Known, ...]]:
        """Return what is stored about each video, by its name."""
        found: dict[str, tuple[Known, ...]] = {}
        for name in self._files.names(f"{VIDEOS}/*/*.parquet"):
            try:
                data = np.frombuffer(self._files.read(name), np.uint8)
                rows = guarded.call(read_known, data)
            except (guarded.GuardError, guarded.ParserError) as error:
                problem = error.kind if isinstance(error, guarded.ParserError) else error
                raise InputError(
                    f"{self.root}/{name}: cannot be read ({problem}); remove this file"
                ) from None
            for video, *values in rows:
                found[video] = (*found.get(video, ()), Known(*values))
        return found

    def add(self, rows: Mapping[str, list[Row]]) -> None:
        """Take the rows of one video; write a part if there are enough or the first has waited long."""
        if not self._waiting[VIDEOS]:
            self._since_s = time.monotonic()
        for name, some in rows.items():
            self._waiting[name] += some
        full = len(self._waiting[VIDEOS]) >= PART_VIDEOS
        many = sum(map(len, self._waiting.values())) >= PART_ROWS
        if full or many or time.monotonic() - self._since_s >= PART_S:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait as one part."""
        if not self._waiting[VIDEOS]:
            return
        names = sorted((row["video"], row["key"]) for row in self._waiting[VIDEOS])
        part = f"{self._partition}/part-{_digest(names)[:20]}.parquet"
        for table in (*(name for name in TABLES if name != VIDEOS), VIDEOS):
            if self._waiting[table]:
                self._files.write(f"{table}/{part}", parquet(table, self._waiting[table]))
        self._waiting = {name: [] for name in TABLES}


def read_known(data: npt.NDArray[np.uint8]) -> list[list[Any]]:
    """Return the name and the values of `Known` of each video in a part; this runs in the guarded process."""
    import pyarrow.parquet as pq

    names = ["video", *(each.name for each in fields(Known))]
    file = pq.ParquetFile(io.BytesIO(data.tobytes()))
    if file.metadata.num_rows > MAX_ROWS:
        raise ValueError("too many rows")
    rows = [[row[name] for name in names] for row in file.read(columns=names).to_pylist()]
    for video, key, fingerprint, digest, readings, error in rows:
        texts = (video, key, fingerprint, digest, error or "")
        if not all(isinstance(text, str) for text in texts) or not isinstance(readings, int):
            raise TypeError("a value has the wrong type")
    return rows


def schema(table: str) -> Any:
    """Return the Arrow schema of a table."""
    import pyarrow as pa

    types = {
        "string": pa.string(), "double": pa.float64(), "int32": pa.int32(),
        "list<string>": pa.list_(pa.string()), "list<float>": pa.list_(pa.float32()),
    }  # fmt: skip
    columns = TABLES[table]
    described = [pa.field(each.name, types[each.type], metadata={"about": each.about}) for each in columns]
    return pa.schema(described)


def parquet(table: str, rows: Iterable[Row]) -> bytes:
    """Return rows as a Parquet file; keys that are not columns are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [each.name for each in TABLES[table]]
    made = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows], schema(table))
    file = io.BytesIO()
    pq.write_table(made, file, compression="zstd")
    return file.getvalue()


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
