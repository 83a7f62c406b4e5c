"""torch's pipelines against a single process, and its orders against the rules that every order has to keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

from fixtures.world.pool import WorldPool
from impls.reference import pipeline as reference
from impls.reference.pipeline import Action
from impls.torch_native import pipelining
from tests.impls.pipeline import execute_programs as programs
from tests.impls.pipeline import torch_programs

Gradients = Sequence[Tensor | None]

EXECUTED = [
    ("gpipe", 2, 3, 1),
    ("gpipe", 4, 8, 1),
    ("1f1b", 3, 4, 1),
    ("1f1b", 4, 8, 1),
    ("interleaved_1f1b", 2, 4, 2),
    ("interleaved_1f1b", 4, 8, 2),
    ("interleaved_zero_bubble", 2, 4, 2),
    ("zbv", 2, 4, 2),
    ("zbv", 4, 8, 2),
    ("dualpipev", 2, 4, 2),
    ("dualpipev", 4, 8, 2),
]


def _same(found: Gradients, expected: Gradients) -> bool:
    pairs = zip(found, expected, strict=True)
    return all(a is b is None or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)


@pytest.mark.parametrize(("schedule", "world_size", "num_microbatches", "num_chunks"), EXECUTED)
def test_gradients_and_losses_are_those_of_a_single_process(
    worlds: WorldPool, schedule: str, world_size: int, num_microbatches: int, num_chunks: int
) -> None:
    # 3 microbatches of 2 rows: the mean over 6 rows rounds, and torch divides by 3 after the sum.
    sizes, steps = [2] * num_microbatches, 2
    gradients, losses = programs.alone("plain", world_size * num_chunks, sizes, steps)
    options = (schedule, "plain", sizes, num_chunks, steps)
    values = worlds.world(world_size).run(torch_programs.run, *options).values
    for found, _ in values:
        for stage, ours in found.items():
            for mine, theirs in zip(ours, gradients[stage], strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-15 if num_microbatches == 3 else 0, atol=0)
    last = 0 if schedule in pipelining.V_SHAPED else world_size - 1
    assert [_same(told, losses if rank == last else []) for rank, (_, told) in enumerate(values)] == [True] * world_size


@pytest.mark.parametrize(
    ("schedule", "sizes", "num_chunks", "reason"),
    [
        ("1f1b", [1, 3, 2, 2], 1, "no microbatches of several sizes"),
        ("zbv", [2] * 4, 1, "zbv has 2 stage(s) on each rank, not 1"),
        ("dualpipe", [2] * 4, 1, "torch.distributed.pipelining has no dualpipe"),
    ],
)
def test_what_torch_does_not_take_is_refused(
    worlds: WorldPool, schedule: str, sizes: list[int], num_chunks: int, reason: str
) -> None:
    assert reason in worlds.world(2).run(torch_programs.run, schedule, "plain", sizes, num_chunks, 1).describe()


# -- orders ------------------------------------------------------------------------------------------------------------


def _parts(row: Sequence[str]) -> list[Action]:
    return [part for text in row for part in Action.parse(text).parts]


def _check(lists: Sequence[Sequence[str]], num_stages: int, num_microbatches: int, kinds: str) -> None:
    """Each microbatch once per stage and kind, and no rank waits for what never comes."""
    rows = [_parts(row) for row in lists]
    counts = Counter((part.stage, part.microbatch, part.kind) for row in rows for part in row if part.kind == "F")
    assert counts == Counter((s, m, "F") for s in range(num_stages) for m in range(num_microbatches))
    backward = Counter((part.stage, part.microbatch) for row in rows for part in row if part.kind in ("B", "I"))
    assert backward == Counter((s, m) for s in range(num_stages) for m in range(num_microbatches))
    split = Counter((p.stage, p.microbatch) for row in rows for p in row if p.kind == "I")
    assert split == Counter((p.stage, p.microbatch) for row in rows for p in row if p.kind == "W")
    assert {str(part.kind) for row in rows for part in row} == set(kinds)
    done: set[tuple[str, int, int]] = set()
    while any(rows):
        ready = [row for row in rows if row and _needs(row[0], num_stages) <= done]
        assert ready, f"all ranks wait: {[str(row[0]) for row in rows if row]}"
        for row in ready:
            part = row.pop(0)
            done.add(("B" if part.kind == "I" else str(part.kind), part.stage, part.microbatch))


def _needs(part: Action, num_stages: int) -> set[tuple[str, int, int]]:
    stage, microbatch = part.stage, part.microbatch
    if part.kind == "F":
        return {("F", stage - 1, microbatch)} if stage else set()
    if part.kind == "W":
        return {("B", stage, microbatch)}
    return {("B", stage + 1, microbatch) if stage + 1 < num_stages else ("F", stage, microbatch)}


def test_orders_of_gpipe_and_1f1b_are_the_references() -> None:
    for size in ((1, 3), (2, 2), (4, 4), (4, 9)):
        assert pipelining.gpipe(*size) == [[str(action) for action in row] for row in reference.gpipe(*size)]
        assert pipelining.one_f_one_b(*size) == [[str(a) for a in row] for row in reference.one_f_one_b(*size)]


def test_the_helper_of_1f1b_still_counts_the_last_rank_from_one() -> None:
    """When this fails, the correction in `one_f_one_b` can go."""
    last = [str(action) for action in get_schedule_ops("1F1B", 3, 4)[-1] if action is not None]
    assert last[0] == "2F1"


def test_1f1b_with_few_microbatches_is_refused() -> None:
    with pytest.raises(ValueError, match="M >= N"):
        pipelining.one_f_one_b(4, 3)


@pytest.mark.parametrize(("num_ranks", "num_microbatches"), [(2, 4), (3, 6), (4, 8), (4, 16)])
def test_orders_of_several_stages_per_rank_keep_the_rules(num_ranks: int, num_microbatches: int) -> None:
    size = (num_ranks, num_microbatches)
    _check(pipelining.interleaved_1f1b(*size), 2 * num_ranks, num_microbatches, "FB")
    _check(pipelining.interleaved_1f1b(*size, num_chunks=3), 3 * num_ranks, num_microbatches, "FB")
    _check(pipelining.zbv(*size), 2 * num_ranks, num_microbatches, "FIW")
    _check(pipelining.dualpipev(*size), 2 * num_ranks, num_microbatches, "FBIW")
