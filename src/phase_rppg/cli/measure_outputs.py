"""The output files of `phase measure`: which are requested, whether they can be written, and writing them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .outputs import check_output, check_suffix

if TYPE_CHECKING:
    from ..errors import OutputError
    from ..measurement.batch import FaceChoice, Failure, VideoInput
    from ..measurement.measure import MeasureOptions
    from ..session.results import Result

STDOUT = Path("-")
SUMMARY = "summary.csv"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The requested files. It is sent to worker processes, which write the files of each video."""

    folder: Path | None = None  # -o: everything; a sub-folder per video for several videos
    overlay: bool = False
    wave: Path | None = None
    beats: Path | None = None
    plot: Path | None = None
    csv: Path | None = None  # one file for all videos
    report: Path | None = None  # one file for all videos
    force: bool = False
    resume: bool = False
    several: bool = False
    parquet: str | None = None  # tables of all videos; excludes the other files

    def check_names(self, options: MeasureOptions) -> None:
        """Refuse combinations and suffixes that are not supported, before anything is read."""
        from ..errors import UsageError, require
        from ..infer import onnx
        from ..report import figure_file, signals

        self._check_tables()
        if self.wave is not None:
            signals.check_wave_name(self.wave)
        accepted = {
            "--plot": (self.plot, figure_file.SUFFIXES),
            "--beats": (self.beats, (".csv",)),
            "--report": (self.report, (".html", ".htm")),
            "--csv": (None if self.csv == STDOUT else self.csv, (".csv", ".txt")),
        }
        for option, (path, suffixes) in accepted.items():
            if path is not None:
                check_suffix(path, suffixes, option)
        if self.plot is not None or self.overlay:
            require("matplotlib")
        if self.overlay and self.folder is None:
            raise UsageError("--overlay needs a folder: -o DIR")
        if self.resume and self.folder is None and self.parquet is None:
            raise UsageError("--resume needs a folder: -o DIR")
        if self.resume and (self.csv is not None or self.report is not None):
            raise UsageError("--resume cannot be combined with --csv or --report; -o writes both")
        is_network = options.method in onnx.names() or Path(options.method).suffix in (".json", ".onnx")
        if self.overlay and not is_network:
            raise UsageError(f"--overlay draws the mask of a network; {options.method} has none")

    def absolute(self) -> Outputs:
        """Return the files with paths that do not depend on the working folder, for other machines."""
        names = ("folder", "wave", "beats", "plot")
        paths = {name: path.absolute() for name in names if (path := getattr(self, name)) is not None}
        return replace(self, **paths)

    def _check_tables(self) -> None:
        """Refuse `--parquet` with other files."""
        from ..errors import UsageError, require

        if self.parquet is None:
            return
        others = (self.folder, self.wave, self.beats, self.plot, self.csv, self.report)
        if self.overlay or any(each is not None for each in others):
            raise UsageError(
                "--parquet cannot be combined with other output files; --full adds the waveforms"
            )
        require("pyarrow")

    def check_targets(self, videos: Sequence[VideoInput]) -> None:
        """Refuse files that exist (without `force`), cannot be written, or would overwrite an input."""
        from ..errors import OutputError, UsageError

        if self.folder is not None and os.path.isfile(self.folder):
            raise OutputError(self.folder, "is a file; -o needs a folder")
        planned = [file for video in videos for file in self.files(video)]
        planned += [path for path in (self.csv, self.report) if path is not None and path != STDOUT]
        if self.folder is not None and self.several:
            planned.append(self.folder / SUMMARY)
        inputs, taken = [video.path for video in videos], set()
        for path in planned:
            if os.path.realpath(path) in taken:
                raise UsageError(f"{path}: would be written twice; choose another name")
            taken.add(os.path.realpath(path))
            check_output(path, force=self.force or self.resume, inputs=inputs)

    def files(self, video: VideoInput) -> list[Path]:
        """Return the files that are written for one video."""
        from ..report import folder, signals

        found = []
        if (target := self.folder_of(video)) is not None:
            found += [target / name for name in (*folder.FILES, *[folder.OVERLAY] * self.overlay)]
        if self.wave is not None:
            found += signals.wave_files(self.per_video(self.wave, video))
        found += [self.per_video(path, video) for path in (self.beats, self.plot) if path is not None]
        return found

    def folder_of(self, video: VideoInput) -> Path | None:
        """Return the folder for the files of one video."""
        if self.folder is None:
            return None
        return self.folder / video.label if self.several else self.folder

    def per_video(self, path: Path, video: VideoInput) -> Path:
        """Return the file of one video: with several videos, its name is added to the name of the file."""
        if not self.several:
            return path
        return path.with_name(f"{path.stem}-{re.sub(r'[^A-Za-z0-9_]+', '-', video.label)}{path.suffix}")

    def stored(self, video: VideoInput, options: MeasureOptions, face: FaceChoice) -> dict[str, Any] | None:
        """Return the document of an earlier run with the same video and options; None without `resume`."""
        from ..errors import UsageError
        from ..report import folder

        target = self.folder_of(video)
        if self.resume and video.address:
            raise UsageError("--resume with an object store needs --parquet")
        if not self.resume or target is None or not (target / folder.RESULT).exists():
            return None
        found = folder.stored(target, folder.provenance(video.path, options, face))
        lacks_overlay = self.overlay and not (target / folder.OVERLAY).exists()
        return None if found is None or (lacks_overlay and found["faces"]) else found


@dataclass(frozen=True, slots=True)
class VideoWriter:
    """Write the files of one video as soon as it is measured."""

    outputs: Outputs
    options: MeasureOptions
    face: FaceChoice

    def __call__(self, video: VideoInput, result: Result) -> list[OutputError]:
        """Write each file and return the errors of those that failed; the result itself is not lost."""
        from ..report import plots, signals

        outputs = self.outputs
        writes: list[Callable[[], object]] = []
        if (wave := outputs.wave) is not None:
            writes.append(lambda: signals.save_wave(outputs.per_video(wave, video), result))
        if (beats := outputs.beats) is not None:
            writes.append(lambda: signals.save_beats(outputs.per_video(beats, video), result))
        if (plot := outputs.plot) is not None:
            writes.append(lambda: plots.save(outputs.per_video(plot, video), result))
        if (target := outputs.folder_of(video)) is not None:
            writes.append(lambda: self._write_folder(target, video, result))
        return attempt_all(writes)

    def _write_folder(self, target: Path, video: VideoInput, result: Result) -> None:
        from ..report import folder, overlay

        if self.outputs.overlay and result.faces:
            method, fps = self.options.method, self.options.fps
            overlay.save(target / folder.OVERLAY, video.path, result, method, fps)
        folder.save(target, result, folder.provenance(video.path, self.options, self.face))


def attempt_all(writes: Iterable[Callable[[], object]]) -> list[OutputError]:
    """Call each function and return the errors of those that could not write their file."""
    from ..errors import OutputError

    unwritten = []
    for write in writes:
        try:
            write()
        except OutputError as error:
            unwritten.append(error)
    return unwritten


def write_common(
    outputs: Outputs, results: Sequence[Result], failures: Sequence[Failure]
) -> list[OutputError]:
    """Write the files that hold all videos: the table of windows and the report; return errors."""
    from ..fileio import write_text
    from ..report.document import csv_text
    from ..report.html import save_html

    writes: list[Callable[[], object]] = []
    if (table := outputs.csv) is not None and table != STDOUT:
        writes.append(lambda: write_text(table, csv_text(results)))
    if (report := outputs.report) is not None:
        problems = [(failure.video, failure.problem) for failure in failures]
        writes.append(lambda: save_html(report, results, problems))
    return attempt_all(writes)


def write_summary(outputs: Outputs, documents: Iterable[dict[str, Any]]) -> list[OutputError]:
    """Write one row per face of all videos into the output folder; return errors."""
    from ..fileio import write_text
    from ..report.document import summary_csv

    if outputs.folder is None or not outputs.several:
        return []
    path, text = outputs.folder / SUMMARY, summary_csv(documents)
    return attempt_all([lambda: write_text(path, text)])
