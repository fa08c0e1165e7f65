"""Plans: which model each cell of a table trains and tests on which data sets.

A cell whose only source is its target uses different subjects of one data set for training and testing. All
other cells never use their target for training. Equal cells of different tables share one result, because
results are stored by the hash of their inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import registry
from ..errors import UnknownNameError
from . import printed_numbers

DATASETS = ("ubfc_rppg", "pure", "buaa_mihr", "mmpd")
WORLDS = ("studio", "motion", "lux", "phone")
HARD_WORLDS = ("motion", "phone")
LIGHTS = ("led-low", "led-high", "incandescent", "nature")
TRAININGS = ("equal", "published", "both")
PUBLISHED_ROW = " (published)"  # end of the name of a row whose network is trained as published
_LETTER = {"U": "ubfc_rppg", "P": "pure", "B": "buaa_mihr", "M": "mmpd"}


@dataclass(frozen=True)
class Model:
    """A network with its options, or a classical method."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)  # of the network
    loss: Mapping[str, Any] = field(default_factory=dict)  # of the recipe
    training: str = "equal"  # like the other networks, or "published": as its authors did

    @property
    def trainable(self) -> bool:
        """Whether the model is a network; classical methods have no parameters to train."""
        return self.name not in registry.names("methods")


@dataclass(frozen=True)
class Cell:
    """One cell of a table: a model with its training and test data."""

    row: str
    column: str
    model: Model
    sources: tuple[str, ...]  # training data; unused by a classical method
    target: str  # test data; "" if nothing is tested

    @property
    def intra(self) -> bool:
        """Whether training and testing use the same data set."""
        return self.sources == (self.target,)

    @property
    def domains(self) -> tuple[str, ...]:
        """The data sets or worlds that the cell needs."""
        sources = self.sources if self.model.trainable or self.intra else ()
        return tuple(dict.fromkeys((*sources, self.target))) if self.target else ()


@dataclass(frozen=True)
class Plan:
    """The cells of a table or figure."""

    name: str
    cells: tuple[Cell, ...]
    view: str = "table"  # "table", "condition", "count" or "waves"
    average: bool = False  # add a last column with the mean of the others
    worlds: bool = False  # the domains are synthetic worlds, not data sets

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
    "physmamba", "factorizephys", "phasenet-release", "phasenet", "phasenet-stream",
)  # fmt: skip
LIT = ("physnet", "rhythmformer", "phasenet")
STUDIED = ("green", "chrom", "pos", "physnet", "efficientphys", "rhythmformer", "phasenet-stream")
PAPER_OPTIONS: dict[str, Any] = {"tcn_dilations": (1, 2, 4), "zas_block": 2, "zas_fraction": 0.25}
MODULES: dict[str, dict[str, Any]] = {
    "full": {},
    "no ZAS": {"zas": False},
    "no ASF": {"asf": False},
    "no derivative": {"derivative": False},
    "no gated TCN": {"gtcn": False},
}


def _table1(models: Sequence[str]) -> Plan:
    return Plan("table1", tuple(Cell(m, d, _model(m), (d,), d) for m in models for d in DATASETS))


def _table2(models: Sequence[str]) -> Plan:
    return Plan("table2", _leave_one_out({m: _model(m) for m in models}, DATASETS, DATASETS))


def _leave_one_out(
    models: Mapping[str, Model], domains: Sequence[str], targets: Sequence[str]
) -> tuple[Cell, ...]:
    return tuple(
        Cell(row, target, model, tuple(d for d in domains if d != target), target)
        for row, model in models.items()
        for target in targets
    )


def _limited(name: str, target: str, pairs: Sequence[str]) -> Callable[[Sequence[str]], Plan]:
    def plan(models: Sequence[str]) -> Plan:
        cells = [
            # In a fixed order, so that both tables share the training on P+U.
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
        del models  # ablations always use PHASE-Net
        return Plan(name, tuple(Cell(v, d, model, (d,), d) for v, model in variants.items() for d in domains))

    return plan


def _figures(models: Sequence[str]) -> Plan:
    cells = tuple(Cell(m, d, _model(m), (d,), d) for m in models for d in ("pure", "ubfc_rppg"))
    return Plan("figures", cells, view="waves")


def _study(models: Sequence[str]) -> Plan:
    """Return all models on all worlds, and the ablations on the difficult worlds only, to save time."""
    cells = _leave_one_out({m: _model(m) for m in models}, WORLDS, WORLDS)
    if "phasenet-stream" in models:
        variants = {v: Model("phasenet-stream", o) for v, o in MODULES.items() if o}
        cells += _leave_one_out(variants, WORLDS, HARD_WORLDS)
    return Plan("study", cells, worlds=True)


def _model(name: str) -> Model:
    """Return a registered network or method; an unknown name is an error that lists the choices."""
    known = {*registry.names("nn"), *registry.names("methods")}
    if name not in known:
        raise UnknownNameError("network or method", name, known)
    return Model(name)


def _phasenet(**options: Any) -> Model:
    """Return PHASE-Net with options; those of the paper are left out, so that tables share its training."""
    return Model("phasenet", {k: v for k, v in options.items() if PAPER_OPTIONS.get(k) != v})


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
    """Return the names of all tables and figures."""
    return list(_PLANS)


def make_plan(name: str, models: Sequence[str] = ()) -> Plan:
    """Return the plan of a table or figure, for the models of the paper or for those given."""
    if name not in _PLANS:
        raise UnknownNameError("table or figure", name, _PLANS)
    make, default_models = _PLANS[name]
    for model in models:
        _model(model)
    return make(tuple(models) or default_models)


def with_training(plan: Plan, training: str) -> Plan:
    """Return the plan with its networks trained "equal", as "published", or "both", in two rows each.

    Classical methods and networks without a published training stay as they are.
    """
    if training not in TRAININGS:
        raise UnknownNameError("training", training, TRAININGS)
    cells: list[Cell] = []
    for cell in plan.cells:
        published = replace(cell, model=replace(cell.model, training="published"))
        if training == "equal" or plan.view == "count" or not has_published_training(cell.model):
            cells.append(cell)
        elif training == "published":
            cells.append(published)
        else:
            cells += [cell, replace(published, row=f"{cell.row}{PUBLISHED_ROW}")]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    return replace(plan, cells=tuple(sorted(cells, key=lambda cell: rows.index(cell.row))))


def has_published_training(model: Model) -> bool:
    """Whether the file of a network states how its authors trained it; needs torch."""
    return model.trainable and hasattr(registry.load("nn", model.name), "TRAINING")
