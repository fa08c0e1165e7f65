"""The estimate of a table counts clips as training does, shares trainings, and is what the docs show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from phase_rppg import nn
from phase_rppg.cli import run as phase
from phase_rppg.methods import toolbox_variants
from phase_rppg.nn import complexity
from phase_rppg.reproduce import cost_estimate, make_plan
from phase_rppg.reproduce.plan import PAPER_OPTIONS
from phase_rppg.reproduce.training_settings import get_budget

DOCS = Path(__file__).parents[2] / "docs" / "reproduce.md"


def test_clips_follow_from_subjects_frames_and_epochs() -> None:
    cost = cost_estimate.plan_cost(
        make_plan("ablation-depth"), get_budget("paper"), cost_estimate.nominal_domains()
    )
    first = cost.trainings[0]
    # 72 % of 42 subjects train; every 128 of their 1,950 frames are a clip.
    assert first.clips_per_epoch == 30 * (1950 // 128)
    assert first.clips == 30 * 15 // 4 * 4 * 15
    assert first.test_clips == 12 * 15
    assert len(cost.trainings) == 4
    flops = 2 * first.macs * (3 * first.clips + first.test_clips)
    assert first.flops == pytest.approx(flops)
    assert cost.hours(1.0) == pytest.approx(sum(one.flops for one in cost.trainings) / 1e12 / 3600)
    assert cost.hours(2.0) == pytest.approx(cost.hours(1.0) / 2)


def test_seeds_multiply_and_shared_trainings_count_once() -> None:
    domains, budget = cost_estimate.nominal_domains(), get_budget("paper")
    one, two = (
        cost_estimate.plan_cost(make_plan("ablation-lambda"), budget, domains, s) for s in ((0,), (0, 1))
    )
    assert two.hours() == pytest.approx(2 * one.hours())
    # The network of the paper is in every ablation; table 1 has trained it.
    (paper,) = cost_estimate.plan_cost(make_plan("table1", ["phasenet"]), budget, domains).trainings[:1]
    for name in ("ablation-lambda", "ablation-depth", "ablation-zas", "ablation-modules"):
        assert paper.key in {
            c.key for c in cost_estimate.plan_cost(make_plan(name), budget, domains).trainings
        }


def test_the_options_of_the_paper_are_the_defaults_of_the_network() -> None:
    config = nn.build("phasenet").config
    assert {name: getattr(config, name) for name in PAPER_OPTIONS} == PAPER_OPTIONS


def test_memory_grows_with_the_batch_and_contains_the_weights() -> None:
    one, four = (complexity.training_bytes(nn.build("physnet", size=32), batch, 64, 32) for batch in (1, 4))
    weights = 4 * sum(p.numel() * 4 for p in nn.build("physnet", size=32).parameters())
    assert four - weights == pytest.approx(4 * (one - weights), rel=0.02)


def test_the_command_prints_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert phase(["reproduce", "ablation-depth", "--plan", "--tflops", "20"]) == 0
    shown = capsys.readouterr().out
    assert "| ablation-depth | 4 | 4 |" in shown
    assert "20 TFLOP/s sustained, an assumption" in shown


def test_the_plan_of_all_tables_has_the_settings_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """With both trainings, every network of table 1 is trained twice, for each seed."""
    monkeypatch.setattr(cost_estimate, "_network_cost", lambda network, frames, batch: (16, 1, 1.0))
    plans, data = cost_estimate.all_plans(), cost_estimate.nominal_domains()
    one = cost_estimate.plan_costs(plans, None, data)
    settings = cost_estimate.CostSettings(seeds=(0, 1), training="both", budget="smoke")
    two = cost_estimate.plan_costs(plans, settings, data)
    assert len(two[0].trainings) == 2 * 2 * len(one[0].trainings)
    assert two[-1].clips < one[-1].clips
    assert (one[-1].name, two[-1].name) == (cost_estimate.SHARED, cost_estimate.SHARED)


def test_the_plan_refuses_unknown_settings_and_names_absent_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_estimate, "_network_cost", lambda network, frames, batch: (16, 1, 1.0))
    for option, value in (("--training", "publishd"), ("--balance", "x"), ("--budget", "huge")):
        assert phase(["reproduce", "--plan", option, value]) == 2
        assert "choices: " in capsys.readouterr().err
    assert phase(["reproduce", "--plan", "--model", "pos"]) == 2
    assert "phase reproduce NAME --plan" in capsys.readouterr().err
    assert phase(["reproduce", "table3", "--plan", "--data", str(tmp_path / "absent")]) == 0
    error = " ".join(capsys.readouterr().err.split())
    assert "mmpd: not found; searched" in error
    assert "its described size is used" in error


def test_the_docs_show_the_plan_of_this_version() -> None:
    page = DOCS.read_text(encoding="utf-8")
    costs = cost_estimate.plan_costs(cost_estimate.all_plans())
    assert cost_estimate.plan_table(costs) in page, "replace the table with that of phase reproduce --plan"


def test_the_parity_record_is_within_its_limits() -> None:
    """With the same images, the conventions agree; every method of rPPG-Toolbox is in the record."""
    results = Path(__file__).parents[2] / "benchmarks" / "results" / "toolbox_parity.json"
    record = json.loads(results.read_text(encoding="utf-8"))
    assert set(toolbox_variants.VARIANTS) < set(record["data"]["UBFC-rPPG"]["rows"])
    for name, limit in record["limits"].items():
        assert record["same_crops"][name] <= limit
        assert max(one[name] for one in record["whole_pipeline"].values()) <= limit
    assert record["same_crops"]["mae"] <= 0.1


def test_the_stages_before_the_formulas_are_those_of_the_toolbox() -> None:
    """Decoder, face box and reduction change no rate; the docs show the figures of the record."""
    results = Path(__file__).parents[2] / "benchmarks" / "results" / "toolbox_parity.json"
    stages = json.loads(results.read_text(encoding="utf-8"))["stages"]
    found = stages["largest_difference_bpm"]
    assert stages["identical_frames"]
    assert len(stages["recordings"]) == 7
    for stage in ("decoder", "face box", "reduction", "all"):
        assert set(found[stage]) == set(toolbox_variants.VARIANTS)
        assert max(found[stage].values()) <= 0.1, stage
    page = DOCS.read_text(encoding="utf-8")
    for rates in found.values():
        assert " | ".join(f"{rates[name]:.1f}" for name in toolbox_variants.VARIANTS) in page


def test_every_rate_is_that_of_the_code_of_the_toolbox() -> None:
    """Rates agree to 0.1 bpm, SNR to 0.1 dB and MACC to 0.01; the docs show the figures of the record."""
    results = Path(__file__).parents[2] / "benchmarks" / "results" / "toolbox_parity.json"
    record = json.loads(results.read_text(encoding="utf-8"))
    found = record["toolbox_code"]["largest_difference"]
    assert set(found) == set(toolbox_variants.VARIANTS)
    assert len(record["toolbox_code"]["recordings"]) == 7
    limits = record["limits"] | {"mae": 0.1}
    for name, differences in found.items():
        assert {q: d for q, d in differences.items() if d > limits[q]} == {}, name
    page = DOCS.read_text(encoding="utf-8")
    for name, of in found.items():
        cells = f"{of['bpm']:.1f} | {of['mae']:.1f} | {of['snr_db']:.4f} | {of['macc']:.5f}"
        assert f"| {name.upper()} | {cells} |" in page
