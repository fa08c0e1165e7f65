"""REPORT.md of a run: what was run, on which data, with which versions, and how to repeat it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..fileio import sha256

_PACKAGES = ("phase-rppg", "numpy", "scipy", "torch", "onnxruntime", "av", "matplotlib")


@dataclass(frozen=True)
class RunRecord:
    """Everything that is needed to repeat a run."""

    title: str
    stamp: str
    command: str
    convention: str  # one line
    results: Sequence[str]  # lines of Markdown
    models: Mapping[str, str] = field(default_factory=dict)  # model → digest or description
    splits: Mapping[str, Mapping[str, Sequence[str]]] = field(
        default_factory=dict
    )  # protocol → use → subjects
    recordings: Mapping[str, str] = field(default_factory=dict)  # recording → digest of files and preparation
    excluded: Mapping[str, str] = field(default_factory=dict)  # recording → why
    notes: Sequence[str] = ()

    def facts(self) -> dict[str, Any]:
        """Return the record as JSON values, without the results."""
        return {
            "command": self.command,
            "versions": versions(),
            "models": dict(self.models),
            "splits": {name: {k: list(v) for k, v in uses.items()} for name, uses in self.splits.items()},
            "recordings": dict(self.recordings),
        }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that determine the numbers."""
    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def devices() -> str:
    """Return the processors that were at hand, in words."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, {os.cpu_count()} CPU cores"
    return f"{os.cpu_count()} CPU cores"


def model_digest(model: str | Path) -> str:
    """Return the SHA-256 of a model's file; a name without a file is described by the package version."""
    path = Path(model)
    if path.is_file():
        return f"sha256 {sha256(path)}"
    return "part of this version of phase-rppg"


def markdown(record: RunRecord) -> str:
    """Return the report as Markdown."""
    lines = [f"# {record.title}", "", f"**{record.stamp}**", "", *record.results, "", "## Repeat it", ""]
    lines += [f"    {record.command}", "", f"- Convention {record.convention}."]
    lines += [f"- {note}" for note in record.notes]
    lines += ["", "## Versions", "", "| package | version |", "|---|---|"]
    lines += [f"| {name} | {version} |" for name, version in versions().items()]
    lines += ["", f"Processors: {devices()}."]
    if record.models:
        lines += ["", "## Models", "", "| model | file |", "|---|---|"]
        lines += [f"| {_cell(name)} | {_cell(digest)} |" for name, digest in record.models.items()]
    if record.splits:
        lines += ["", "## Subjects", ""]
        for name, uses in record.splits.items():
            lines.append(f"- {name}")
            lines += [f"  - {use} ({len(who)}): {', '.join(who) or 'none'}" for use, who in uses.items()]
    if record.recordings:
        lines += [
            "",
            "## Recordings",
            "",
            "The key is a digest of the files and, in a convention, of their preparation.",
            "",
        ]
        lines += ["| recording | key |", "|---|---|"]
        lines += [f"| {_cell(name)} | `{key}` |" for name, key in record.recordings.items()]
    if record.excluded:
        lines += ["", "## Excluded", ""]
        lines += [f"- {name}: {why}" for name, why in record.excluded.items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
