"""Every attack of the folder `attacks` fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from attacks import ATTACKS
from attacks.parsers import Succeeded, refusal

from phase_rppg.errors import InputError


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_fails(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch" if name in ("pickle_in_pth", "zip_bomb") else "numpy")
    assert ATTACKS[name](tmp_path)


def test_an_attack_that_is_accepted_counts_as_success() -> None:
    with pytest.raises(Succeeded):
        refusal(lambda: None)

    def refuse() -> None:
        raise InputError("no")

    assert refusal(refuse) == "no"
