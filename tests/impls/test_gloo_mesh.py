"""The mesh over gloo on real ranks, and every reference collective on it."""

from __future__ import annotations

import re

import pytest
import torch

from fixtures.world.pool import WorldPool
from impls.mesh import HEADER_BYTES, HEADER_TAG
from tests.impls import programs


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5)])
def test_every_collective_on_any_shape(worlds: WorldPool, world_size: int, shape: tuple[int, ...]) -> None:
    ranks = worlds.world(world_size).run(programs.all_collectives, shape, torch.int64).values
    total = sum(rank[-1] for rank in ranks)
    for ring, tree, _, gathered, broadcast, _ in ranks:
        assert torch.equal(ring, total)
        assert torch.equal(tree, total)
        assert torch.equal(gathered, torch.cat([rank[-1].flatten() for rank in ranks]))
        assert torch.equal(broadcast, ranks[-1][-1])
    assert torch.equal(torch.cat([rank[2] for rank in ranks]), total.flatten())


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8, torch.uint8),
        *(torch.bool, torch.complex64, torch.complex128),
    ],
    ids=str,
)
def test_every_dtype_that_gloo_carries(worlds: WorldPool, dtype: torch.dtype) -> None:
    ranks = worlds.world(3).run(programs.all_collectives, (4,), dtype).values
    total = ranks[0][-1] + ranks[1][-1] + ranks[2][-1]
    assert all(torch.equal(result, total) and result.dtype == dtype for rank in ranks for result in rank[:2])


def test_a_send_is_buffered_and_later_changes_do_not_travel(worlds: WorldPool) -> None:
    received = worlds.world(3).run(programs.send_first_then_change).values
    assert [tensor.tolist() for tensor in received] == [[2.0] * 3, [0.0] * 3, [1.0] * 3]


def test_messages_keep_their_order_shape_and_dtype_also_when_the_mesh_is_dropped(worlds: WorldPool) -> None:
    sent, received = worlds.world(2).run(programs.keep_order).values
    assert all(one.dtype == other.dtype and torch.equal(one, other) for one, other in zip(sent, received, strict=True))


def test_what_is_pushed_is_pulled_without_a_header(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(programs.push_and_pull, 3, 3)
    assert outcomes.values[1].tolist() == [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]
    assert [(operation.kind, operation.num_bytes) for operation in outcomes[0].operations] == [("send", 12)]


@pytest.mark.parametrize("pulled", [2, 4])
def test_a_pull_of_another_size_waits_and_is_told(worlds: WorldPool, pulled: int) -> None:
    outcomes = worlds.world(2).run(programs.push_and_pull, 3, pulled)
    assert [outcome.hang.deadlock for outcome in outcomes] == [True, True]
    assert re.match(rf"recv #0 from rank 0 with tag \d+ \({pulled} floats", outcomes[1].hang.call)


def test_nothing_is_pushed_of_an_empty_tensor(worlds: WorldPool) -> None:
    outcomes = worlds.world(2).run(programs.push_and_pull, 0, 0)
    assert outcomes.all_returned
    assert not outcomes[0].operations


def test_what_a_peer_has_taken_can_be_let_go_of_before_the_rest(worlds: WorldPool) -> None:
    values = worlds.world(2).run(programs.settle_with_what_was_taken).values
    assert values == [[False, True], [True]]


def test_a_mesh_over_a_sub_group_counts_ranks_within_it(worlds: WorldPool) -> None:
    values = worlds.world(4).run(programs.sub_group).values
    assert values[0] is values[2] is None
    assert values[1].tolist() == values[3].tolist() == [4.0]


def test_headers_are_told_apart_by_tag_and_length(worlds: WorldPool) -> None:
    outcome = worlds.world(2).run(programs.send_first_then_change)[0]
    headers = [op for op in outcome.operations if (op.tag, op.num_bytes) == (HEADER_TAG, HEADER_BYTES)]
    assert sorted(op.kind for op in headers) == ["recv", "send"]
    assert sorted(op.num_bytes for op in outcome.operations if op not in headers) == [12, 12]
