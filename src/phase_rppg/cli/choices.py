"""Names for help texts, listed without importing the packages that use them."""

from __future__ import annotations

from pathlib import Path

from .. import registry

_ROOT = Path(__file__).parent.parent


def methods() -> str:
    """Return the names that `--model` accepts: bundled networks, then classical methods."""
    return f"a bundled network ({networks()}) or a classical method ({registry.listed('methods')})"


def model_names() -> list[str]:
    """Return the names that `--model` accepts, for completion."""
    return [*networks().split(", "), *registry.names("methods")]


def networks() -> str:
    """Return the names of the bundled networks; `infer.names` lists the same files."""
    return _stems("infer/weights", "*.json")


def recipes() -> str:
    """Return the names of the bundled training recipes."""
    return _stems("recipes", "*.toml")


def output_formats() -> str:
    """Return the names that `phase synth --as` accepts."""
    return f"clips, {registry.listed('synth/writers')}"


def _stems(folder: str, pattern: str) -> str:
    return ", ".join(sorted(file.stem for file in (_ROOT / folder).glob(pattern)))
