"""What is trained on what and tested on what. Pure data: nothing is read, built or trained here.

A cell whose only source is its target is trained and tested on different subjects of one data set; any
other cell never sees its target before the test. Cells of different tables that ask for the same work share
its result, because results are kept by the hash of what made them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import registry
from ..errors import UnknownNameError
from . import printed_numbers

DATASETS = ("ubfc_rppg", "pure", "buaa_mihr", "mmpd")
WORLDS = ("studio", "motion", "lux", "phone")
HARD_WORLDS = ("motion", "phone")
LIGHTS = ("led-low", "led-high", "incandescent", "nature")
_LETTER = {"U": "ubfc_rppg", "P": "pure", "B": "buaa_mihr", "M": "mmpd"}


@dataclass(frozen=True)
class Model:
    """A network with its options, or a classical method."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)  # of the network
    loss: Mapping[str, Any] = field(default_factory=dict)  # of the recipe

    @property
    def learns(self) -> bool:
        return self.name not in registry.names("methods")


@dataclass(frozen=True)
class Cell:
    """One number of a table, or rather the recordings from which its numbers are computed."""

    row: str
    column: str
    model: Model
    sources: tuple[str, ...]  # trained on; of no matter for a classical method
    target: str  # tested on; "" if nothing is tested

    @property
    def intra(self) -> bool:
        return self.sources == (self.target,)

    @property
    def domains(self) -> tuple[str, ...]:
        """What must be there for this cell."""
        learnt = self.sources if self.model.learns or self.intra else ()
        return tuple(dict.fromkeys((*learnt, self.target))) if self.target else ()


@dataclass(frozen=True)
class Plan:
    """A table or figure."""

    name: str
    cells: tuple[Cell, ...]
    view: str = "table"  # "table", "condition", "count" or "waves"
    average: bool = False  # a last column with the mean of the others
    worlds: bool = False  # the domains are worlds of the generator, not data sets

    @property
    def title(self) -> str:
        return printed_numbers.title(self.name)

    @property
    def metrics(self) -> tuple[str, ...]:
        return printed_numbers.metrics(self.name)

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(cell.column for cell in self.cells))

    @property
    def domains(self) -> list[str]:
        return list(dict.fromkeys(domain for cell in self.cells for domain in cell.domains))

    def cell(self, row: str, column: str) -> Cell | None:
        return next((c for c in self.cells if (c.row, c.column) == (row, column)), None)


METHODS = ("green", "ica", "chrom", "pos")
INTRA = (*METHODS, "physnet", "physformer", "efficientphys", "contrast-phys", "rhythmformer", "phasenet")
CROSS = ("green", "chrom", "pos", "efficientphys", "physformer", "physnet", "rhythmformer", "phasenet")
LIMITED = ("green", "physnet", "physformer", "efficientphys", "rhythmformer", "phasenet")
COUNTED = (
    "physnet", "deepphys", "ts-can", "efficientphys", "physformer", "rhythmformer", "contrast-phys",
    "physmamba", "factorizephys", "phasenet", "phasenet-stream",
)  # fmt: skip
LIT = ("physnet", "rhythmformer", "phasenet")
STUDIED = ("green", "chrom", "pos", "physnet", "efficientphys", "rhythmformer", "phasenet-stream")
MODULES: dict[str, dict[str, Any]] = {
    "full": {},
    "no ZAS": {"zas": False},
    "no ASF": {"asf": False},
    "no derivative": {"derivative": False},
    "no gated TCN": {"temporal": "none"},
}
STUDY_MODULES = {**MODULES, "oscillator start": {"init": "oscillator"}}


def _table1(models: Sequence[str]) -> Plan:
    return Plan("table1", tuple(Cell(m, d, _model(m), (d,), d) for m in models for d in DATASETS))


def _table2(models: Sequence[str]) -> Plan:
    return Plan("table2", _leave_one_out({m: _model(m) for m in models}, DATASETS, DATASETS))


def _leave_one_out(
    models: Mapping[str, Model], domains: Sequence[str], tested: Sequence[str]
) -> tuple[Cell, ...]:
    return tuple(
        Cell(row, left, model, tuple(d for d in domains if d != left), left)
        for row, model in models.items()
        for left in tested
    )


def _limited(name: str, target: str, pairs: Sequence[str]) -> Callable[[Sequence[str]], Plan]:
    def plan(models: Sequence[str]) -> Plan:
        cells = [
            # In one order, so that P+U is one training for both tables.
            Cell(m, pair, _model(m), tuple(d for d in DATASETS if d in map(_LETTER.get, pair)), target)
            for m in models
            for pair in pairs
        ]
        return Plan(name, tuple(cells), average=True)

    return plan


def _table5(models: Sequence[str]) -> Plan:
    return Plan("table5", tuple(Cell(m, "clip", _model(m), (), "") for m in models), view="count")


def _lighting(models: Sequence[str]) -> Plan:
    cells = tuple(Cell(m, "mmpd", _model(m), ("mmpd",), "mmpd") for m in models)
    return Plan("fig-lighting", cells, view="condition")


def _ablation(
    name: str, variants: Mapping[str, Model], domains: Sequence[str] = ("ubfc_rppg",)
) -> Callable[[Sequence[str]], Plan]:
    def plan(models: Sequence[str]) -> Plan:
        del models  # an ablation is of PHASE-Net
        return Plan(name, tuple(Cell(v, d, model, (d,), d) for v, model in variants.items() for d in domains))

    return plan


def _figures(models: Sequence[str]) -> Plan:
    cells = tuple(Cell(m, d, _model(m), (d,), d) for m in models for d in ("pure", "ubfc_rppg"))
    return Plan("figures", cells, view="waves")


def _study(models: Sequence[str]) -> Plan:
    """All networks on all worlds; the ablation where a world is hard, to keep the study affordable."""
    cells = _leave_one_out({m: _model(m) for m in models}, WORLDS, WORLDS)
    if "phasenet-stream" in models:
        variants = {v: Model("phasenet-stream", o) for v, o in STUDY_MODULES.items() if o}
        cells += _leave_one_out(variants, WORLDS, HARD_WORLDS)
    return Plan("study", cells, worlds=True)


def _model(name: str) -> Model:
    """A network or method as the tables compare it; an unknown name is refused with the choices."""
    known = {*registry.names("nn"), *registry.names("methods")}
    if name not in known:
        raise UnknownNameError("network or method", name, known)
    return Model(name)


def _phasenet(**options: Any) -> Model:
    return Model("phasenet", options)


_DEPTHS = {str(n): _phasenet(tcn_dilations=tuple(2**i for i in range(n))) for n in (1, 2, 3, 4)}
_LAMBDAS = {f"{w:g}": Model("phasenet", loss={"weight": w}) for w in (0.01, 0.1, 0.5, 1.0)}
_ZAS = {f"b = {b}": _phasenet(zas_block=b) for b in (1, 2, 4, 8)} | {
    f"p_c = {groups}": _phasenet(zas_fraction=groups / 8) for groups in (1, 2, 3, 4)
}

_PLANS: dict[str, tuple[Callable[[Sequence[str]], Plan], tuple[str, ...]]] = {
    "table1": (_table1, INTRA),
    "table2": (_table2, CROSS),
    "table3": (_limited("table3", "mmpd", ("P+B", "P+U", "B+U")), LIMITED),
    "table4": (_limited("table4", "buaa_mihr", ("P+M", "M+U", "P+U")), LIMITED),
    "table5": (_table5, COUNTED),
    "fig-lighting": (_lighting, LIT),
    "ablation-modules": (
        _ablation("ablation-modules", {k: _phasenet(**v) for k, v in MODULES.items()}, ("ubfc_rppg", "pure")),
        ("phasenet",),
    ),
    "ablation-depth": (_ablation("ablation-depth", _DEPTHS), ("phasenet",)),
    "ablation-lambda": (_ablation("ablation-lambda", _LAMBDAS), ("phasenet",)),
    "ablation-zas": (_ablation("ablation-zas", _ZAS), ("phasenet",)),
    "figures": (_figures, ("phasenet",)),
    "study": (_study, STUDIED),
}


def names() -> list[str]:
    """Everything that can be reproduced."""
    return list(_PLANS)


def plan_of(name: str, models: Sequence[str] = ()) -> Plan:
    """The plan of a table or figure, for its own networks and methods or for those given."""
    if name not in _PLANS:
        raise UnknownNameError("table or figure", name, _PLANS)
    make, usual = _PLANS[name]
    for model in models:
        _model(model)
    return make(tuple(models) or usual)
