"""Lesson 77: four ranks that share each batch have the losses of one process, step by step."""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.verdict import Witness
from lessons.data_parallel import observe, told
from lessons.ddp_observed import faults, loss_faults
from lessons.ddp_worker import PROVIDERS, Settings

STEPS, ROWS, SEED = 12, 4, 77


@claim("lessons.77", provides=[PROVIDERS])
@pytest.mark.parametrize("world_size", [4, 3])
def test_the_losses_of_the_ranks_are_those_of_one_process(subject: Subject, judge: Judge, world_size: int) -> None:
    settings = Settings(world_size=world_size, backend="gloo", num_steps=STEPS, batch_size=ROWS, seed=SEED)
    seen = observe(settings, subject.run)
    assert seen.single_losses[-1] < 0.9 * seen.single_losses[0], "one process learns nothing, so the curve says nothing"
    assert "they differ by" in "\n".join(told(seen))
    read = [sorted(row for rank in seen.ranks for row in rank.rows[step]) for step in range(len(seen.losses))]
    for fault in faults(seen):
        judge.violated(fault, expected="equal parameters, own rows, as many steps as asked for")
    judge.expect(
        read,
        [list(range(step * world_size * ROWS, (step + 1) * world_size * ROWS)) for step in range(STEPS)],
        message="rows that all ranks together read in each step",
    )
    for fault in loss_faults(seen):
        judge.violated(
            fault,
            expected=f"losses at most {seen.loss_bound:.1e} apart",
            observed=f"{seen.loss_difference:.3g}",
            witness=Witness.VALUE,
        )
    judge.at_most(
        seen.loss_difference, seen.loss_bound, message="the losses of all steps against one process", examples=STEPS
    )
