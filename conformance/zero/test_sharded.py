"""What each ZeRO stage shards: every kind of state is whole on every rank, or cut into one share for each."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.verdict import Tier, Witness
from conformance.zero.expected_memory import KINDS, SHARDED
from conformance.zero.held_memory import Held, wrong_kind
from conformance.zero.peaks import (
    GATHERED_UNITS,
    KEPT_UNITS,
    ROUNDING,
    Chain,
    are_kept_for_backward,
    in_units,
    kept_after_evaluation,
    run,
    whole_too_long,
)
from conformance.zero.scales import MOMENT, PROVIDES, Case, Layers, Scales, cases

MODEL: Layers = (((48, 24), (48,)), ((24, 48),), ((5,), (3, 7)))  # no number of ranks divides all of it

stages = pytest.mark.parametrize(
    "stage",
    [
        pytest.param("ddp", marks=claim("zero.sharded.ddp", provides=[PROVIDES["ddp"]])),
        pytest.param("1", marks=claim("zero.sharded.1", provides=[PROVIDES["1"]])),
        pytest.param("2", marks=claim("zero.sharded.2", provides=[PROVIDES["2"]])),
        pytest.param("3", marks=claim("zero.sharded.3", provides=[PROVIDES["3"]])),
    ],
)


@stages
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_each_kind_of_state_is_whole_or_shared(subject: Subject, judge: Judge, stage: str, world_size: int) -> None:
    scales = Scales(subject, judge, stage, may_keep_gradient=stage == "1")
    for rule in scales.rules("adam"):
        case = Case(world_size=world_size, layers=MODEL, rule=rule)
        ranks, cut = _weigh(scales, case)
        judge.holds(
            expected=_expected(scales, case),
            observed="; ".join(f"{kind} {_range([rank.of(kind) for rank in ranks])}" for kind in KINDS),
            witness=Witness.MEMORY,
            unit="bytes",
            message=_message(stage, cut),
        )


@stages
def test_drawn_models_are_sharded_alike(subject: Subject, judge: Judge, stage: str) -> None:
    scales = Scales(subject, judge, stage, may_keep_gradient=stage == "1")

    def body(case: Case) -> None:
        ranks, _ = _weigh(scales, case)
        judge.holds(
            expected=_expected(scales, case),
            observed="; ".join(f"{kind} {_range([rank.of(kind) for rank in ranks])}" for kind in KINDS),
            witness=Witness.MEMORY,
            unit="bytes",
            message="the same for drawn models",
        )

    rules = scales.rules("adam", "momentum", "sgd", "adamw")
    judge.forall(cases(2, 3, 4, rules=rules), body, max_examples=5)


@claim("zero.sharded.3", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [2, 4])
def test_a_unit_is_whole_only_while_it_computes(subject: Subject, judge: Judge, world_size: int) -> None:
    chain = Chain(world_size=world_size, num_layers=10, width=96)
    reports = run(subject, chain, "3")
    if wrong := whole_too_long(chain, reports):
        judge.violated(
            wrong,
            expected=f"at most {GATHERED_UNITS}: one that computes, the next, and the buffer that one arrives in",
            observed=f"layer by layer {in_units(chain, reports[0])}",
            witness=Witness.MEMORY,
            unit="units",
        )
    judge.holds(
        expected=f"at most {GATHERED_UNITS}"
        if reports[0]["chooses"]
        else "no unit that neither has computed nor is next",
        observed=in_units(chain, reports[0]),
        witness=Witness.MEMORY,
        unit="units",
        message="units that are whole while layers compute, one after the other",
        examples=world_size,
    )
    _judge_released(judge, chain, reports)


@claim("zero.sharded.3", provides=["fully_shard"], tier=Tier.CONTRACT)
def test_no_unit_stays_whole_after_an_evaluation(subject: Subject, judge: Judge) -> None:
    chain = Chain(world_size=2, num_layers=6, width=96)
    reports = run(subject, chain, "3")
    if not reports[0]["chooses"] and are_kept_for_backward(chain, reports):
        judge.not_provided("each unit stays whole from its forward to its backward, which cannot be chosen")
    judge.at_most(
        kept_after_evaluation(chain, reports),
        KEPT_UNITS + ROUNDING,
        witness=Witness.MEMORY,
        unit="units",
        message="units that are whole after a forward pass under no_grad, which no backward follows",
    )


@claim("zero.sharded.3", provides=["fully_shard"], tier=Tier.CONTRACT)
def test_units_that_are_kept_for_the_backward_are_kept_no_longer(subject: Subject, judge: Judge) -> None:
    chain = Chain(world_size=3, num_layers=6, width=96)
    _judge_released(judge, chain, run(subject, chain, "3", keep=True))


def _judge_released(judge: Judge, chain: Chain, reports: list[dict[str, Any]]) -> None:
    """When backward has ended, nothing but the shards of the gradients is there on top of what was there before."""
    fullest = max(report["after"] for report in reports)
    judge.that(
        expect.at_most(chain.units(fullest), chain.share + ROUNDING),
        witness=Witness.MEMORY,
        unit="units",
        message=f"what backward leaves on a rank of {chain.world_size}: its share of the gradients",
    )


def _weigh(scales: Scales, case: Case) -> tuple[list[Held], str]:
    """The readings, and how shares are cut; ends the check where there are none."""
    (ranks,) = scales.weigh(case, MOMENT[scales.stage])
    finding = wrong_kind(scales.stage, scales.model(case.layers), scales.widths(case.rule), ranks)
    if finding.wrong:
        scales.broken(finding, ranks, case)
    told = [] if finding.shares is None else [finding.shares.cut, scales.choice]
    return ranks, "; ".join(filter(None, told))


def _expected(scales: Scales, case: Case) -> str:
    """Bytes of each kind, a share of it where the stage shards it."""
    widths, numel = scales.widths(case.rule), scales.model(case.layers).numel
    parts = {kind: case.world_size if kind in SHARDED[scales.stage] else 1 for kind in KINDS}
    return "; ".join(f"{kind} {widths.of(kind) * numel / part:,.0f}" for kind, part in parts.items())


def _range(values: list[int]) -> str:
    return f"{min(values):,}" if min(values) == max(values) else f"{min(values):,} to {max(values):,}"


def _message(stage: str, cut: str) -> str:
    shared = " and ".join(SHARDED[stage]) or "nothing"
    return f"sharded: {shared}" + (f" ({cut})" if cut else "")
