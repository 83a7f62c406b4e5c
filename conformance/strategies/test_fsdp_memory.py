"""Fully sharded data parallelism: a rank has its share of everything at rest, and within a step a unit more."""

from __future__ import annotations

import pytest

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.verdict import Witness
from conformance.zero import memory_programs
from conformance.zero.expected_memory import KINDS
from conformance.zero.held_memory import Held, wrong_kind, wrong_total
from conformance.zero.peaks import Chain, are_kept_for_backward, in_units, run
from conformance.zero.scales import Case, Layers, Scales

MODEL: Layers = (((32, 40), (32,)), ((7,), (16, 32), (1,)), ((9, 5, 2),))


@claim("strategies.fsdp.partition", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_parameters_gradients_and_optimizer_state_are_split(subject: Subject, judge: Judge, world_size: int) -> None:
    """1/N of everything that lies in the units of sharding; which modules those are is a documented choice.

    Wrappers that take every module with parameters are weighed on such modules. Who leaves all of these whole and
    shards linear layers, which hold the bulk of a model, is weighed on linear layers: the claim holds, and the
    evidence names the choice, since it is one of granularity and no fault. What lies in such units has to be split to
    the last of them: a wrapper that shards some and leaves others whole is broken in either model, and so is one whose
    units are in neither.
    """
    scales = Scales(subject, judge, "3")
    case = Case(world_size=world_size, layers=MODEL, rule="adam")
    before_step, after_step = scales.weigh(case, memory_programs.AFTER_BACKWARD, memory_programs.AFTER_STEP)
    model, widths = scales.model(case.layers), scales.widths(case.rule)
    for ranks in (before_step, after_step):
        finding = wrong_kind("3", model, widths, ranks)
        if finding.wrong:
            scales.broken(finding, ranks, case)
    assert finding.shares is not None
    judge.holds(
        expected=", ".join(f"{widths.of(kind) * model.numel / world_size:,.0f} {kind}" for kind in KINDS),
        observed=", ".join(f"{_most(after_step, kind):,} {kind}" for kind in KINDS),
        witness=Witness.MEMORY,
        unit="bytes",
        message=_with_units(
            f"the fullest rank of {world_size}, before and after the optimizer's step; {finding.shares.cut}", scales
        ),
    )


def _with_units(message: str, scales: Scales) -> str:
    return f"{message}; {scales.choice}" if scales.choice else message


def _most(ranks: list[Held], kind: str) -> int:
    return max(rank.of(kind) for rank in ranks)


@claim("strategies.fsdp.memory", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [2, 4])
def test_a_share_at_rest_and_some_units_more_within_a_step(subject: Subject, judge: Judge, world_size: int) -> None:
    scales = Scales(subject, judge, "3")
    case = Case(world_size=world_size, layers=MODEL, rule="adam")
    (ranks,) = scales.weigh(case, memory_programs.AFTER_STEP)
    model, widths = scales.model(case.layers), scales.widths(case.rule)
    finding = wrong_total("3", model, widths, ranks)
    if finding.wrong:
        scales.broken(finding, ranks, case)
    judge.holds(
        expected=f"{widths.total * model.numel / world_size:,.0f} ({widths.total}P/N)",
        observed=f"{max(rank.states for rank in ranks):,}",
        witness=Witness.MEMORY,
        unit="bytes",
        message=_with_units(f"all states of the fullest rank of {world_size} between steps", scales),
    )
    _judge_peak(subject, judge, Chain(world_size=world_size, num_layers=14, width=96))


def _judge_peak(subject: Subject, judge: Judge, chain: Chain) -> None:
    """What comes on top within a step is a matter of units, not of the model."""
    reports = run(subject, chain, "3")
    if not reports[0]["chooses"] and are_kept_for_backward(chain, reports):
        judge.not_provided(
            "a share at rest; but each unit stays whole from its forward to its backward, which cannot be chosen, "
            f"so that all {chain.num_layers} are whole between the two: the peak of this claim is that of freeing them"
        )
    rank, fullest = max(enumerate(reports), key=lambda pair: pair[1]["peak"])
    judge.that(
        expect.at_most(chain.units(fullest["peak"]), chain.most),
        witness=Witness.MEMORY,
        unit=f"units, of {chain.num_layers} in the model",
        message=(
            f"the peak of a step on top of what rank {rank} of {chain.world_size} holds at rest, with "
            f"{chain.share:.1f} units of gradient shards; layer by layer in forward: {in_units(chain, fullest)}"
        ),
    )
