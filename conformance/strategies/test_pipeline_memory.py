"""A rank of a pipeline holds the states of its own stage and of no other, with the activations on top."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline.equivalence import AS_1F1B
from conformance.strategies import pipeline_programs as programs
from conformance.verdict import Witness
from fixtures.world.outcome import MemoryReading, Outcome

WIDTH, ROWS, MICRO = 96, 2, 6  # a layer has 37 KB, an activation 768 bytes
STEP_COUNT_BYTES = 4  # Adam's, for each parameter
SLACK_BYTES = 4096  # losses, numbers, notes


@claim("strategies.pipeline.memory", provides=["train_step"])
@pytest.mark.parametrize("schedule", [pytest.param("1f1b", marks=AS_1F1B), "gpipe"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_a_rank_holds_the_states_of_its_own_stage(
    subject: Subject, judge: Judge, world_size: int, schedule: str
) -> None:
    outcomes = subject.run(programs.memory, world_size, schedule, width=WIDTH, rows=ROWS, micro=MICRO)
    held = [_judge_rank(judge, outcome, schedule) for outcome in outcomes]
    judge.holds(
        expected=" | ".join(f"{_stage_bytes(outcome) * 4:,}" for outcome in outcomes),
        observed=" | ".join(f"{sum(states.values()):,}" for states in held),
        witness=Witness.MEMORY,
        unit="bytes",
        message=f"parameters, gradients and Adam's state by rank after a step under {schedule}, where each stage has a "
        "layer more than the one before; and the steps that Adam counts",
        examples=world_size,
    )


def _judge_rank(judge: Judge, outcome: Outcome, schedule: str) -> dict[str, int]:
    """The states of a rank at rest, after they have been judged, and what there is beside them."""
    readings: dict[str, MemoryReading] = {reading.name: reading for reading in outcome.memory}
    stage, where = _stage_bytes(outcome), f"rank {outcome.rank} under {schedule}"
    at_rest = dict(readings[programs.AT_REST].categories)
    counts = STEP_COUNT_BYTES * outcome.value["num_parameters"]
    wanted = {"parameters": stage, "gradients": stage, "optimizer": 2 * stage + counts}
    for category, num_bytes in wanted.items():
        if at_rest[category] != num_bytes:
            judge.violated(
                f"{where}: the {category} are not those of its own layers, and no others",
                expected=f"{num_bytes:,}",
                observed=f"{at_rest[category]:,}",
                witness=Witness.MEMORY,
                unit="bytes",
            )
    before = readings[programs.BEFORE].categories["other"]
    # In a step there may be one more gradient of each weight, before it is added to what was there.
    for name, room in ((programs.AT_REST, 0), (programs.IN_STEP, stage)):
        beside = readings[name].categories["other"] - before if name in readings else 0
        most = room + _activation_bytes(outcome)
        if beside > most:
            judge.violated(
                f"{where} has {beside:,} bytes {name} that are no state of its stage, {beside / stage:.1f} times its "
                f"parameters: weights of other stages, or more than one version of its own?",
                expected=f"at most {most:,} for activations and the like",
                observed=f"{beside:,}",
                witness=Witness.MEMORY,
            )
    return {category: at_rest[category] for category in wanted}


def _stage_bytes(outcome: Outcome) -> int:
    layers: int = outcome.value["layer_bytes"] * (outcome.rank + 1)
    return layers


def _activation_bytes(outcome: Outcome) -> int:
    """All that microbatches leave: each layer's two results, what came in, what goes out, and gradients of these."""
    each: int = outcome.value["activation_bytes"]
    return MICRO * each * (2 * (outcome.rank + 1) + 4) + SLACK_BYTES
