"""Replayed messages against the closed forms and against figures worked out by hand."""

from __future__ import annotations

import pytest

from impls.reference.collectives import ring_allgather, ring_allreduce, ring_reduce_scatter, tree_allreduce
from impls.reference.network.formulas import crossover_bytes, ring_half_time, ring_time, tree_time
from impls.reference.network.links import Cluster, Link
from impls.reference.network.messages import Recv, Send, replay, replay_rotated
from impls.reference.network.record import record, record_all, relative

LINK = Link(latency_s=1e-5, bandwidth=1e9)
FLAT = Cluster.flat(LINK)
SIZES = [1, 2, 3, 4, 5, 8, 16, 33]
FIGURES = (LINK.latency_s, LINK.bandwidth)


@pytest.mark.parametrize("world_size", SIZES)
def test_a_ring_takes_2_n_minus_1_messages_of_a_share(world_size: int) -> None:
    num_bytes = 1000 * world_size
    programs = record_all(ring_allreduce, world_size, num_bytes)
    assert replay(programs, FLAT) == pytest.approx(ring_time(num_bytes, world_size, *FIGURES))


@pytest.mark.parametrize("world_size", SIZES)
def test_a_tree_takes_2_log_n_whole_tensors(world_size: int) -> None:
    programs = record_all(tree_allreduce, world_size, 1000)
    assert replay(programs, FLAT) == pytest.approx(tree_time(1000, world_size, *FIGURES))


def test_half_a_ring_takes_half_as_long() -> None:
    programs = record_all(ring_reduce_scatter, 4, 4000)
    assert replay(programs, FLAT) == pytest.approx(ring_half_time(4000, 4, *FIGURES)) == pytest.approx(3 * 1.1e-5)


@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_all_ranks_of_a_ring_at_once_are_as_each_by_itself(world_size: int) -> None:
    cluster = Cluster(inside=LINK, between=Link(latency_s=3e-5, bandwidth=1e8), ranks_per_node=3)
    programs = record_all(ring_allreduce, world_size, 240)
    first = relative(programs[0], 0, world_size)
    assert all(relative(program, rank, world_size) == first for rank, program in enumerate(programs))
    assert replay_rotated(first, world_size, cluster) == pytest.approx(replay(programs, cluster))


def test_thousands_of_ranks_take_seconds() -> None:
    ring = relative(record(ring_allreduce, 4096, 0, 4096), 0, 4096)
    assert replay_rotated(ring, 4096, FLAT) == pytest.approx(ring_time(4096, 4096, *FIGURES))
    tree = record_all(tree_allreduce, 4096, 8)
    assert replay(tree, FLAT, scale=1000.0) == pytest.approx(tree_time(8000, 4096, *FIGURES))


def test_two_levels_by_hand() -> None:
    slow = Link(latency_s=1e-3, bandwidth=1e6)
    cluster = Cluster(inside=Link(latency_s=0, bandwidth=1e9), between=slow, ranks_per_node=2)
    # Rank 1 hands on to rank 2 in the other node once rank 0's 1000 bytes are there: 1e-6 + 1e-3 + 1e-3.
    programs = [[Send(1, 1000)], [Recv(0), Send(2, 1000)], [Recv(1)], []]
    assert replay(programs, cluster) == pytest.approx(1e-6 + 2e-3)


def test_a_receiver_takes_one_message_at_a_time() -> None:
    programs = [[Recv(1), Recv(2)], [Send(0, 1000)], [Send(0, 1000)]]
    assert replay(programs, FLAT) == pytest.approx(2 * LINK.message_s(1000))


def test_a_sender_sends_one_message_at_a_time() -> None:
    programs = [[Send(1, 1000), Send(2, 1000)], [Recv(0)], [Recv(0)]]
    assert replay(programs, FLAT) == pytest.approx(2 * LINK.message_s(1000))


def test_both_directions_at_once_take_as_long_as_one() -> None:
    programs = [[Send(1, 1000), Recv(1)], [Send(0, 1000), Recv(0)]]
    assert replay(programs, FLAT) == pytest.approx(LINK.message_s(1000))


def test_a_ring_goes_at_the_pace_of_its_slowest_link() -> None:
    cluster = Cluster(inside=LINK, between=Link(latency_s=1e-4, bandwidth=1e8), ranks_per_node=4)
    programs = record_all(ring_allreduce, 16, 16_000)
    link = cluster.ring_link(range(16))
    slowest = ring_time(16_000, 16, link.latency_s, link.bandwidth)
    assert replay(programs, cluster) == pytest.approx(slowest)


def test_a_wait_for_what_nobody_sends_is_an_error() -> None:
    with pytest.raises(ValueError, match="rank 1 waits for ever at its operation 0"):
        replay([[], [Recv(0)]], FLAT)


def test_what_needs_the_values_of_others_is_not_recorded() -> None:
    with pytest.raises(AttributeError):
        record(ring_allgather, 4, 0, 8)  # the sizes of the pieces may differ, and only their senders know


@pytest.mark.parametrize("world_size", [4, 5, 8, 64, 256])
def test_ring_and_tree_are_equally_fast_at_the_crossover(world_size: int) -> None:
    num_bytes = crossover_bytes(world_size, *FIGURES)
    assert ring_time(num_bytes, world_size, *FIGURES) == pytest.approx(tree_time(num_bytes, world_size, *FIGURES))
    assert ring_time(num_bytes * 2, world_size, *FIGURES) < tree_time(num_bytes * 2, world_size, *FIGURES)
    assert ring_time(num_bytes / 2, world_size, *FIGURES) > tree_time(num_bytes / 2, world_size, *FIGURES)


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_up_to_three_ranks_the_ring_is_never_slower(world_size: int) -> None:
    assert crossover_bytes(world_size, *FIGURES) == 0
    for num_bytes in (0, 1, 10**3, 10**9):
        assert ring_time(num_bytes, world_size, *FIGURES) <= tree_time(num_bytes, world_size, *FIGURES)


@pytest.mark.parametrize("figures", [(-1, 4, 0, 1), (1, 0, 0, 1), (1, 4, -1, 1), (1, 4, 0, 0), (float("nan"), 4, 0, 1)])
def test_figures_that_make_no_sense_are_refused(figures: tuple[float, int, float, float]) -> None:
    for formula in (ring_time, tree_time):
        with pytest.raises(ValueError, match="give"):
            formula(*figures)
