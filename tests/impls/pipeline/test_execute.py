"""Pipelines of the reference on real ranks, against what one process computes alone: bit for bit on small integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from fixtures.world.pool import WorldPool
from impls.mesh import HEADER_TAG
from impls.reference.pipeline.names import SCHEDULES, named
from impls.reference.pipeline.post import made, maker, taker
from tests.impls.pipeline import execute_programs as programs

# Of two to six microbatches the total is a power of two, so that the mean over rows is exact.
CASES = [
    ("gpipe", 2, [4]),
    ("gpipe", 3, [1, 3, 2, 2]),
    ("gpipe", 4, [2] * 8),
    ("1f1b", 1, [2, 2]),
    ("1f1b", 2, [4]),
    ("1f1b", 3, [1, 2, 1, 1, 2, 1]),
    ("1f1b", 4, [3, 1]),
    ("1f1b", 4, [1, 2, 1, 1, 1, 2, 4, 4]),
    ("interleaved_1f1b", 2, [1, 3, 2, 2]),
    ("interleaved_1f1b", 3, [1, 2, 1, 1, 2, 1]),
    ("interleaved_1f1b", 4, [2] * 8),
    ("zb_h1", 2, [1, 3, 2, 2]),
    ("zb_h1", 3, [1, 2, 1, 1, 2, 1]),
    ("zb_h1", 4, [1, 2, 1, 1, 1, 2, 4, 4]),
    ("zb_h2", 2, [1, 3, 2, 2]),
    ("zb_h2", 3, [1, 2, 1, 1, 2, 1]),
    ("zb_h2", 4, [1, 2, 1, 1, 1, 2, 4, 4]),
    ("zbv", 1, [2, 2]),
    ("zbv", 2, [1, 3, 2, 2]),
    ("zbv", 3, [1, 2, 1, 1, 2, 1]),
    ("zbv", 4, [1, 2, 1, 1, 1, 2, 4, 4]),
    ("dualpipe", 2, [1, 3, 2, 2]),
    ("dualpipe", 4, [1, 2, 1, 1, 1, 2, 4, 4]),
    ("dualpipev", 2, [1, 3, 2, 2]),
    ("dualpipev", 3, [1, 2, 1, 1, 2, 1]),
    ("dualpipev", 4, [1, 2, 1, 1, 1, 2, 4, 4]),
]
Gradients = Sequence[Tensor | None]


def _same(found: Gradients, expected: Gradients) -> bool:
    pairs = zip(found, expected, strict=True)
    return all(a is b is None or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)


def _check(worlds: WorldPool, schedule: str, world_size: int, sizes: list[int], model: str, **options: Any) -> None:
    gradients, losses = programs.alone(model, programs.num_stages(schedule, world_size), sizes, **options)
    values = worlds.world(world_size).run(programs.run, schedule, model, sizes, **options).values
    assert {stage for found, _ in values for stage in found} == set(gradients)
    for found, _ in values:
        assert all(_same(found[stage], gradients[stage]) for stage in found)
    half = len(sizes) // 2
    expected = {world_size - 1: losses}
    if schedule == "dualpipe":
        expected = {world_size - 1: losses[:half], 0: losses[half:]}
    elif schedule in ("zbv", "dualpipev"):
        expected = {0: losses}
    for rank, (_, told) in enumerate(values):
        assert _same(told, expected.get(rank, []))


@pytest.mark.parametrize(("schedule", "world_size", "sizes"), CASES)
def test_gradients_and_losses_are_those_of_a_single_process(
    worlds: WorldPool, schedule: str, world_size: int, sizes: list[int]
) -> None:
    _check(worlds, schedule, world_size, sizes, "plain")


@pytest.mark.parametrize("model", sorted(set(programs.MODELS) - {"plain"}))
@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_whatever_passes_between_stages(worlds: WorldPool, schedule: str, model: str) -> None:
    _check(worlds, schedule, 4, [1, 2, 1, 1, 1, 2, 4, 4], model)


@pytest.mark.parametrize("schedule", ["1f1b", "zbv", "dualpipe"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128], ids=str)
def test_dtypes_and_steps_that_add_up(worlds: WorldPool, schedule: str, dtype: torch.dtype) -> None:
    _check(worlds, schedule, 2, [1, 3, 2, 2], "linear", dtype=dtype, steps=3)


def test_real_numbers_within_rounding(worlds: WorldPool) -> None:
    sizes = [3, 5, 2, 7, 1, 4, 4, 6]
    for schedule in SCHEDULES:
        gradients, _ = programs.alone("plain", programs.num_stages(schedule, 4), sizes, real=True)
        for found, _ in worlds.world(4).run(programs.run, schedule, "plain", sizes, real=True).values:
            for stage, tensors in found.items():
                for ours, theirs in zip(tensors, gradients[stage], strict=True):
                    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-13)  # sums of 8 terms in any order


def test_a_schedule_of_ones_own(worlds: WorldPool) -> None:
    gradients, losses = programs.alone("plain", 3, [1, 3, 2, 2])
    values = worlds.world(3).run(programs.backwards_in_reverse, [1, 3, 2, 2]).values
    assert all(_same(found[stage], gradients[stage]) for found, _ in values for stage in found)
    assert _same(values[-1][1], losses)


def test_some_ranks_of_a_world_are_a_pipeline(worlds: WorldPool) -> None:
    gradients, _ = programs.alone("plain", 2, [1, 3, 2, 2])
    for found in worlds.world(4).run(programs.in_groups, [1, 3, 2, 2]).values:
        assert all(_same(found[stage], gradients[stage]) for stage in found)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("two modules", "holds stages [0]; it was given 2 modules"),
        ("unknown name", "there is no schedule '1f1c'. Did you mean '1f1b'?"),
        ("few microbatches", "ZBV needs"),
        ("another size", "is for 2 ranks and 4 microbatches; there are 2 and 6"),
        ("different lengths", "are of [5, 6] entries"),
        ("vector loss", "loss_fn returned (2,)"),
        ("list of numbers", "stage 0 returned ['Tensor', 'int'] for microbatch 0"),
        ("missing forward", "validate the schedule before it runs"),
        ("tied elsewhere", "is not among the ranks [2, 3]"),
    ],
)
def test_refuses_with_a_reason(worlds: WorldPool, what: str, reason: str) -> None:
    assert reason in worlds.world(2).run(programs.refused, what, deadline_s=20.0).describe()


# -- order and traffic -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_computes_in_the_order_of_the_schedule(worlds: WorldPool, schedule: str) -> None:
    table = named(schedule, 4, 8, programs.num_chunks(schedule))
    for rank, events in enumerate(worlds.world(4).run(programs.observed, schedule, 8).values):
        assert events == [event for action in table.actions(rank) for event in programs.events_of(action)]


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_sends_an_activation_and_its_gradient_per_boundary_and_microbatch(worlds: WorldPool, schedule: str) -> None:
    world_size, sizes = 4, [1, 2, 1, 1, 1, 2, 4, 4]
    table = named(schedule, world_size, len(sizes), programs.num_chunks(schedule))
    expected = Counter(
        (maker(table, signal), taker(table, signal), sizes[signal.microbatch] * programs.WIDTH * 8)
        for actions in table
        for action in actions
        for part in action.parts
        if (signal := made(table, part)) is not None and maker(table, signal) != taker(table, signal)
    )
    if schedule == "dualpipe":  # the copies of a stage: each rank has two of 16 weights and 4 biases
        expected += Counter(
            {(rank, world_size - 1 - rank, size * 8): 2 for rank in range(world_size) for size in (16, 4)}
        )
    found: Counter[tuple[int, int, int]] = Counter()
    for rank, outcome in enumerate(worlds.world(world_size).run(programs.run, schedule, "plain", sizes)):
        assert {op.kind for op in outcome.operations} == {"send", "recv"}
        sends = [op for op in outcome.operations if op.kind == "send" and op.tag != HEADER_TAG]
        found += Counter((rank, op.peer, op.num_bytes) for op in sends)
    assert found == expected


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "most"),
    [("gpipe", [12, 12, 12, 12]), ("1f1b", [4, 3, 2, 1]), ("zb_h1", [4, 4, 4, 4]), ("zb_h2", [7, 7, 7, 7])],
)
def test_holds_no_more_microbatches_than_the_schedule_says(worlds: WorldPool, schedule: str, most: list[int]) -> None:
    values = worlds.world(4).run(programs.alive, schedule, 12).values
    assert all(inputs <= limit for (inputs, _), limit in zip(values, most, strict=True))
    assert all(under_way <= limit + 1 for (_, under_way), limit in zip(values, most, strict=True))


# -- weights that several ranks hold -----------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize(
    ("schedule", "world_size"),
    [("1f1b", 3), ("gpipe", 2), ("zb_h1", 4), ("interleaved_1f1b", 2), ("zbv", 2), ("dualpipev", 2), ("dualpipe", 2)],
)
def test_a_weight_tied_between_the_first_and_the_last_stage(
    worlds: WorldPool, schedule: str, world_size: int, steps: int
) -> None:
    count = programs.num_stages(schedule, world_size)
    expected = programs.tied_alone(count, steps)
    for found in worlds.world(world_size).run(programs.tied, schedule, steps).values:
        assert all(_same([gradient], [expected]) for gradient in found)
