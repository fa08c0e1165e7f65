"""Read the recordings of a data set; recordings that cannot be used are reported with the reason.

A data set is one file in this folder with

    NAME                      the name on the command line
    LAYOUT                    the expected files and folders, for error messages
    find(root)                the recordings in the folder; it reads no file
    read_reference(found)     the contact PPG on the clock of the video (the first frame is at 0 s)

and, where the default does not fit,

    open_video(found)         the frames; by default `found.video` is a video file
    read_conditions(found)    light, motion … that are stored inside the files; by default none
    SPLITS                    named splits of the literature, see `splits.py`; by default `splits.DEFAULT`
    WRITER                    the module of `synth/writers` that writes this layout; by default NAME
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .. import limits, registry
from ..errors import DatasetLayoutError, InputError, PhaseError, RecordingError, VideoError
from ..fileio import check_regular, read_text
from ..picture import AnyFrame, decoded_frames, with_time
from ..signal import resample
from ..signal.constants import MAX_GAP_S
from ..types import FloatArray, Frame, FrameSource, Recording, Waveform
from ..workers import WorkerDied

if TYPE_CHECKING:
    from ..video.decode import VideoFile

MAX_STRETCH, MIN_STRETCHED = (
    100,
    10_000,
)  # of samples, by the uniform clock; more are mostly gaps
MIN_REFERENCE_S = 2.0
MIN_REFERENCE_HZ = 8.0  # a lower rate does not sample the upper end of the pulse band

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a recording. They are not checked yet: a file may be missing or damaged."""

    subject: str
    name: str  # unique within the data set
    video: Path  # a file, or a folder of pictures
    reference: Path
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The samples of a contact PPG on the clock of the video."""

    t_s: FloatArray  # (N,) may be irregular and repeat, must not decrease
    values: FloatArray  # (N,)


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """The usable recordings of a data set, and the errors of the others."""

    recordings: tuple[Recording, ...]
    problems: tuple[RecordingError, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RetimedVideo:
    """A video with frame times from another source, for containers that state only a mean rate."""

    source: FrameSource
    times_s: FloatArray  # (T,)
    name: str

    def frames(self) -> Iterator[Frame]:
        for frame in self._retimed(self.source.frames()):
            yield Frame(frame.rgb, frame.t_s)

    def frames_without_copy(self) -> Iterator[AnyFrame]:
        return self._retimed(decoded_frames(self.source))

    def _retimed(self, frames: Iterator[AnyFrame]) -> Iterator[AnyFrame]:
        for index, frame in enumerate(frames):
            if index == len(self.times_s):
                raise RecordingError(
                    self.name, f"the video has more frames than the {index} known timestamps"
                )
            yield with_time(frame, float(self.times_s[index]))


@dataclass(frozen=True, slots=True, eq=False)
class CompleteVideo:
    """A video that must be complete: a decoding error excludes the recording from the data set."""

    source: FrameSource
    name: str

    def frames(self) -> Iterator[Frame]:
        with self._refusing():
            yield from self.source.frames()

    def frames_without_copy(self) -> Iterator[AnyFrame]:
        with self._refusing():
            yield from decoded_frames(self.source)

    @contextlib.contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except VideoError as error:
            raise RecordingError(self.name, f"the video cannot be used: it {error.problem}") from error


def load(
    name: str, root: str | Path, *, on_problem: Callable[[RecordingError], None] | None = None
) -> list[Recording]:
    """Return the usable recordings of a data set, sorted by subject.

    `on_problem` is called for each of the others; without it they are logged.
    """
    found = survey(name, root)
    for problem in found.problems:
        if on_problem is None:
            log.warning("excluded: %s", problem)
        else:
            on_problem(problem)
    if not found.recordings:
        raise no_usable_recording(root, found.problems)
    return list(found.recordings)


def survey(name: str, root: str | Path) -> Survey:
    """Read every reference and open every video of a data set, and collect the errors."""
    module = registry.load("datasets", name)
    recordings: list[Recording] = []
    problems: list[RecordingError] = []
    for found in find(name, root):
        try:
            recordings.append(read(module, found))
        except RecordingError as error:
            problems.append(error)
    return Survey(tuple(recordings), tuple(problems))


def find(name: str, root: str | Path, *, allow_outside: bool = False) -> list[Found]:
    """Return the recordings of a data set in natural order of subject and name.

    A folder without recordings, or with two of the same name, raises a DatasetLayoutError. A file outside
    the folder (an absolute path, "..", a symbolic link) raises an InputError unless `allow_outside` is set.
    """
    module = registry.load("datasets", name)
    root = Path(root)
    if not root.is_dir():
        raise DatasetLayoutError(root, module.LAYOUT, ["no such folder" if not root.exists() else "a file"])
    found = sorted(module.find(root), key=lambda f: (natural_key(f.subject), natural_key(f.name)))
    if not found:
        raise DatasetLayoutError(root, module.LAYOUT, listing(root))
    if not allow_outside:
        _refuse_outside(root, found)
    counts = Counter(f.name for f in found)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise DatasetLayoutError(root, module.LAYOUT, [f"{n} in more than one place" for n in repeated[:5]])
    return found


def _refuse_outside(root: Path, found: Iterable[Found]) -> None:
    """Raise an InputError for the first recording with a file outside the folder of the data set."""
    inside = root.resolve()
    folders: dict[Path, Path] = {}  # resolving a folder once is much faster for many files
    for one in found:
        for path in {one.video, one.reference}:
            if path == root:  # an empty cell of a manifest, which is reported when the file is read
                continue
            try:
                if "\0" in str(path):
                    raise ValueError
                if path.parent not in folders:
                    folders[path.parent] = path.parent.resolve()
                parent = folders[path.parent]
                real = (parent / path.name).resolve() if path.is_symlink() or path.name == ".." else parent
            except (OSError, RuntimeError, ValueError):  # a loop of symbolic links, or a zero byte
                raise RecordingError(one.name, "the path of a file cannot be resolved") from None
            if not real.is_relative_to(inside) or (path == one.video and _holds_link_out(path, inside)):
                raise InputError(
                    f"{root}: the recording {one.name} has a file outside this folder; "
                    "add --allow-outside if you trust the data set"
                )


def _holds_link_out(folder: Path, inside: Path) -> bool:
    """Whether a folder of pictures holds a symbolic link to something outside the data set."""
    try:
        with os.scandir(folder) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
    except OSError:  # a file, or a folder that cannot be read; reported when it is opened
        return False
    try:
        return any(not link.resolve().is_relative_to(inside) for link in links)
    except (OSError, RuntimeError):  # a loop
        return True


def check_files(found: Found) -> None:
    """Raise a RecordingError if the video or the reference is missing, a device or a pipe."""
    for what, path in (("video", found.video), ("reference", found.reference)):
        if not path.exists():
            raise RecordingError(found.name, f"the {what} is missing ({path})")
        if what == "video" and path.is_dir():
            continue
        try:
            check_regular(path)
        except InputError as error:
            raise RecordingError(found.name, f"the {what} cannot be used: {error}") from error


def read(module: ModuleType, found: Found) -> Recording:
    """Read one recording; an error in its files becomes a RecordingError with its name."""
    check_files(found)
    try:
        conditions = dict(found.conditions)
        if hasattr(module, "read_conditions"):
            conditions |= module.read_conditions(found)
        wave = to_waveform(found.name, module.read_reference(found))
        video = module.open_video(found) if hasattr(module, "open_video") else open_file(found.video)
    except RecordingError:
        raise
    except VideoError as error:
        raise RecordingError(found.name, f"the video cannot be used: {error.problem}") from error
    except InputError as error:
        raise RecordingError(found.name, f"cannot be read: {error}") from error
    except OSError as error:
        raise RecordingError(found.name, f"cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, OverflowError) as error:
        raise RecordingError(found.name, f"cannot be read: {error}") from error
    return Recording(module.NAME, found.subject, found.name, video, wave, conditions)


def to_waveform(name: str, reference: Reference) -> Waveform:
    """Resample a reference by its timestamps to a uniform clock at its own mean rate."""
    t_s: FloatArray = np.asarray(reference.t_s, np.float64).ravel()
    values: FloatArray = np.asarray(reference.values, np.float64).ravel()
    if len(t_s) != len(values):
        raise RecordingError(name, f"the reference has {len(values)} values and {len(t_s)} timestamps")
    if not (np.isfinite(t_s).all() and np.isfinite(values).all()):
        raise RecordingError(name, "the reference holds NaN or infinity")
    steps_s = np.diff(t_s)
    if (steps_s < 0).any():
        at = int(np.argmax(steps_s < 0)) + 1
        raise RecordingError(
            name, f"the timestamps of the reference decrease at sample {at} ({t_s[at]:.3f} s)"
        )
    t_s, values = merge_repeated_times(t_s, values)
    if len(t_s) < 2 or t_s[-1] - t_s[0] < MIN_REFERENCE_S:
        raise RecordingError(name, f"the reference is shorter than {MIN_REFERENCE_S:g} s")
    if np.ptp(values) == 0:
        raise RecordingError(name, "the reference is constant")
    steps_s = np.diff(t_s)
    fps = 1 / float(np.mean(steps_s[steps_s <= max(MAX_GAP_S, float(np.median(steps_s)))]))
    if fps < MIN_REFERENCE_HZ:
        raise RecordingError(
            name,
            f"the reference has only {fps:.1f} samples per second; at least {MIN_REFERENCE_HZ:g} are needed",
        )
    count = (t_s[-1] - t_s[0]) * fps
    if not math.isfinite(fps) or count > limits.current().samples:
        raise RecordingError(
            name,
            f"the reference has too many samples, {t_s[-1] - t_s[0]:.3g} s at {fps:.3g} per second; "
            + limits.hint("samples"),
        )
    if count > MAX_STRETCH * len(t_s) + MIN_STRETCHED:  # a small file must not take much memory
        raise RecordingError(
            name, f"the reference has {len(t_s)} samples in {t_s[-1] - t_s[0]:.3g} s, which are mostly gaps"
        )
    uniform, start_s, valid = resample.to_uniform(t_s, values, fps, max_gap_s=MAX_GAP_S)
    return Waveform(uniform, fps, start_s, valid)


def merge_repeated_times(t_s: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Replace samples that share a timestamp by their mean; UBFC-rPPG has such samples."""
    unique_s, inverse = np.unique(t_s, return_inverse=True)
    if len(unique_s) == len(t_s):
        return t_s, values
    return unique_s, np.bincount(inverse, values) / np.bincount(inverse)


def recording_error(name: str, error: PhaseError) -> RecordingError:
    """Convert the error of a job into a RecordingError; the original error becomes its cause."""
    problem = error.problem if isinstance(error, RecordingError | WorkerDied) else str(error)
    wrapped = RecordingError(name, problem)
    wrapped.__cause__ = error
    return wrapped


def no_usable_recording(root: str | Path, problems: Sequence[RecordingError]) -> InputError:
    """Return the error for a data set without a usable recording."""
    shown = "; ".join(str(p) for p in problems[:3])
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return InputError(f"{root}: no usable recording, {len(problems)} excluded: {shown}{more}")


def read_table(name: str, path: Path, delimiter: str | None = None, *, header: bool = False) -> FloatArray:
    """Read a text file of numbers as an array (rows, columns); with `header`, the first line may be text."""
    text = read_text(path, "label_mb")
    most = limits.current().samples
    if _value_count(text, delimiter) > most:  # before a list of lines takes many times the memory of the text
        raise RecordingError(name, f"{path.name} has more than {most:g} values; {limits.hint('samples')}")
    lines = text.splitlines()
    skipped = int(header and bool(lines) and not _begins_with_number(lines[0], delimiter))
    if not any(line.partition("#")[0].strip() for line in lines[skipped:]):  # "#" begins a comment
        raise RecordingError(name, f"{path.name} is empty")
    try:
        return np.loadtxt(lines[skipped:], delimiter=delimiter, ndmin=2)
    except ValueError as error:
        row = re.search(r"at row (\d+)", str(error))  # the rest of the message quotes the file
        where = f" (row {int(row[1]) + 1 + skipped})" if row else ""
        raise RecordingError(name, f"{path.name} is not a table of numbers{where}") from None


def _value_count(text: str, delimiter: str | None) -> int:
    """Return the number of separated values in a text."""
    codes = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    separates = codes <= ord(" ")
    if delimiter is not None:
        separates |= codes == ord(delimiter)
    return int(np.count_nonzero(separates[1:] & ~separates[:-1])) + 1


def _begins_with_number(line: str, delimiter: str | None) -> bool:
    try:
        float((line.split(delimiter) or [""])[0])
    except ValueError:
        return False
    return True


def natural_key(text: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that puts subject10 after subject9."""
    parts = re.split(r"(\d+)", text.lower())
    # Characters such as "²" are digits, but not decimal; int() refuses them and very long numbers.
    return tuple((0, int(p)) if p.isdecimal() and len(p) < 1000 else (1, p) for p in parts if p)


def subfolders(root: Path) -> list[Path]:
    return sorted((p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")), key=_by_name)


def files(folder: Path, suffixes: Iterable[str]) -> list[Path]:
    """Return the files with one of the suffixes (any case), in natural order, without hidden files."""
    wanted = tuple(s.lower() for s in suffixes)
    inside = (p for p in folder.iterdir() if p.suffix.lower() in wanted and not p.name.startswith("."))
    return sorted((p for p in inside if p.is_file()), key=_by_name)


def listing(root: Path, limit: int = 6) -> list[str]:
    """Return the first names in a folder, for an error message."""
    names = sorted(p.name + ("/" if p.is_dir() else "") for p in root.iterdir() if not p.name.startswith("."))
    return names[:limit] + ([f"… {len(names)} in total"] if len(names) > limit else [])


def open_file(path: Path) -> VideoFile:
    """Open a video file and read its header; a file that is not a video raises a VideoError."""
    from ..video.decode import VideoFile

    source = VideoFile(path)
    _ = source.info
    return source


def _by_name(path: Path) -> tuple[tuple[int, int | str], ...]:
    return natural_key(path.name)
