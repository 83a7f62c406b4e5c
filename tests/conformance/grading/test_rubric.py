"""A rubric is checked against the ledger and the contract before anything runs; what is wrong in it is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.collectives import test_values_relied as relied
from conformance.grading import rubric
from conformance.ledger import Ledger
from conformance.pipeline import test_live_activations as held
from conformance.pipeline import test_order as order
from conformance.verdict import Tier
from impls.contract import OPTIONAL

GOOD = """
name = "Two"
assigned = ["DataParallel", "collectives"]

[[weight]]
claims = ["loop.*", "faq.mean-not-sum"]
core = 2
contract = 0.5

[[weight]]
claims = ["loop.mean"]
core = 5
"""


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger.load()


@pytest.fixture
def read(tmp_path: Path, ledger: Ledger):
    def from_text(text: str) -> rubric.Rubric:
        path = tmp_path / "rubric.toml"
        path.write_text(text, encoding="utf-8")
        return rubric.read(path, ledger)

    return from_text


def test_last_weight_that_fits_a_claim_decides(read):
    weights = read(GOOD).weights
    assert (weights["loop.mean", Tier.CORE], weights["loop.step", Tier.CORE]) == (5, 2)
    assert ("loop.mean", Tier.CONTRACT) not in weights
    assert weights["loop.step", Tier.CONTRACT] == 0.5


def test_claim_that_is_the_same_as_another_is_weighed_once(read, ledger):
    twice = next(claim for claim in ledger.claims.values() if claim.same_as)
    weights = read(GOOD.replace("faq.mean-not-sum", twice.id)).weights
    assert (twice.same_as, Tier.CORE) in weights
    assert (twice.id, Tier.CORE) not in weights


def test_block_stands_for_all_its_names(read):
    assert {"DataParallel", "ring_allreduce", "broadcast"} <= read(GOOD).assigned


@pytest.mark.parametrize(
    ("asks", "covered"),
    [
        ((), True),
        (("DataParallel",), True),
        (("train_step|DataParallel",), True),
        (("DataParallel", "train_step"), False),
        (("DataParallel", "DataParallel.no_sync"), False),
    ],
    ids=str,
)
def test_only_checks_of_what_was_assigned_earn_points(read, asks, covered):
    assert read(GOOD).covers("loop.mean", Tier.CORE, asks) is covered
    assert not read(GOOD).covers("loop.mean", Tier.EXOTIC, asks)


@pytest.mark.parametrize(
    ("check", "asked"),
    [
        (relied.test_sum_is_over_the_ranks_of_the_group_only, "all_reduce"),
        (relied.test_tensors_of_the_group_only_are_gathered, "all_gather"),
        (relied.test_sum_is_scattered_over_the_ranks_of_the_group_only, "reduce_scatter"),
    ],
    ids=["sum", "gather", "scatter"],
)
def test_check_of_groups_costs_only_what_was_assigned_by_that_name(check, asked):
    marks = {mark.name: mark for mark in check.pytestmark}
    assert marks["claim"].kwargs["provides"] == (asked,)
    assert marks["optional"].args == (f"{asked}.group",)
    assert f"{asked}.group" in OPTIONAL


@pytest.mark.parametrize(
    "check",
    [
        order.test_1f1b_keeps_its_order_where_microbatches_do_not_divide,
        held.test_a_rank_holds_no_more_microbatches_than_ranks_are_behind_it,
        held.test_few_microbatches_are_all_that_is_held,
    ],
)
def test_order_of_1f1b_is_asked_of_a_pipeline_only_where_it_is_assigned(check):
    marks = {part for mark in check.pytestmark if mark.name == "optional" for part in mark.args}
    assert marks == {"train_step.1f1b"} <= set(OPTIONAL)


def test_optional_part_is_assigned_by_its_own_name(read):
    assigned = read(GOOD.replace('"DataParallel"', '"DataParallel", "DataParallel.no_sync"'))
    assert assigned.covers("loop.mean", Tier.CORE, ("DataParallel", "DataParallel.no_sync"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"loop.*"', '"lop.*"', ["lop.*", "'loop.*'"]),
        ('"loop.mean"', '"loop.meen"', ["loop.meen", "'loop.mean'"]),
        ('"DataParallel"', '"DataParalel"', ["DataParalel", "'DataParallel'"]),
        ("assigned", "asigned", ["asigned", "perhaps 'assigned'", "assigned is missing"]),
        ("core = 5", "cor = 5", ["weight 2", "perhaps 'core'"]),
        ("core = 5", "core = -5", ["weight 2", "-5"]),
        ("core = 5", "core = true", ["weight 2", "True"]),
        ('claims = ["loop.mean"]', 'claims = "loop.mean"', ["weight 2", "list"]),
        ('name = "Two"', "", ["name is missing"]),
        ('name = "Two"', 'name = "Two"\ncredit = "half"', ["cases, whole", "'half'"]),
        ("[[weight]]", "[weight]", ["two brackets"]),
        ("name", "name =", ["not TOML"]),
    ],
)
def test_what_is_wrong_is_named_with_its_nearest(read, old, new, told):
    with pytest.raises(rubric.RubricError) as error:
        read(GOOD.replace(old, new) if new != "[weight]" else GOOD.split("[[weight]]")[0] + "[weight]\ncore = 1\n")
    assert [word for word in told if word not in str(error.value)] == []


def test_rubric_that_gives_no_points_is_refused(read):
    with pytest.raises(rubric.RubricError, match="no points can be earned"):
        read('name = "x"\nassigned = ["DataParallel"]\n[[weight]]\nclaims = ["loop.mean"]\ncore = 0\n')


def test_rubric_that_does_not_exist_is_told(ledger, tmp_path):
    with pytest.raises(rubric.RubricError, match="cannot be read"):
        rubric.read(tmp_path / "none.toml", ledger)
