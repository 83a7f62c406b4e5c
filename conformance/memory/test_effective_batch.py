"""How many rows have a part in one update: the batch of a rank, times accumulation, times data-parallel ranks."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.memory import batch_programs
from conformance.verdict import Witness
from fixtures.world.per_rank import PerRank

BATCH = 4
SPARE = 3  # rows that nobody is given
ROUNDING = 1e-6  # of a division by the number of ranks


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A world of ranks, of which `sharing` at a time are given the same rows, as tensor- or pipeline-parallel ones."""

    world_size: int
    accumulation_steps: int
    sharing: int = 1

    @property
    def data_parallel_size(self) -> int:
        """How many ranks have rows of their own."""
        return self.world_size // self.sharing

    @property
    def effective_batch(self) -> int:
        """Rows of one update."""
        return BATCH * self.accumulation_steps * self.data_parallel_size

    def rows(self) -> list[list[list[int]]]:
        """The numbers of the rows, by rank and microbatch."""
        numbers = iter(range(self.effective_batch))
        of_replica = [
            [[next(numbers) for _ in range(BATCH)] for _ in range(self.accumulation_steps)]
            for _ in range(self.data_parallel_size)
        ]
        return [of_replica[rank // self.sharing] for rank in range(self.world_size)]

    @property
    def formula(self) -> str:
        """The product, with its factors."""
        return f"{BATCH} x {self.accumulation_steps} x {self.data_parallel_size} = {self.effective_batch}"

    def __str__(self) -> str:
        shared = f", {self.sharing} at a time with the same rows" if self.sharing > 1 else ""
        return f"{self.world_size} ranks{shared}, {self.accumulation_steps} x {BATCH} rows each"


@claim("memory.effective-batch", provides=["DataParallel|average_gradients"])
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(Run(world_size=2, accumulation_steps=1), id="2 ranks"),
        pytest.param(Run(world_size=3, accumulation_steps=1), id="3 ranks"),
        pytest.param(Run(world_size=4, accumulation_steps=1), id="4 ranks"),
        pytest.param(Run(world_size=2, accumulation_steps=4), id="2 ranks, 4 steps"),
        pytest.param(Run(world_size=3, accumulation_steps=2), id="3 ranks, 2 steps"),
        pytest.param(Run(world_size=4, accumulation_steps=2, sharing=2), id="4 ranks in pairs, 2 steps"),
    ],
)
def test_rows_of_one_update(subject: Subject, judge: Judge, run: Run) -> None:
    num_rows = run.effective_batch + SPARE
    shares = subject.run(batch_programs.shares_in_update, run.world_size, PerRank(run.rows()), num_rows).values
    expected = torch.zeros(num_rows)
    expected[: run.effective_batch] = 1 / run.effective_batch
    counts = [int(found.count_nonzero()) for found in shares]
    if set(counts) != {run.effective_batch}:
        judge.violated(
            f"{run}: not so many rows had a part in the update",
            expected=f"{run.formula} on every rank",
            observed=", ".join(map(str, counts)),
            unit="rows",
        )
    for rank, found in enumerate(shares):
        comparison = expect.within(found, expected, ROUNDING, f"the part of each row on rank {rank}")
        if not comparison.matches:
            judge.that(comparison, message=f"{run}: rows have not all the part 1/{run.effective_batch}")
    judge.holds(
        expected=run.formula,
        observed=str(run.effective_batch),
        witness=Witness.VALUE,
        unit="rows",
        message=f"{run}; the batch times all ranks would be {BATCH * run.world_size}",
        examples=run.world_size,
    )
