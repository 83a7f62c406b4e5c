from __future__ import annotations

from typing import Any

import pytest

from conformance.verdict import Verdict
from reports import build, score
from tests.reports import sample

Report = dict[str, Any]


@pytest.fixture(scope="module")
def report() -> Report:
    return build.build(sample.record())


def test_every_counted_claim_is_in_the_denominator_of_every_implementation(report: Report) -> None:
    counted = len(score.counted_claims(report)) - len(score.suite_only(report))
    assert {entry.overall.total for entry in score.scores(report)} == {counted}


def test_a_fact_under_two_ids_is_counted_once(report: Report) -> None:
    assert "loop.mean" in score.counted_claims(report)
    assert "faq.mean-not-sum" not in score.counted_claims(report)


def test_one_broken_case_breaks_the_claim(report: Report) -> None:
    cells = score.cells(report)["collectives.agreement", "mine"]
    assert [(cell.tier, cell.verdict) for cell in cells] == [("core", "holds"), ("exotic", "violated")]


def test_a_cell_counts_every_verdict_the_worst_first() -> None:
    verdicts = [Verdict.HOLDS, Verdict.VIOLATED, Verdict.CRASHES, Verdict.VIOLATED, Verdict.NOT_PROVIDED]
    extra = [sample.result("loop.same-init", "mine", v, case=str(n)) for n, v in enumerate(verdicts)]
    [cell] = score.cells(build.build(sample.record(extra=tuple(extra))))["loop.same-init", "mine"]
    assert cell.counts == (("crashes", 1), ("violated", 2), ("holds", 2), ("not-provided", 1))
    assert cell.named == ("crashes", "violated")


def test_tiers_are_scored_apart(report: Report) -> None:
    mine = score.scores(report)[2]
    assert mine.tiers["core"].decided > 0
    assert (mine.tiers["exotic"].holds, mine.tiers["exotic"].decided) == (1, 2)
    assert mine.tiers["contract"].decided == 0


@pytest.mark.parametrize(
    "verdict",
    [Verdict.NOT_CHECKED, Verdict.NOT_PROVIDED, Verdict.BLOCKED, Verdict.INCONCLUSIVE, Verdict.LOST],
)
def test_what_was_not_decided_is_not_in_the_denominator(verdict: Verdict) -> None:
    assert score.Score(counts={"holds": 2, verdict.value: 5}).decided == 2


@pytest.mark.parametrize("verdict", [Verdict.VIOLATED, Verdict.HANGS, Verdict.CRASHES, Verdict.DEVIATES])
def test_what_was_decided_against_is_in_the_denominator(verdict: Verdict) -> None:
    assert score.Score(counts={"holds": 2, verdict.value: 5}).decided == 7


@pytest.mark.parametrize("verdict", list(Verdict))
def test_nothing_hides_a_broken_case(verdict: Verdict) -> None:
    found = score.worst([verdict.value, "violated"])
    assert found != "holds"
    assert found in (*score.BROKEN, "suite-error")


def test_no_case_at_all_is_not_run() -> None:
    assert score.worst([]) == score.NOT_RUN


def test_the_suite_is_no_implementation(report: Report) -> None:
    assert [entry.impl for entry in score.scores(report)] == ["reference", "torch", "mine"]
    assert score.suite_score(report).counts == {"holds": 2}
