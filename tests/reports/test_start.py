from __future__ import annotations

from typing import Any

from conformance.verdict import Tier, Verdict
from reports import build, start
from tests.reports import sample


def report(*extra: Any) -> dict[str, Any]:
    return build.build(sample.record(extra=extra))


def test_an_implementation_without_a_failure_has_no_start() -> None:
    assert start.start(report(), "reference") is None
    assert [found.impl for found in start.starts(report())] == ["torch", "mine"]


def test_the_start_is_the_failure_behind_which_most_claims_wait() -> None:
    found = start.start(report(), "mine")
    assert found is not None
    assert (found.claim["id"], found.verdict, found.tier) == ("collectives.ring.bytes", "violated", "core")
    assert found.waiting == ("collectives.ring.steps",)
    assert "collectives.ring.bytes" in found.rerun


def test_what_needs_a_broken_claim_is_no_start() -> None:
    """Values come before bytes, which need them, whatever waits behind those."""
    values = "collectives.values.allreduce"
    broken = sample.result(values, "mine", Verdict.VIOLATED, case="n=5")
    waits = sample.result("loop.same-init", "mine", Verdict.BLOCKED, blocked_by=values)
    found = start.start(report(broken, waits), "mine")
    assert found is not None
    assert found.claim["id"] == "collectives.values.allreduce"


def test_a_core_failure_comes_before_an_exotic_one() -> None:
    exotic = sample.result("loop.same-init", "reference", Verdict.VIOLATED, case="n=8", tier=Tier.EXOTIC)
    core = sample.result("loop.mean", "reference", Verdict.VIOLATED, case="n=2")
    for extra in ((exotic, core), (core, exotic)):
        found = start.start(report(*extra), "reference")
        assert found is not None
        assert found.claim["id"] == "loop.mean"


def test_a_core_failure_comes_before_a_contract_one_that_it_needs() -> None:
    """What breaks beyond plain use only does not explain a plain failure downstream of it."""
    core = sample.result("loop.step", "reference", Verdict.VIOLATED, case="n=2")
    contract = sample.result("loop.mean", "reference", Verdict.VIOLATED, case="n=8", tier=Tier.CONTRACT)
    found = start.start(report(contract, core), "reference")
    assert found is not None
    assert (found.claim["id"], found.tier) == ("loop.step", "core")


def test_a_failure_of_the_suite_comes_after_one_of_the_implementation() -> None:
    found = start.start(report(sample.result("loop.same-init", "torch", Verdict.VIOLATED, tier=Tier.EXOTIC)), "torch")
    assert found is not None
    assert found.claim["id"] == "loop.same-init"


def test_needs_in_a_circle_still_have_a_start() -> None:
    looped = report()
    for claim in looped["claims"]:
        claim["needs"] = [other["id"] for other in looped["claims"] if other is not claim]
    assert start.start(looped, "mine") is not None


def test_what_was_lost_is_no_start_where_something_was_seen_to_break() -> None:
    lost = sample.result("collectives.values.allreduce", "reference", Verdict.LOST, case="n=8")
    assert (found := start.start(report(lost), "reference")) is not None
    assert found.verdict == "lost"
    hangs = sample.result("collectives.ring.bytes", "reference", Verdict.HANGS, case="n=8")
    assert (found := start.start(report(lost, hangs), "reference")) is not None
    assert (found.claim["id"], found.verdict) == ("collectives.ring.bytes", "hangs")
