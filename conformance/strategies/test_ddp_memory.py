"""Data parallelism splits the batch and nothing else: partition, memory, and what that costs."""

from __future__ import annotations

import pytest

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.loop import worker_programs
from conformance.loop.judging import judge_all
from conformance.strategies import programs
from conformance.strategies.ddp_model import SHAPES
from conformance.verdict import Witness
from fixtures import models
from fixtures.world.outcome import MemoryReading, Outcome
from fixtures.world.per_rank import PerRank

LAYERS, WIDTH = 4, 128
TOTAL = LAYERS * WIDTH * WIDTH * 4  # bytes of the parameters
PADDING = TOTAL // 100 + 1024  # of flat buffers; notes of the wrapper's own
SIZES = [1, 2, 3, 4]
BUCKET_COPIES = 2  # one for the buckets, one for a wrapper that fills the next while one is under way
BATCH = 3


# -- partition ---------------------------------------------------------------------------------------------------------


@claim("strategies.ddp.partition", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_each_rank_computes_its_own_rows_with_whole_parameters(subject: Subject, judge: Judge, world_size: int) -> None:
    inputs = models.rows(world_size * BATCH, 41, real=True)
    inputs[:, 0] = inputs[:, 0].new_tensor(range(len(inputs)))
    seeds, rows = PerRank(models.own_seeds(3, world_size)), PerRank(inputs.chunk(world_size))
    reports = subject.run(programs.partition, world_size, seeds, rows).values
    whole = {name: tuple(parameter.shape) for name, parameter in models.Recording().named_parameters()}
    found = []
    for rank, report in enumerate(reports):
        mine = list(range(rank * BATCH, (rank + 1) * BATCH))
        found += [
            (f"the rows that rank {rank} computes", expect.same(report["rows"], mine)),
            (f"the outputs of rank {rank}", expect.same(report["outputs"], BATCH)),
            (f"the parameters of rank {rank} in forward", expect.same(report["in_forward"], [whole])),
            (f"the parameters of rank {rank} afterwards", expect.same(report["after"], whole)),
        ]
    judge_all(judge, found, "own rows and whole parameters on every rank")


@claim("strategies.ddp.partition", provides=["train"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_the_rows_of_all_workers_are_the_global_batches(subject: Subject, judge: Judge, world_size: int) -> None:
    steps = 2
    inputs = models.rows((steps + 1) * world_size * BATCH, 42, real=True)
    inputs[:, 0] = inputs[:, 0].new_tensor(range(len(inputs)))
    targets = models.rows(len(inputs), 43, real=True)
    reports = subject.run(
        worker_programs.work,
        world_size,
        "recording",
        inputs,
        targets,
        steps=steps,
        batch_size=BATCH,
        bare=True,
    ).values
    seen = sorted(row for report in reports for row in report["seen"])
    judge.expect(
        seen, list(range(steps * world_size * BATCH)), message="each row of the global batches on one rank, once"
    )


# -- memory ------------------------------------------------------------------------------------------------------------


def _added(outcome: Outcome) -> dict[str, int]:
    """Bytes by category that the replica holds; `other` is what it keeps beside its state."""
    readings: dict[str, MemoryReading] = {reading.name: reading for reading in outcome.memory}
    found = dict(readings[programs.AT_REST].categories)
    found["other"] = max(0, found["other"] - readings["before"].categories["other"])  # what was let go meanwhile
    return found


def _weigh(subject: Subject, judge: Judge) -> dict[int, dict[str, int]]:
    """The readings of rank 0 for every number of ranks, after each rank's has been judged."""
    by_size: dict[int, dict[str, int]] = {}
    for world_size in SIZES:
        for outcome in subject.run(programs.memory, world_size, num_layers=LAYERS, width=WIDTH):
            held = _added(outcome)
            where = f"rank {outcome.rank} of {world_size}"
            for category in ("parameters", "gradients", "optimizer"):
                if not TOTAL <= held[category] <= TOTAL + PADDING:
                    judge.violated(
                        f"{category} on {where}: not one whole copy",
                        expected=f"{TOTAL:,}",
                        observed=f"{held[category]:,}",
                        witness=Witness.MEMORY,
                        unit="bytes",
                    )
            if held["other"] > BUCKET_COPIES * TOTAL + PADDING:
                judge.violated(
                    f"{where} keeps {held['other'] / TOTAL:.1f} copies of the gradients beside its state",
                    expected=f"at most {BUCKET_COPIES * TOTAL:,} for buckets",
                    observed=f"{held['other']:,}",
                    witness=Witness.MEMORY,
                    unit="bytes",
                )
            by_size[world_size] = held
    return by_size


@claim("strategies.ddp.memory", provides=["DataParallel|average_gradients"])
def test_every_rank_holds_everything_whatever_the_number_of_ranks(subject: Subject, judge: Judge) -> None:
    by_size = _weigh(subject, judge)
    states = {size: sum(held[k] for k in ("parameters", "gradients", "optimizer")) for size, held in by_size.items()}
    judge.holds(
        expected=f"{3 * TOTAL:,}",
        observed=", ".join(f"{state:,} (N={size})" for size, state in states.items()),
        witness=Witness.MEMORY,
        unit="bytes",
        message=f"parameters, gradients and optimizer state per rank; buckets and the like add {_others(by_size)}",
        examples=sum(SIZES),
    )


def _others(by_size: dict[int, dict[str, int]]) -> str:
    return ", ".join(f"{max(0, held['other']):,}" for held in by_size.values())


@claim("strategies.ddp.cost", provides=["DataParallel|average_gradients"])
def test_memory_is_the_main_cost_where_the_all_reduce_hides_and_not_elsewhere(subject: Subject, judge: Judge) -> None:
    by_size = _weigh(subject, judge)
    per_parameter = {size: 4 * sum(held.values()) / TOTAL for size, held in by_size.items()}
    judge.holds(
        expected="the same for every N",
        observed=", ".join(f"{value:.1f} (N={size})" for size, value in per_parameter.items()),
        witness=Witness.MEMORY,
        unit="bytes per parameter",
        message="memory is never divided: no number of ranks brings it down",
        examples=sum(SIZES),
    )
    large, small = (shape.main_cost(max(per_parameter.values())) for shape in SHAPES)
    assert (large, small) == ("memory", "communication"), "the model finds the same main cost for all shapes"
    judge.holds(
        expected="memory where the all-reduce hides behind backward, communication elsewhere",
        observed="; ".join(
            f"{shape.name}: {shape.main_cost(max(per_parameter.values()))} "
            f"({shape.state_bytes(max(per_parameter.values())) / 1e9:.3g} GB, backward {shape.backward_s():.2g} s, "
            f"all-reduce {shape.all_reduce_s(4.0):.2g} s)"
            for shape in SHAPES
        ),
        witness=Witness.MODEL,
        message="with small batches or slow links communication is the main cost instead",
    )
