"""Points are earned by what holds, and by nothing else; what the suite owes an answer for is open."""

from __future__ import annotations

import pytest

from conformance.grading import points
from conformance.grading.rubric import Rubric
from conformance.verdict import Result, Tier, Verdict

OURS = [Verdict.SUITE_ERROR, Verdict.LOST, Verdict.INCONCLUSIVE, Verdict.NOT_CHECKED]
WORTH_NOTHING = [verdict for verdict in Verdict if verdict not in (Verdict.HOLDS, *OURS)]


def _rubric(credit: str = "cases") -> Rubric:
    weights = {("a", Tier.CORE): 3.0, ("a", Tier.CONTRACT): 1.0, ("b", Tier.CORE): 2.0}
    return Rubric(
        name="r",
        sha256="0" * 64,
        assigned=frozenset({"DataParallel"}),
        weights=weights,
        demanded=frozenset(weights),
        credit=credit,
    )


def _results(*verdicts: Verdict, claim: str = "a", tier: Tier = Tier.CORE, impl: str = "mine") -> list[Result]:
    return [
        Result(claim=claim, case=str(n), tier=tier, impl=impl, verdict=verdict) for n, verdict in enumerate(verdicts)
    ]


def _score(*results: Result, credit: str = "cases"):
    return points.scores(results, ["mine"], _rubric(credit))["mine"]


@pytest.mark.parametrize("credit", ["cases", "whole"])
@pytest.mark.parametrize("verdict", WORTH_NOTHING)
def test_what_does_not_hold_earns_nothing_and_stays_in_the_denominator(verdict, credit):
    score = _score(*_results(verdict), credit=credit)
    assert (score.points, score.out_of, score.open) == (0, 3, 0)


@pytest.mark.parametrize("credit", ["cases", "whole"])
@pytest.mark.parametrize("verdict", OURS)
def test_what_is_not_the_hand_ins_fault_is_open(verdict, credit):
    score = _score(*_results(verdict), credit=credit)
    assert (score.points, score.out_of, score.open) == (0, 3, 3)


@pytest.mark.parametrize("verdict", WORTH_NOTHING)
def test_whole_credit_wants_every_case(verdict):
    cases = _results(Verdict.HOLDS, Verdict.SUITE_ERROR, verdict)
    score = _score(*cases, credit="whole")
    assert (score.points, score.open, score.breakdown[0].verdict) == (0, 0, verdict)


def test_cases_share_the_points_of_their_claim():
    score = _score(
        *_results(Verdict.HOLDS, Verdict.HOLDS, Verdict.LOST, Verdict.VIOLATED, Verdict.HOLDS, Verdict.HOLDS)
    )
    assert (score.points, score.open, score.out_of) == (2, 0.5, 3)
    assert score.breakdown[0].verdict is Verdict.VIOLATED


@pytest.mark.parametrize("credit", ["cases", "whole"])
def test_leaving_something_out_never_earns_more_than_getting_it_wrong(credit):
    lacking = _score(*_results(Verdict.HOLDS, Verdict.NOT_PROVIDED), credit=credit)
    wrong = _score(*_results(Verdict.HOLDS, Verdict.VIOLATED), credit=credit)
    assert lacking.points == wrong.points
    assert lacking.out_of == wrong.out_of


def test_tiers_and_claims_add_up():
    found = [
        *_results(Verdict.HOLDS),
        *_results(Verdict.VIOLATED, tier=Tier.CONTRACT),
        *_results(Verdict.HOLDS, claim="b"),
        *_results(Verdict.HOLDS, claim="c"),  # without a weight
        *_results(Verdict.VIOLATED, claim="b", impl="another"),
    ]
    score = _score(*found)
    assert (score.points, score.out_of) == (5, 6)
    assert {tier: (p.points, p.out_of) for tier, p in score.tiers.items()} == {"core": (5, 5), "contract": (0, 1)}
    assert [(line.claim, line.tier) for line in score.breakdown] == [("a", "core"), ("b", "core"), ("a", "contract")]


def test_weight_that_no_check_can_earn_is_named_and_not_in_the_denominator():
    found = _results(Verdict.HOLDS)
    assert points.info(found, ["mine"], _rubric()).unused == ("a contract", "b core")
    assert _score(*found).out_of == 3


def test_points_are_shown_with_two_decimals_at_most_and_add_up_before_they_are_rounded():
    third = [*_results(Verdict.HOLDS, Verdict.VIOLATED, Verdict.VIOLATED, claim="b")]  # 2/3 of a point
    whole = [*_results(Verdict.HOLDS, Verdict.HOLDS, Verdict.VIOLATED, tier=Tier.CONTRACT)]  # and as much again
    lines = points.lines(points.info([], [], _rubric()), points.scores([*third, *whole], ["mine"], _rubric()))
    assert [line for line in lines if line.startswith("mine")] == [
        "mine: 1.33 of 3 points (core 0.67 of 2, contract 0.67 of 1)"
    ]


def test_terminal_shows_what_was_not_earned():
    found = [*_results(Verdict.LOST), *_results(Verdict.HOLDS, claim="b")]
    lines = points.lines(points.info(found, ["mine"], _rubric()), points.scores(found, ["mine"], _rubric()))
    assert lines == [
        "r: no check earns points for a contract, which counts for nothing",
        "mine: 2 of 5 points (core 2 of 5)",
        "  not final: 3 points are open, the suite has no answer for them yet",
        "  0 of 3  a (core): lost",
    ]
