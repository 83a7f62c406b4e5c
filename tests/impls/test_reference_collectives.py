"""The reference collectives between threads: every world size, ragged sizes, dtypes, strides, roots."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from impls.mesh import Mesh, queue_mesh
from impls.reference import (
    ring_allgather,
    ring_allreduce,
    ring_reduce_scatter,
    tree_allreduce,
    tree_broadcast,
)

WORLD_SIZES = range(1, 9)
NUMELS = [0, 1, 2, 7, 24, 1000]
DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128),
]


def on_all_ranks(world_size: int, body: Callable[[Mesh, int], Any]) -> list[Any]:
    """What `body(mesh, rank)` returns on each rank, every rank in a thread of its own."""
    with ThreadPoolExecutor(world_size) as pool:
        return list(pool.map(body, queue_mesh(world_size, timeout_s=10.0), range(world_size)))


def inputs_of(world_size: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Small integers, so that every sum is exact in every order and dtype."""
    generator = torch.Generator().manual_seed(7)
    return [torch.randint(0, 4, shape, generator=generator).to(dtype) for _ in range(world_size)]


def total_of(inputs: list[Tensor]) -> Tensor:
    total = inputs[0].clone()
    for tensor in inputs[1:]:
        total = total + tensor
    return total


def same_bits(left: Tensor, right: Tensor) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and torch.equal(left, right)


@pytest.mark.parametrize("allreduce", [ring_allreduce, tree_allreduce])
@pytest.mark.parametrize("numel", NUMELS)
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_allreduce_gives_every_rank_the_sum(allreduce: Any, world_size: int, numel: int) -> None:
    inputs = inputs_of(world_size, (numel,))
    results = on_all_ranks(world_size, lambda mesh, rank: allreduce(mesh, rank, world_size, inputs[rank]))
    assert all(same_bits(result, total_of(inputs)) for result in results)


@pytest.mark.parametrize("allreduce", [ring_allreduce, tree_allreduce])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_allreduce_keeps_the_dtype(allreduce: Any, dtype: torch.dtype) -> None:
    inputs = inputs_of(3, (2, 5), dtype)
    results = on_all_ranks(3, lambda mesh, rank: allreduce(mesh, rank, 3, inputs[rank]))
    assert all(same_bits(result, total_of(inputs)) for result in results)


@pytest.mark.parametrize("allreduce", [ring_allreduce, tree_allreduce])
@pytest.mark.parametrize("world_size", [3, 5])
def test_all_ranks_hold_the_same_bits_of_a_rounded_sum(allreduce: Any, world_size: int) -> None:
    inputs = [torch.randn(101) * 10.0**rank for rank in range(world_size)]
    first, *others = on_all_ranks(world_size, lambda mesh, rank: allreduce(mesh, rank, world_size, inputs[rank]))
    assert all(same_bits(first, other) for other in others)


@pytest.mark.parametrize("allreduce", [ring_allreduce, tree_allreduce])
def test_allreduce_of_a_strided_tensor_leaves_the_tensor_and_its_gaps_alone(allreduce: Any) -> None:
    wholes = inputs_of(4, (6, 8))
    before = [whole.clone() for whole in wholes]
    results = on_all_ranks(4, lambda mesh, rank: allreduce(mesh, rank, 4, wholes[rank][::2, 1::3].t()))
    assert all(same_bits(result, total_of(before)[::2, 1::3].t()) for result in results)
    assert all(map(same_bits, wholes, before))


@pytest.mark.parametrize("allreduce", [ring_allreduce, tree_allreduce])
def test_allreduce_of_a_lazily_conjugated_tensor(allreduce: Any) -> None:
    inputs = [torch.tensor([1 + 2j, 3 - 1j]) * (rank + 1) for rank in range(3)]
    results = on_all_ranks(3, lambda mesh, rank: allreduce(mesh, rank, 3, inputs[rank].conj()))
    assert all(torch.equal(result, total_of(inputs).conj()) for result in results)


@pytest.mark.parametrize("numel", NUMELS)
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_reduce_scatter_gives_rank_r_chunk_r_of_the_sum(world_size: int, numel: int) -> None:
    inputs = inputs_of(world_size, (numel,))
    results = on_all_ranks(world_size, lambda mesh, rank: ring_reduce_scatter(mesh, rank, world_size, inputs[rank]))
    assert all(map(same_bits, results, total_of(inputs).tensor_split(world_size)))


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_allgather_joins_parts_of_different_sizes_in_rank_order(world_size: int) -> None:
    parts = [torch.arange(float(3 * rank % 5)) + 10 * rank for rank in range(world_size)]
    results = on_all_ranks(world_size, lambda mesh, rank: ring_allgather(mesh, rank, world_size, parts[rank]))
    assert all(same_bits(result, torch.cat(parts)) for result in results)


@pytest.mark.parametrize(("world_size", "src"), [(n, src) for n in WORLD_SIZES for src in range(n)])
def test_broadcast_gives_every_rank_the_root_s_tensor(world_size: int, src: int) -> None:
    inputs = inputs_of(world_size, (3, 4))
    before = [tensor.clone() for tensor in inputs]
    results = on_all_ranks(world_size, lambda mesh, rank: tree_broadcast(mesh, rank, world_size, inputs[rank], src))
    assert all(same_bits(result, before[src]) for result in results)
    assert all(map(same_bits, inputs, before))


def test_broadcast_from_a_rank_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no rank 2 among 2"):
        tree_broadcast(queue_mesh(2)[0], 0, 2, torch.zeros(1), 2)


class CountingMesh:
    """A mesh that notes what its rank sends."""

    def __init__(self, inner: Mesh) -> None:
        self.inner = inner
        self.rank = inner.rank
        self.world_size = inner.world_size
        self.sent: list[int] = []

    def send(self, dst: int, tensor: Tensor) -> None:
        self.sent.append(tensor.nbytes)
        self.inner.send(dst, tensor)

    def recv(self, src: int) -> Tensor:
        return self.inner.recv(src)

    def push(self, dst: int, tensor: Tensor) -> None:
        self.sent.append(tensor.nbytes)
        self.inner.push(dst, tensor)

    def pull(self, src: int, out: Tensor) -> Tensor:
        return self.inner.pull(src, out)

    def flush(self) -> None:
        self.inner.flush()


def bytes_sent(collective: Any, world_size: int, numel: int) -> list[list[int]]:
    def body(mesh: Mesh, rank: int) -> list[int]:
        counting = CountingMesh(mesh)
        collective(counting, rank, world_size, torch.ones(numel))
        return counting.sent

    return on_all_ranks(world_size, body)


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_ring_allreduce_sends_2t_n_minus_1_in_2_n_minus_1_messages_per_rank(world_size: int) -> None:
    sent = bytes_sent(ring_allreduce, world_size, numel=101)
    assert sum(map(sum, sent)) == 2 * 404 * (world_size - 1)
    assert {len(messages) for messages in sent} == {2 * (world_size - 1)}


@pytest.mark.parametrize("world_size", range(2, 9))
def test_busiest_rank_of_the_tree_sends_t_times_ceil_log2_n(world_size: int) -> None:
    sent = bytes_sent(tree_allreduce, world_size, numel=101)
    assert max(map(sum, sent)) == 404 * (world_size - 1).bit_length()
    assert sum(map(sum, sent)) == 2 * 404 * (world_size - 1)


@pytest.mark.parametrize("allreduce", [ring_allreduce, tree_allreduce])
def test_a_result_may_be_overwritten_at_once(allreduce: Any) -> None:
    def body(mesh: Mesh, rank: int) -> list[Tensor]:
        results = []
        for _ in range(20):
            result = allreduce(mesh, rank, 4, torch.ones(64))
            results.append(result.clone())
            result.zero_()
        return results

    assert all(torch.equal(t, torch.full((64,), 4.0)) for results in on_all_ranks(4, body) for t in results)
