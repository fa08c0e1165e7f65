"""Results on the disk, found by the hash of everything that made them, written whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..fileio import atomic_path, dump_json, read_json, write_json
from ..types import FloatArray

VERSION = 2  # raised whenever the same plan would give other numbers: training, reading, comparing


def key_of(facts: Mapping[str, Any]) -> str:
    """The hash of plain facts; their order does not matter."""
    text = dump_json(_sorted({"version": VERSION, **facts}), indent=None)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_sorted(item) for item in value]
    return value


class Store:
    """A folder of finished results, and of runs that are under way."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def run(self, key: str) -> Path:
        """The folder of a training run."""
        return self.root / "runs" / key

    def get(self, key: str) -> dict[str, Any] | None:
        """A finished result; None if there is none, or if it is damaged."""
        path = self.root / "results" / f"{key}.json"
        if not path.is_file() or not path.with_suffix(".npz").is_file():
            return None
        try:
            content: dict[str, Any] = read_json(path)
        except InputError:
            return None
        return content if content.get("key") == key else None

    def put(self, key: str, result: Mapping[str, Any], waves: Mapping[str, FloatArray]) -> dict[str, Any]:
        """Keep a result and its waves; the JSON, written last, says that both are there."""
        path = self.root / "results" / f"{key}.json"
        with atomic_path(path.with_suffix(".npz")) as temporary, open(temporary, "wb") as file:
            small: dict[str, Any] = {name: np.asarray(wave, np.float32) for name, wave in waves.items()}
            np.savez_compressed(file, **small)
        write_json(path, {"key": key, **result})
        kept: dict[str, Any] = read_json(path)  # as the next run will see it
        return kept

    def waves(self, key: str) -> dict[str, FloatArray]:
        """The waves that were kept with a result."""
        with np.load(self.root / "results" / f"{key}.npz", allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
