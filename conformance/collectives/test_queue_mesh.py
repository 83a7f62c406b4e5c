"""The ring all-reduce on a mesh of queues: threads of one process, the implementation's own mesh and its own ring."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.collectives import mesh_programs
from conformance.collectives.values import judge_sums
from conformance.verdict import Tier, Witness
from fixtures import draws
from fixtures.draws import Case
from fixtures.world.outcome import Outcomes

MESH = ["queue_mesh"]
LETTERS = {
    "from 2": [[100.0, 100.0], [101.0, 100.0], [102.0, 100.0], [103.0, 100.0]],
    "from 0": [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0]],
    "to 0": [[7.0]],
}


def _finished(judge: Judge, outcomes: Outcomes, what: str) -> dict[int, Any]:
    """What each thread of the one rank gave; the check ends when one raised or is stuck."""
    value = outcomes.values[0]
    if value["errors"]:
        thread, error = next(iter(value["errors"].items()))
        judge.crashes(f"{what}: thread {thread} raised {error}", outcomes=outcomes)
    if value["stuck"]:
        waiting = ", ".join(map(str, value["stuck"]))
        judge.hangs(f"{what}: thread(s) {waiting} still wait after {mesh_programs.STUCK_S:g} s", outcomes=outcomes)
    results: dict[int, Any] = value["results"]
    return results


def _ring(subject: Subject, judge: Judge, case: Case, *, own: bool) -> None:
    outcomes = subject.run(mesh_programs.ring_over_queues, 1, case.inputs(), own)
    whose = "its own ring" if own else "a plain ring"
    results: dict[int, torch.Tensor] = _finished(judge, outcomes, f"{whose} over the mesh of queues, {case}")
    judge_sums(judge, case, [results[rank] for rank in range(case.world_size)], outcomes)


@claim("collectives.queue-mesh", provides=MESH)
def test_a_ring_runs_over_the_mesh_of_queues(subject: Subject, judge: Judge) -> None:
    def examine(case: Case) -> None:
        _ring(subject, judge, case, own=False)

    judge.forall(draws.any_cases(2, 3, 4, dtypes=[torch.float32]), examine, max_examples=15)


@claim("collectives.queue-mesh", provides=[*MESH, "ring_allreduce"])
def test_its_own_ring_runs_over_its_mesh_of_queues(subject: Subject, judge: Judge) -> None:
    if not subject.run(mesh_programs.ring_takes_a_mesh, 1).values[0]:
        judge.not_provided("its ring_allreduce takes no mesh, so it cannot run between threads")

    def examine(case: Case) -> None:
        _ring(subject, judge, case, own=True)

    judge.forall(draws.plain_cases(2, 3, 4), examine, max_examples=15)


@claim("collectives.queue-mesh", provides=MESH)
def test_letters_are_buffered_and_arrive_in_order_from_whom_they_were_sent(subject: Subject, judge: Judge) -> None:
    outcomes = subject.run(mesh_programs.mail, 1)
    letters = _finished(judge, outcomes, "eight sends to one rank before any receive")[0]
    judge.expect(
        letters,
        LETTERS,
        witness=Witness.VALUE,
        message="each rank's letters as they were when sent, in order, although the sender has reused its tensor",
        outcomes=outcomes,
    )


@claim("collectives.queue-mesh", provides=[*MESH, "ring_allreduce"], tier=Tier.EXOTIC)
@pytest.mark.parametrize("world_size", [1, 5, 8])
def test_its_own_ring_runs_over_a_large_mesh_of_queues(subject: Subject, judge: Judge, world_size: int) -> None:
    if not subject.run(mesh_programs.ring_takes_a_mesh, 1).values[0]:
        judge.not_provided("its ring_allreduce takes no mesh, so it cannot run between threads")
    for shape in ((0,), (3,), (1000,)):
        _ring(subject, judge, Case(world_size=world_size, shape=shape), own=True)
