"""What ZeRO uses the two halves of an all-reduce for: parameters are gathered from shards, gradients scattered to them.

Told by the logical bytes of a step's operations, whether they are the library's or made of sends; T is the parameters.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.collectives.traffic import logical_bytes
from conformance.verdict import Witness
from conformance.zero import traffic_programs as programs
from conformance.zero.stage_traffic import (
    GATHERS,
    REDUCTIONS,
    Run,
    Sizes,
    Step,
    data,
    passes_of,
    sizes_of,
    steps_of,
    told,
)
from fixtures.world.outcome import Outcome, Outcomes

LAYERS, WIDTH, STEPS = 6, 60, 3  # equal layers, which 2, 3 and 4 ranks divide by rows

stages = pytest.mark.parametrize(
    ("stage", "name"), [("1", "ShardedOptimizer"), ("2", "Zero2Optimizer"), ("3", "fully_shard")], ids=["1", "2", "3"]
)
ANY_STAGE = ["ShardedOptimizer|Zero2Optimizer|fully_shard"]


def _observe(subject: Subject, name: str, stage: str) -> Outcomes:
    subject.require(name)
    return subject.run(programs.train, 3, stage, num_layers=LAYERS, width=WIDTH, steps=STEPS)


def _bytes(operations: Run, kinds: frozenset[str]) -> Fraction:
    return logical_bytes([op for op in operations if op.kind in kinds])


def _gathered(step: Step, sizes: Sizes, stage: str) -> Fraction:
    """Logical bytes by which parameters become whole: in the update, or in the forward pass of stage 3.

    Sends of a stage 1 that reduces by sends, too, are gathers as far as they go beyond one reduction.
    """
    if stage == "3":
        return sum((found.gathered_forward for found in passes_of(step, sizes)), Fraction(0)) / sizes.whole(Fraction(1))
    moving = data(step.update, sizes)
    gathers, sends = _bytes(moving, GATHERS), _bytes(moving, frozenset({"send"}))
    reduced_before = _reductions_before(step, sizes)
    return gathers or (sends if reduced_before else max(Fraction(0), sends - sizes.share()))


def _reductions_before(step: Step, sizes: Sizes) -> bool:
    """Whether gradients were reduced before the sends of the update: in backward, by the library, or by the caller."""
    early = data([op for run in step.backward for op in run], sizes)
    return bool(early or data(step.averaging, sizes) or _bytes(data(step.update, sizes), REDUCTIONS))


@claim("collectives.allgather.use", provides=ANY_STAGE)
@stages
def test_parameters_are_gathered_from_their_shards(subject: Subject, judge: Judge, stage: str, name: str) -> None:
    outcomes = _observe(subject, name, stage)
    sizes = sizes_of(outcomes[0], len(outcomes))
    for outcome in outcomes:
        for index, step in enumerate(steps_of(outcome)):
            if (gathered := _gathered(step, sizes, stage)) < sizes.share() - sizes.padding_bytes:
                judge.violated(
                    f"rank {outcome.rank}, step {index}: {float(gathered):,.0f} bytes are gathered, of parameters that "
                    f"other ranks have updated or hold",
                    expected=f"an all-gather: T(N-1)/N = {float(sizes.share()):,.0f} bytes",
                    observed=told(data(step.own, sizes)),
                    witness=Witness.TRACE,
                    outcomes=outcomes,
                )
    _told(judge, outcomes, sizes, "parameters are gathered", "in each pass" if stage == "3" else "after the update")


@claim("collectives.reduce-scatter.use", provides=ANY_STAGE)
@stages
def test_gradients_are_scattered_to_who_updates_them(subject: Subject, judge: Judge, stage: str, name: str) -> None:
    outcomes = _observe(subject, name, stage)
    if outcomes[0].value["wants_mean"]:
        judge.not_provided("it expects gradients that are averaged already: how they are reduced is not its own")
    sizes = sizes_of(outcomes[0], len(outcomes))
    for outcome in outcomes:
        for index, step in enumerate(steps_of(outcome)):
            if fault := _scatter_fault(step, sizes, outcome):
                judge.violated(
                    f"rank {outcome.rank}, step {index}: {fault}",
                    expected=f"a reduce-scatter: T(N-1)/N = {float(sizes.share()):,.0f} bytes, and no all-reduce",
                    observed=told(data(step.own, sizes)),
                    witness=Witness.TRACE,
                    outcomes=outcomes,
                )
    _told(judge, outcomes, sizes, "gradients are scattered", "and never all-reduced")


def _scatter_fault(step: Step, sizes: Sizes, outcome: Outcome) -> str:
    moving = data(step.own, sizes)
    whole = sum(op.num_bytes for op in moving if op.kind == "all_reduce")
    if whole > outcome.value["root_bytes"]:
        return f"gradients of {whole:,} bytes are all-reduced: every rank gets the sums that others update with, too"
    scattered = _bytes(moving, REDUCTIONS) or _bytes(moving, frozenset({"send"}))
    if scattered < sizes.share() - sizes.padding_bytes:
        return f"only {float(scattered):,.0f} bytes of gradients are reduced"
    return ""


def _told(judge: Judge, outcomes: Outcomes, sizes: Sizes, what: str, when: str) -> None:
    judge.holds(
        expected=f"{what} by T(N-1)/N = {float(sizes.share()):,.0f} bytes, {when}",
        observed=told(data(steps_of(outcomes[0])[-1].own, sizes)),
        witness=Witness.TRACE,
        message=f"T = {sizes.parameter_bytes:,} bytes on {len(outcomes)} ranks: {what} {when}",
        examples=STEPS * len(outcomes),
    )
