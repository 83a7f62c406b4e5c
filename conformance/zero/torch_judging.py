"""Verdicts on the pattern of a stage, for the checks that set PyTorch's beside the implementation's."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.checks import Judge
from conformance.verdict import Witness
from conformance.zero.torch_patterns import KEPT, Seen, gathers, moved
from fixtures.world.outcome import Outcomes

ROOTED_LAYERS = 4


def judge_pattern(judge: Judge, found: Seen, expected: str, faults: Mapping[str, bool], witness: Witness) -> None:
    """``faults``: what may be wrong with the pattern, and whether it is."""
    wrong = [fault for fault, is_there in faults.items() if is_there]
    if wrong:
        judge.violated(
            f"{found.name} on {found.world_size} ranks: {wrong[0]}",
            expected=expected,
            observed=str(found),
            witness=witness,
        )
    judge.holds(expected=expected, observed=str(found), witness=witness, message=str(found), examples=found.world_size)


def judge_fully_sharded(judge: Judge, found: Seen) -> None:
    """The pattern of ZeRO-3."""
    judge_pattern(
        judge,
        found,
        "1/N of parameters, gradients and optimizer state; gathered in forward, unit by unit (1 pass), gathered again "
        f"and reduce-scattered in backward (2 passes, up to {KEPT:g} less for units that are kept)",
        {
            "the parameters are not sharded at rest": not found.is_sharded(found.parameters),
            "the gradients are not sharded": not found.is_sharded(found.gradients),
            "the optimizer state is not sharded": not found.optimizer_is_sharded,
            "forward does not gather every parameter once": not moved(found.forward, 1),
            "all parameters are gathered before the first layer computes": moved(found.first, 1),
            "backward does not gather the parameters again: they were kept": found.backward < 2 - KEPT,
            "backward moves more than one gathering and one reduce-scatter": (
                found.backward > 2 and not moved(found.backward, 2)
            ),
            "the step moves parameters": not moved(found.step, 0),
        },
        Witness.TRACE,
    )


def judge_kept_root(judge: Judge, outcomes: Outcomes) -> None:
    """PyTorch keeps the root unit, where that has parameters of its own: one gathering less than two for each unit."""
    units = ROOTED_LAYERS + 1
    judge.expect(
        [gathers(outcome) for outcome in outcomes],
        [2 * units - 1] * len(outcomes),
        witness=Witness.TRACE,
        message=f"all-gathers of a step of {units} units, the root among them, which PyTorch keeps for backward",
    )
