"""Paired bootstrap, Friedman test and critical difference against closed forms, tables and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from phase_rppg.errors import ArgumentError
from phase_rppg.evaluate import plots, significance


def errors(seed: int, subjects: int = 30) -> dict[str, np.ndarray]:
    """Three models: b is 1 bpm worse than a on every subject, c is a with noise."""
    rng = np.random.default_rng(seed)
    a = rng.exponential(4.0, (1, subjects))
    return {"a": a, "b": a + 1.0, "c": np.abs(a + rng.normal(0, 0.05, a.shape))}


def test_a_constant_difference_is_found_although_subjects_vary_much_more() -> None:
    """Pairing removes the spread of the subjects: the interval has no width."""
    found = significance.paired_difference(*((k, errors(0)[k]) for k in "ab"))
    assert found.difference == pytest.approx(-1)
    assert (found.interval.low, found.interval.high) == pytest.approx((-1, -1))
    assert found.better == "a"
    assert found.p_value < 0.01


def test_equal_models_are_not_told_apart() -> None:
    found = significance.paired_difference(("a", errors(1)["a"]), ("c", errors(1)["c"]))
    assert found.better is None
    assert found.p_value > 0.05
    swapped = significance.paired_difference(("c", errors(1)["c"]), ("a", errors(1)["a"]))
    assert swapped.difference == pytest.approx(-found.difference)


def test_few_subjects_that_agree_are_no_proof() -> None:
    """All draws over two subjects have the same sign; five subjects are one too few for 95 %."""
    for subjects, better in ((2, None), (5, None), (6, "a")):
        found = significance.paired_difference(*((k, errors(0, subjects)[k]) for k in "ab"))
        assert found.interval.high < 0
        assert found.p_value == pytest.approx(2.0 ** (1 - subjects))
        assert found.better == better


def test_the_spread_of_seeds_widens_the_interval() -> None:
    base = errors(2)["a"]
    steady = np.repeat(base + 1, 3, 0)
    shaky = np.concatenate([base - 2, base + 1, base + 4])  # the same mean over seeds
    narrow, wide = (significance.paired_difference(("x", x), ("a", base)) for x in (steady, shaky))
    assert narrow.difference == pytest.approx(wide.difference)
    assert wide.interval.high - wide.interval.low > narrow.interval.high - narrow.interval.low + 1


def test_the_interval_contains_the_true_difference_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(100):
        a = rng.normal(5, 1, (1, 40))
        b = a + rng.normal(0.3, 0.5, a.shape)
        found = significance.paired_difference(("b", b), ("a", a), draws=300)
        hits += found.interval.low <= 0.3 <= found.interval.high
    assert 86 <= hits <= 100


def test_the_rank_test_is_that_of_scipy_and_of_the_table_of_nemenyi() -> None:
    rng = np.random.default_rng(4)
    table = {name: rng.exponential(3 + shift, (1, 20)) for name, shift in (("x", 0), ("y", 2), ("z", 6))}
    found = significance.rank_test(table)
    assert found is not None
    expected = stats.friedmanchisquare(*(values[0] for values in table.values()))
    assert found.chi_squared == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert sum(found.ranks) == pytest.approx(6)
    # Demšar 2006, table 5: q = 2.343 for three models.
    assert found.critical_difference == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 20)), abs=2e-3)
    assert list(found.ranks) == sorted(found.ranks)


def test_ties_share_their_rank_and_form_a_group() -> None:
    same = np.ones((1, 10))
    found = significance.rank_test({"a": same, "b": same, "c": 9 * same})
    assert found is not None
    assert found.ranks == (1.5, 1.5, 3.0)
    assert found.groups == (("a", "b"),)
    assert significance.rank_test({"a": same, "b": same}) is None
    flat = significance.rank_test({"a": same, "b": same, "c": same})
    assert flat is not None
    assert flat.p_value == pytest.approx(1)


def test_groups_overlap_where_neighbours_are_close() -> None:
    names, ranks = ("a", "b", "c", "d"), (1.0, 1.8, 2.6, 4.6)
    assert significance._groups(names, ranks, 1.0) == (("a", "b"), ("b", "c"))
    assert significance._groups(names, ranks, 1.9) == (("a", "b", "c"),)
    assert significance._groups(names, ranks, 0.1) == ()


def test_only_common_subjects_are_compared() -> None:
    found = significance.subject_errors(
        {"a": [[("s1", 1.0), ("s1", 3.0), ("s2", 5.0)]], "b": [[("s2", 1.0), ("s3", 2.0)], [("s2", 7.0)]]}
    )
    assert found["a"].tolist() == [[5.0]]
    assert found["b"].tolist() == [[1.0], [7.0]]
    with pytest.raises(ArgumentError, match="same subjects"):
        significance.paired_difference(("a", np.ones((1, 3))), ("b", np.ones((1, 4))))


def test_the_diagram_shows_every_model_with_its_rank() -> None:
    found = significance.rank_test(errors(5))
    assert found is not None
    (axes,) = plots.critical_difference(found, title="t").axes
    texts = [text.get_text() for text in axes.texts]
    for name, rank in zip(found.names, found.ranks, strict=True):
        assert f"{name} ({rank:.2f})" in texts
