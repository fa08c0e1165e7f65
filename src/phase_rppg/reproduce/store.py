"""Finished results on disk, stored atomically under the hash of their inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..fileio import atomic_path, dump_json, open_arrays, read_json, write_json
from ..types import FloatArray

VERSION = 8  # increased when the same inputs give other results


def hash_key(facts: Mapping[str, Any]) -> str:
    """Return the hash of JSON values; the order of the keys does not matter."""
    text = dump_json(_sorted({"version": VERSION, **facts}), indent=None)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_sorted(item) for item in value]
    return value


class Store:
    """A folder with finished results and with training runs."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def run(self, key: str) -> Path:
        """Return the folder of a training run."""
        return self.root / "runs" / key

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a finished result; None if it is absent or damaged."""
        path = self.root / "results" / f"{key}.json"
        if not path.is_file() or not path.with_suffix(".npz").is_file():
            return None
        try:
            content: Any = read_json(path)
        except InputError:
            return None
        return content if isinstance(content, dict) and content.get("key") == key else None

    def put(self, key: str, result: Mapping[str, Any], waves: Mapping[str, FloatArray]) -> dict[str, Any]:
        """Store a result and its waveforms; the JSON file is written last and marks both as complete."""
        path = self.root / "results" / f"{key}.json"
        with atomic_path(path.with_suffix(".npz")) as temporary, open(temporary, "wb") as file:
            small: dict[str, Any] = {name: np.asarray(wave, np.float32) for name, wave in waves.items()}
            np.savez_compressed(file, **small)
        write_json(path, {"key": key, **result})
        stored: dict[str, Any] = read_json(path)  # exactly what a later run reads
        return stored

    def waves(self, key: str) -> dict[str, FloatArray]:
        """Return the waveforms that were stored with a result."""
        with open_arrays(self.root / "results" / f"{key}.npz") as arrays:
            return {name: arrays[name] for name in arrays.files}
