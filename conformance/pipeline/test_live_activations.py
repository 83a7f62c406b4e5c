"""How many microbatches' activations each rank really holds: what autograd keeps of the check's own stages."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.pipeline import alive, executed, offered
from conformance.pipeline.equivalence import AS_1F1B, schedules
from conformance.pipeline.performed import perform
from conformance.pipeline.test_order import promises
from conformance.verdict import Witness
from fixtures.world.per_rank import PerRank

CORE = claim("pipeline.1f1b.memory", provides=["train_step"])
CONTRACT = claim("pipeline.1f1b.memory", tier="contract", provides=["train_step"])


def judge_held(subject: Subject, judge: Judge, world_size: int, count: int) -> None:
    """At most min(M, N-r) microbatches are alive on rank r under 1F1B."""
    bounds = [min(count, world_size - rank) for rank in range(world_size)]
    reports = offered.run(subject, alive.alive, world_size, "1f1b", count, PerRank(bounds)).values
    most = [report["most"] for report in reports]
    assert min(most) >= 0
    if not reports[0]["schedule"] and any(map(int.__gt__, most, bounds)):
        found = perform(subject, judge, "1f1b", world_size, count).lists
        if executed.wrong("gpipe", found, count) is None and not promises(subject, "1f1b"):
            judge.not_provided(f"{subject.name} takes no schedule, and what it runs is gpipe")
    for rank, (held, bound) in enumerate(zip(most, bounds, strict=True)):
        message = f"microbatches alive at once on rank {rank} of {world_size}, of {count}"
        judge.at_most(held, bound, witness=Witness.MEMORY, message=message, unit="microbatches", data={"held": most})
    for rank, report in enumerate(reports):
        message = f"outputs of an earlier step that rank {rank} holds when the next has ended"
        judge.at_most(report["left"], 0, witness=Witness.MEMORY, message=message, unit="microbatches")


@AS_1F1B
@pytest.mark.parametrize("schedule", schedules("1f1b", check_of=CORE))
@pytest.mark.parametrize(("world_size", "count"), [(2, 6), (3, 8)])
def test_a_rank_holds_no_more_microbatches_than_ranks_are_behind_it(
    subject: Subject, judge: Judge, schedule: str, world_size: int, count: int
) -> None:
    judge_held(subject, judge, world_size, count)


@AS_1F1B
@CONTRACT
def test_few_microbatches_are_all_that_is_held(subject: Subject, judge: Judge) -> None:
    judge_held(subject, judge, 4, 5)
