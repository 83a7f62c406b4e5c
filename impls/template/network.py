"""What collectives take: a message of n bytes takes latency_s + n / bandwidth seconds (bandwidth in bytes per s)."""

from __future__ import annotations


def ring_time(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
    """Seconds of a ring all-reduce of a tensor of `num_bytes`."""
    raise NotImplementedError


def tree_time(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
    """Seconds of an all-reduce up a binomial tree and down again."""
    raise NotImplementedError


def crossover_bytes(world_size: int, latency_s: float, bandwidth: float) -> float | None:
    """The size above which the ring is the faster of the two; 0 or None where it always is."""
    raise NotImplementedError


def tensor_parallel_time(
    num_bytes: float,
    num_layers: int,
    world_size: int,
    ranks_per_node: int,
    latency_s: float,
    bandwidth: float,
    between_latency_s: float,
    between_bandwidth: float,
) -> float:
    """Seconds that a step waits for its tensor-parallel all-reduces, four of `num_bytes` in each layer.

    Of the group's ranks, the first `ranks_per_node` are in one node and the next in another; ``between_`` is the link
    between nodes.
    """
    raise NotImplementedError
