"""From a folder to recordings: every data set is read the same way, and what cannot be used is named.

A data set is one file of this folder with

    NAME                      what the user types
    LAYOUT                    the folder as it should look
    find(root)                the recordings that the folder holds, nothing read yet
    read_reference(found)     the contact PPG on the clock of the video (its first frame is 0 s)
    open_video(found)         the frames
    read_conditions(found)    light, motion … (optional, for conditions that are stored inside the files)
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from .. import registry
from ..errors import DatasetLayoutError, InputError, PhaseError, RecordingError, VideoError
from ..signal import resample
from ..signal.constants import MAX_GAP_S
from ..types import FloatArray, Frame, FrameSource, Recording, Waveform
from ..workers import WorkerDied

if TYPE_CHECKING:
    from ..video.decode import VideoFile

MIN_REFERENCE_S = 2.0
MIN_REFERENCE_HZ = 8.0  # below it the upper end of the pulse band and its shape are lost
VIDEO_SUFFIXES = (".avi", ".mp4", ".mkv", ".mov", ".m4v", ".webm")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """A recording as it lies on the disk; the files may turn out to be missing or damaged."""

    subject: str
    name: str  # unique within the data set
    video: Path  # a file, or a folder of pictures
    reference: Path
    conditions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A contact PPG as the device gave it, on the clock of the video."""

    t_s: FloatArray  # (N,) may be irregular, may repeat, may not run backwards
    values: FloatArray  # (N,)


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What a data set holds: recordings that can be used, and why the others cannot."""

    recordings: tuple[Recording, ...]
    problems: tuple[RecordingError, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Retimed:
    """A video whose true frame times are known from elsewhere (a container may only say "30 fps")."""

    source: FrameSource
    times_s: FloatArray  # (T,)
    name: str

    def frames(self) -> Iterator[Frame]:
        for index, frame in enumerate(self.source.frames()):
            if index == len(self.times_s):
                raise RecordingError(self.name, f"the video has more frames than its {index} known times")
            yield Frame(frame.rgb, float(self.times_s[index]))


@dataclass(frozen=True, slots=True, eq=False)
class Unbroken:
    """A video that must be whole: a single file may be used up to its damage, a data set leaves it out."""

    source: FrameSource
    name: str

    def frames(self) -> Iterator[Frame]:
        try:
            yield from self.source.frames()
        except VideoError as error:
            raise RecordingError(self.name, f"the video cannot be used: it {error.problem}") from error


def load(
    name: str, root: str | Path, *, on_problem: Callable[[RecordingError], None] | None = None
) -> list[Recording]:
    """The usable recordings of a data set, sorted by subject; the others go to `on_problem` (or the log)."""
    survey = look(name, root)
    for problem in survey.problems:
        if on_problem is None:
            log.warning("excluded: %s", problem)
        else:
            on_problem(problem)
    if not survey.recordings:
        raise nothing_left(root, survey.problems)
    return list(survey.recordings)


def look(name: str, root: str | Path) -> Survey:
    """Read every reference and open every video of a data set; what went wrong is kept beside the rest."""
    module = registry.load("datasets", name)
    recordings: list[Recording] = []
    problems: list[RecordingError] = []
    for found in find(name, root):
        try:
            recordings.append(read(module, found))
        except RecordingError as error:
            problems.append(error)
    return Survey(tuple(recordings), tuple(problems))


def find(name: str, root: str | Path) -> list[Found]:
    """The recordings of a data set in the natural order of subject and name; an alien folder is refused."""
    module = registry.load("datasets", name)
    root = Path(root)
    if not root.is_dir():
        raise DatasetLayoutError(root, module.LAYOUT, ["no such folder" if not root.exists() else "a file"])
    found = sorted(module.find(root), key=lambda f: (natural_key(f.subject), natural_key(f.name)))
    if not found:
        raise DatasetLayoutError(root, module.LAYOUT, listing(root))
    names = [f.name for f in found]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise DatasetLayoutError(root, module.LAYOUT, [f"{n} in more than one place" for n in twice[:5]])
    return found


def read(module: ModuleType, found: Found) -> Recording:
    """One recording; whatever is wrong with its files becomes a RecordingError with its name."""
    for what, path in (("video", found.video), ("reference", found.reference)):
        if not path.exists():
            raise RecordingError(found.name, f"the {what} is missing ({path})")
    try:
        conditions = dict(found.conditions)
        if hasattr(module, "read_conditions"):
            conditions |= module.read_conditions(found)
        wave = to_waveform(found.name, module.read_reference(found))
        video = module.open_video(found)
    except RecordingError:
        raise
    except VideoError as error:
        raise RecordingError(found.name, f"the video cannot be used: {error.problem}") from error
    except (InputError, OSError, ValueError, KeyError) as error:
        raise RecordingError(found.name, f"cannot be read: {error}") from error
    return Recording(module.NAME, found.subject, found.name, video, wave, conditions)


def to_waveform(name: str, reference: Reference) -> Waveform:
    """The reference on a uniform clock at its own mean rate, resampled by its timestamps."""
    t_s: FloatArray = np.asarray(reference.t_s, np.float64).ravel()
    values: FloatArray = np.asarray(reference.values, np.float64).ravel()
    if len(t_s) != len(values):
        raise RecordingError(name, f"the reference has {len(values)} values and {len(t_s)} timestamps")
    if not (np.isfinite(t_s).all() and np.isfinite(values).all()):
        raise RecordingError(name, "the reference holds values that are not numbers")
    steps_s = np.diff(t_s)
    if (steps_s < 0).any():
        at = int(np.argmax(steps_s < 0)) + 1
        raise RecordingError(
            name, f"the reference's timestamps run backwards at sample {at} ({t_s[at]:.3f} s)"
        )
    t_s, values = merge_repeats(t_s, values)
    if len(t_s) < 2 or t_s[-1] - t_s[0] < MIN_REFERENCE_S:
        raise RecordingError(name, f"the reference is shorter than {MIN_REFERENCE_S:g} s")
    if np.ptp(values) == 0:
        raise RecordingError(name, "the reference is one flat line")
    steps_s = np.diff(t_s)
    fps = 1 / float(np.mean(steps_s[steps_s <= max(MAX_GAP_S, float(np.median(steps_s)))]))
    if fps < MIN_REFERENCE_HZ:
        raise RecordingError(
            name, f"the reference has only {fps:.1f} samples per second; no pulse wave fits in that"
        )
    uniform, start_s, valid = resample.to_uniform(t_s, values, fps, max_gap_s=MAX_GAP_S)
    return Waveform(uniform, fps, start_s, valid)


def merge_repeats(t_s: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Samples that share a timestamp (UBFC-rPPG has such rows) become one, their mean."""
    unique_s, inverse = np.unique(t_s, return_inverse=True)
    if len(unique_s) == len(t_s):
        return t_s, values
    return unique_s, np.bincount(inverse, values) / np.bincount(inverse)


def recording_error(name: str, error: PhaseError) -> RecordingError:
    """Return the error of a recording's job as a RecordingError; the error itself becomes its cause."""
    problem = error.problem if isinstance(error, RecordingError | WorkerDied) else str(error)
    wrapped = RecordingError(name, problem)
    wrapped.__cause__ = error
    return wrapped


def nothing_left(root: str | Path, problems: Sequence[RecordingError]) -> InputError:
    """The error for a data set of which no recording can be used."""
    shown = "; ".join(str(p) for p in problems[:3])
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return InputError(f"{root}: no usable recording, {len(problems)} excluded: {shown}{more}")


def read_table(name: str, path: Path, delimiter: str | None = None) -> FloatArray:
    """A text file of numbers as (rows, columns)."""
    try:
        if not path.read_text(encoding="utf-8-sig").strip():
            raise RecordingError(name, f"{path.name} is empty")
        return np.loadtxt(path, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        raise RecordingError(name, f"{path.name} is not a table of numbers ({error})") from error


def natural_key(text: str) -> tuple[tuple[int, int | str], ...]:
    """Sort subject10 after subject9."""
    parts = re.split(r"(\d+)", text.lower())
    return tuple((0, int(p)) if p.isdigit() else (1, p) for p in parts if p)


def subfolders(root: Path) -> list[Path]:
    return sorted((p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")), key=_by_name)


def files(folder: Path, suffixes: Iterable[str]) -> list[Path]:
    """Files with one of the suffixes (any case), in natural order; hidden ones are left out."""
    wanted = tuple(s.lower() for s in suffixes)
    inside = (p for p in folder.iterdir() if p.suffix.lower() in wanted and not p.name.startswith("."))
    return sorted((p for p in inside if p.is_file()), key=_by_name)


def listing(root: Path, limit: int = 6) -> list[str]:
    """A few names of what is in a folder, for an error message."""
    names = sorted(p.name + ("/" if p.is_dir() else "") for p in root.iterdir() if not p.name.startswith("."))
    return names[:limit] + ([f"… {len(names)} in all"] if len(names) > limit else [])


def open_file(path: Path) -> VideoFile:
    """A video file whose header has been looked at; a file that is no video is refused here."""
    from ..video.decode import VideoFile

    source = VideoFile(path)
    _ = source.info
    return source


def _by_name(path: Path) -> tuple[tuple[int, int | str], ...]:
    return natural_key(path.name)
