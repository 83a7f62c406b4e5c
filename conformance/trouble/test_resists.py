"""Data parallelism in the situation of each failure mode: does it resist? The rest is in the file beside this one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.loop import single, worker_programs
from conformance.loop.judging import Named, gradients_as, judge_all
from conformance.loop.programs import Batches, Rows, Values
from conformance.strategies.ddp_traffic import fault_in, inside_no_sync, is_note, steps_of
from conformance.trouble import resist_programs as programs
from conformance.verdict import Witness
from fixtures import models
from fixtures.world.outcome import Outcomes
from fixtures.world.per_rank import PerRank
from impls.words import number_of

WRAPPED = ["DataParallel|average_gradients"]
BATCH, STEPS = 2, 3


# -- missing-broadcast -------------------------------------------------------------------------------------------------


@claim("resists.missing-broadcast", tier="contract", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("model", ["mlp", "frozen", "buffers"])
def test_replicas_that_begin_apart_are_made_equal_and_stay_so(
    subject: Subject, judge: Judge, model: str, world_size: int
) -> None:
    data = single.batches(21, world_size, steps=2 if model == "mlp" else 0)  # the others cannot show more by training
    own, seeds = single.own(data, world_size), single.own_seeds(50, world_size)
    reports = subject.run(programs.begin_apart, world_size, model, seeds, own, scale=float(world_size)).values
    root = reports[0]["before"]
    assert all(single.apart(report["before"], root) > 0 for report in reports[1:]), "the ranks did not begin apart"
    wrapped = [
        (f"rank {rank} against rank 0's before", expect.same(report["wrapped"], root))
        for rank, report in enumerate(reports)
    ]
    judge_all(judge, wrapped, f"parameters and buffers of the {model} model once it is wrapped")
    trained = [
        (name, expect.ranks_agree([report["trained"][name] for report in reports], what=name))
        for name in reports[0]["trained"]
    ]
    judge_all(judge, trained, f"parameters of the {model} model after {number_of(len(data), 'step')}, rank by rank")


# -- shared-shuffle-seed -----------------------------------------------------------------------------------------------


def _judge_partition(judge: Judge, by_rank: Sequence[Sequence[Sequence[int]]], what: str) -> None:
    """``by_rank[rank][step]``: in every step the ranks' rows are a global batch of N parts without an overlap."""
    world_size, seen = len(by_rank), set[int]()
    for step, parts in enumerate(zip(*by_rank, strict=True)):
        union = {row for part in parts for row in part}
        if len(union) < sum(map(len, parts)) or len(union) != world_size * BATCH or union & seen:
            judge.violated(
                f"{what}, step {step}: the ranks do not read {world_size * BATCH} samples of their own",
                expected=f"{world_size} parts of {number_of(BATCH, 'row')} each, none of them read before",
                observed=", ".join(f"rank {rank}: {list(part)}" for rank, part in enumerate(parts)),
            )
        seen |= union
    judge.holds(
        expected=f"{world_size} disjoint parts of each global batch",
        observed=", ".join(f"rank {rank}: {list(steps[0])}" for rank, steps in enumerate(by_rank)),
        witness=Witness.VALUE,
        message=f"{what}, all ranks seeded alike; shown is the first step",
        examples=len(by_rank[0]),
    )


@claim("resists.shared-shuffle-seed", tier="contract", provides=["batch_slice"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_slices_under_one_seed_are_disjoint(subject: Subject, judge: Judge, world_size: int) -> None:
    found = subject.run(programs.slices_under_one_seed, world_size, STEPS, BATCH).values
    _judge_partition(judge, found, "rows of batch_slice")


@claim("resists.shared-shuffle-seed", tier="contract", provides=["train"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_workers_with_one_seed_begin_equal_and_read_rows_of_their_own(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    count = (STEPS + 1) * world_size * BATCH
    inputs, targets = models.rows(count, 31, real=True), models.rows(count, 32, real=True)
    inputs[:, 0] = torch.arange(count)  # each row says its number
    reports = subject.run(
        worker_programs.work,
        world_size,
        "recording",
        inputs,
        targets,
        steps=STEPS,
        batch_size=BATCH,
        bare=True,
        deadline_s=20.0,
    ).values
    starts = [
        (name, expect.ranks_agree([report["start"][name] for report in reports], what=name))
        for name in reports[0]["start"]
    ]
    judge_all(judge, starts, "the parameters that each rank built")
    _judge_partition(judge, [_in_steps(report["seen"]) for report in reports], "rows that reached the model")


def _in_steps(rows: Sequence[int]) -> list[Sequence[int]]:
    return [rows[step * BATCH : (step + 1) * BATCH] for step in range(STEPS)]


# -- unused-parameter-deadlock -----------------------------------------------------------------------------------------

SHAPES = [[6], [5], [5], [3, 2]]
ALL = [True, True, True, True]
SITUATIONS: dict[str, list[list[bool]]] = {
    "unused on one rank": [ALL, [True, True, True, False], ALL],
    "used on one rank alone": [[True, True, True, False], ALL, [True, True, True, False]],
    "unused on all ranks": [[True, True, True, False]] * 3,
    "another of two equal shapes on each rank": [[True, True, False, True], [True, False, True, True]],
}


def _mean(world_size: int, seed: int, used: Sequence[Sequence[bool]]) -> Values:
    """What `models.Bag` gets when each rank sends N times its integers, a missing gradient counting as zero."""
    weights = [models.coefficients(SHAPES, 100 * seed + rank) for rank in range(world_size)]
    found: Values = {}
    for index in range(len(SHAPES)):
        present = [weights[rank][index] for rank in range(world_size) if used[rank][index]]
        found[f"values.{index}"] = torch.stack(present).sum(0) if present else None
    return found


def _steps_with(subject: Subject, by_step: Sequence[Sequence[Sequence[bool]]]) -> Sequence[Sequence[Values]]:
    """``by_step[step][rank]`` says which parameters the rank uses."""
    world_size, steps = len(by_step[0]), range(len(by_step))
    used, weights = PerRank.of_steps(by_step, world_size), single.coefficients(SHAPES, world_size, steps)
    return subject.run(programs.steps_with, world_size, SHAPES, used, weights).values


def _wrong(reports: Sequence[Sequence[Values]], step: int, wanted: Values) -> bool:
    return not all(gradients_as(report[step], wanted).matches for report in reports)


@claim("resists.unused-parameter-deadlock", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("situation", list(SITUATIONS))
def test_a_parameter_without_gradient_neither_locks_the_ranks_nor_spoils_the_others(
    subject: Subject, judge: Judge, situation: str
) -> None:
    used = SITUATIONS[situation]
    world_size = len(used)
    everything = [ALL] * world_size
    control = _steps_with(subject, [everything])
    if _wrong(control, 0, _mean(world_size, 0, everything)):
        judge.inconclusive("gradients are wrong where every rank uses every parameter (loop.mean): nothing to compare")
    by_step = [used, everything, used]  # torch's DDP complains in the step after
    reports = _steps_with(subject, by_step)
    found = [
        (f"rank {rank}, step {step}", gradients_as(report[step], _mean(world_size, step, by_rank)))
        for rank, report in enumerate(reports)
        for step, by_rank in enumerate(by_step)
    ]
    judge_all(judge, found, f"gradients with a parameter {situation}, then with all of them, then so again")


# -- slow-accumulation -------------------------------------------------------------------------------------------------

LARGE = [[64, 64], [300], [64, 17]]
NUM_MICROBATCHES = 4


@claim("resists.slow-accumulation", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_step_of_several_microbatches_reduces_once_and_loses_nothing(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    one = _accumulate(subject, world_size, 1)
    if not all(comparison.matches for _, comparison in _accumulated(one, world_size, 1)):
        judge.inconclusive("gradients of a single microbatch are wrong (loop.mean): nothing to accumulate")
    if not subject.run(programs.offers_no_sync, 1).values[0]:
        _must_be_able_to_wait(subject, judge, one)
    outcomes = _accumulate(subject, world_size, NUM_MICROBATCHES)
    _judge_moved_once(judge, outcomes, world_size)
    found = _accumulated(outcomes, world_size, NUM_MICROBATCHES)
    judge_all(judge, found, f"the mean over ranks of what {NUM_MICROBATCHES} microbatches add up to")


def _accumulate(subject: Subject, world_size: int, num_microbatches: int) -> Outcomes:
    weights = single.coefficients(LARGE, world_size, range(num_microbatches))
    return subject.run(programs.accumulate, world_size, LARGE, weights)


def _accumulated(outcomes: Outcomes, world_size: int, num_microbatches: int) -> list[Named]:
    """The gradients of each rank against the mean over ranks of the sum over microbatches."""
    ranks, numbers = range(world_size), range(num_microbatches)
    parts = [models.coefficients(LARGE, 100 * number + rank) for number in numbers for rank in ranks]
    wanted: Values = {
        f"values.{index}": torch.stack(of_one).sum(0) for index, of_one in enumerate(zip(*parts, strict=True))
    }
    return [(f"rank {rank}", gradients_as(report["gradients"], wanted)) for rank, report in enumerate(outcomes.values)]


def _must_be_able_to_wait(subject: Subject, judge: Judge, one_microbatch: Outcomes) -> None:
    """Without a `no_sync` nothing may move before the call that ends the reduction."""
    for outcome in one_microbatch:
        returned = next(mark.at_ns for mark in outcome.marks if mark.name == "backward-end")
        if any(op.issued_ns < returned for op in steps_of(outcome)[0].gradients):
            judge.not_provided(
                f"{subject.name} reduces in every backward() and offers no no_sync(): accumulating over "
                f"{NUM_MICROBATCHES} microbatches moves the gradients {NUM_MICROBATCHES} times"
            )


def _judge_moved_once(judge: Judge, outcomes: Outcomes, world_size: int) -> None:
    wanted = outcomes[0].value["gradient_bytes"]
    for outcome in outcomes:
        early = [op for op in inside_no_sync(outcome) if not is_note(op, outcome)]
        (step,) = steps_of(outcome)
        moved = sum(op.num_bytes for op in early)
        if early:
            judge.violated(
                f"rank {outcome.rank} reduces before the last microbatch: {early[0].kind} at {early[0].where}",
                expected="nothing before the last microbatch",
                observed=f"{moved:,} in {number_of(len(early), 'operation')}",
                witness=Witness.TRACE,
                unit="bytes",
                outcomes=outcomes,
            )
        if fault := fault_in(step, wanted, world_size, outcome.value["num_parameters"]):
            judge.violated(
                f"rank {outcome.rank}, last microbatch: {fault}",
                expected=f"one reduction of {wanted:,}",
                observed=f"{step.bytes_of(*step.kinds):,} in {number_of(len(step.gradients), 'operation')}",
                witness=Witness.TRACE,
                unit="bytes",
                outcomes=outcomes,
            )
    judge.holds(
        expected=f"{wanted:,}, once",
        observed=f"{steps_of(outcomes[0])[0].bytes_of(*steps_of(outcomes[0])[0].kinds):,}",
        witness=Witness.TRACE,
        unit="bytes",
        message=f"reduced in a step of {NUM_MICROBATCHES} microbatches; one reduction each would be "
        f"{NUM_MICROBATCHES * wanted:,}",
        examples=world_size,
    )


# -- sum-without-divide ------------------------------------------------------------------------------------------------

GLOBAL_ROWS = 12
RANK_COUNTS = (1, 2, 3, 4)


def _dealt(steps: Sequence[Rows], world_size: int) -> Batches:
    """The same global batches, in equal consecutive parts."""
    return [
        [[(x, target)] for x, target in zip(xs.chunk(world_size), targets.chunk(world_size), strict=True)]
        for xs, targets in steps
    ]


@claim("resists.sum-without-divide", tier="contract", provides=WRAPPED)
def test_one_learning_rate_does_for_any_number_of_ranks(subject: Subject, judge: Judge) -> None:
    steps = [(models.rows(GLOBAL_ROWS, 60 + step), models.rows(GLOBAL_ROWS, 80 + step)) for step in range(2)]
    alone = subject.run(programs.train_equal, 1, single.own(_dealt(steps, 1), 1), scale=float(GLOBAL_ROWS)).values[0]
    moved = single.apart(alone, _start())
    assert moved > 0, "nothing was learnt, so nothing could differ"
    for world_size in RANK_COUNTS:
        data = single.own(_dealt(steps, world_size), world_size)
        reports = subject.run(programs.train_equal, world_size, data, scale=float(GLOBAL_ROWS)).values
        found = [(f"rank {rank}", expect.same(report, alone)) for rank, report in enumerate(reports)]
        judge_all(
            judge, found, f"parameters after two steps at one rate on {number_of(world_size, 'rank')}, against one rank"
        )
    judge.holds(
        expected="the same steps",
        observed=f"the same steps, up to {moved:g} long",
        witness=Witness.VALUE,
        message=f"SGD on the same {number_of(GLOBAL_ROWS, 'row')} in equal parts, on "
        f"{', '.join(map(str, RANK_COUNTS))} ranks",
    )


def _start() -> Values:
    return {name: p.detach().clone() for name, p in models.build("mlp", 1).named_parameters()}
