"""One run over tiny checks and four implementations: each way to end has its verdict, and nothing is missing."""

from __future__ import annotations

import pytest

PROGRAMS = """
import os, torch
import torch.distributed as dist

def total(ctx):
    return ctx.impl.call("all_reduce", tensor=torch.ones(3), group=None)

def raises_on_one(ctx):
    if ctx.rank == 1:
        raise RuntimeError("one of us fails")

def waits(ctx):
    if ctx.rank == 0:
        dist.recv(torch.ones(1), src=1)
    else:
        dist.recv(torch.ones(1), src=0)

def dies(ctx):
    print("last words", flush=True)
    os.abort()
"""

CHECKS = """
import programs
import pytest
import torch
from hypothesis import strategies as st
from conformance.checks import claim
from conformance.verdict import Witness

@claim("collectives.values.allreduce", provides=["all_reduce"])
@pytest.mark.parametrize("world_size", [1, 2])
def test_sum(subject, judge, world_size):
    for value in subject.run(programs.total, world_size).values:
        judge.expect(value, torch.full((3,), float(world_size)), message="sum")

@claim("collectives.values.allgather", provides=["all_reduce"])
def test_wrong(subject, judge):
    judge.expect([1, 2, 3], [1, 2, 4], witness=Witness.TRACE, unit="messages", message="steps")

@claim("collectives.allgather.bytes")
def test_needs_what_is_wrong(subject, judge):
    judge.violated("also wrong", expected=1, observed=2)

@claim("collectives.values.broadcast", tier="contract")
def test_raises(subject, judge):
    subject.run(programs.raises_on_one, 2)

@claim("collectives.agreement")
def test_waits(subject, judge):
    subject.run(programs.waits, 2)

@claim("collectives.tree.bytes")
def test_dies(subject, judge):
    subject.run(programs.dies, 2)

@claim("collectives.tree.steps", provides=["tree_allreduce|ring_allreduce"])
def test_lacking(subject, judge):
    raise AssertionError("is not run")

@claim("collectives.ring.bytes")
def test_silent(subject, judge):
    pass

@claim("collectives.ring.steps")
def test_faulty(subject, judge):
    assert subject is None

@claim("collectives.allgather.steps")
def test_without_witness(subject, judge):
    judge.inconclusive("no account of the wire here")

@claim("collectives.reduce-scatter.bytes", tier="exotic")
def test_property(subject, judge):
    judge.forall(st.integers(0, 100), lambda case: judge.at_most(case, 41, message="the case"))

@claim("collectives.reduce-scatter.steps")
def test_property_holds(subject, judge):
    judge.forall(st.integers(0, 100), lambda case: judge.at_most(case, 100, message="the case"))
"""

MINE = """
import torch.distributed as dist
def all_reduce(tensor):
    dist.all_reduce(tensor)
    return tensor
"""

DECLARES = (
    MINE
    + """
MANIFEST = {"deviates": {
    "collectives.values.allgather": {"reason": "known", "source": "an issue"},
    "collectives.values.allreduce": {"reason": "was so once", "source": "an old issue"},
}}
"""
)

EXITS = MINE + "\nimport sys\nsys.exit(3)\n"

STUB = "def all_reduce(tensor):\n    '''Not yet.'''\n    raise NotImplementedError\n"


@pytest.fixture(scope="module")
def done(make_place):
    files = {
        "programs.py": PROGRAMS,
        "test_checks.py": CHECKS,
        "mine.py": MINE,
        "declares.py": DECLARES,
        "exits.py": EXITS,
        "stub.py": STUB,
    }
    impls = [f"--impl={name}.py" for name in ("mine", "declares", "exits", "stub")]
    return make_place(files).run(*impls)


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        ("test_sum[1]", "holds"),
        ("test_sum[2]", "holds"),
        ("test_wrong", "violated"),
        ("test_needs_what_is_wrong", "blocked"),
        ("test_raises", "crashes"),
        ("test_waits", "hangs"),
        ("test_dies", "crashes"),
        ("test_lacking", "not-provided"),
        ("test_silent", "suite-error"),
        ("test_faulty", "suite-error"),
        ("test_without_witness", "inconclusive"),
        ("test_property", "violated"),
        ("test_property_holds", "holds"),
    ],
)
def test_each_ending_of_a_check_has_its_verdict(done, case, verdict):
    assert done.verdict(case, "mine.py") == verdict


def test_every_check_of_every_implementation_is_reported(done):
    assert done.record["collected"] == len(done.record["results"])
    checked = [r for r in done.record["results"] if r["verdict"] != "not-checked"]
    assert len(checked) == 4 * 13


def test_exit_status_is_1_when_something_is_broken(done):
    assert done.status == 1
    assert done.record["run"]["exit_status"] == 1


def test_evidence_names_what_was_expected_observed_and_by_which_witness(done):
    result = done.result("test_wrong", "mine.py")
    assert (result["expected"], result["observed"], result["unit"]) == ("4", "3", "messages")
    assert result["witness"] == "trace"
    assert "item 2" in result["message"]


def test_only_failures_carry_the_hint_of_the_ledger(done):
    assert done.result("test_wrong", "mine.py")["hint"]["fa"]
    assert not done.result("test_sum[1]", "mine.py")["hint"]["en"]


def test_property_names_the_smallest_case_and_counts_examples(done):
    broken = done.result("test_property", "mine.py")
    assert "falsified by 42" in broken["message"]
    assert done.result("test_property_holds", "mine.py")["examples"] == 25


def test_blocked_result_names_the_broken_claim_that_it_needs(done):
    assert done.result("test_needs_what_is_wrong", "mine.py")["blocked_by"] == "collectives.values.allgather"


def test_rerun_command_chooses_the_case_and_the_implementation(done):
    assert done.result("test_raises", "mine.py")["rerun"].endswith(
        "::test_raises[mine.py]' --impl=mine.py --report=reports/rerun"
    )


def test_ranks_of_a_crash_say_how_they_ended_and_what_they_printed(done):
    result = done.result("test_dies", "mine.py")
    assert [rank["ending"] for rank in result["ranks"]] == ["killed", "killed"]
    assert "last words" in result["ranks"][0]["output"]


def test_hand_in_that_declares_deviations_is_judged_like_any_other(done):
    assert done.verdict("test_wrong", "declares.py") == "violated"
    assert done.verdict("test_sum[1]", "declares.py") == "holds"


def test_module_that_exits_while_imported_crashes_every_check_with_that_reason(done):
    results = [r for r in done.record["results"] if r["impl"] == "exits.py" and r["verdict"] != "not-checked"]
    assert {r["verdict"] for r in results} == {"crashes"}
    assert "SystemExit" in results[0]["message"]


def test_name_that_raises_not_implemented_is_not_provided(done):
    assert done.verdict("test_sum[2]", "stub.py") == "not-provided"


def test_terminal_shows_a_table_and_a_card_for_each_broken_claim(done):
    assert "collectives.values.allgather violated (mine.py, core)" in done.text
    assert "implementation  section" in done.text
    assert "stub.py) provides no name of the contract" in done.text


def test_claims_without_any_check_are_shown_as_not_checked(done):
    unchecked = {r["claim"] for r in done.record["results"] if r["verdict"] == "not-checked"}
    assert "trouble.missing-broadcast" in unchecked
