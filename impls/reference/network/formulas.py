"""What collectives take, in closed form. N = ``world_size``, T = ``num_bytes`` of the whole tensor, seconds out.

    ring all-reduce                  2(N-1) (alpha + T/N/beta)         bytes are spread over all steps
    binomial tree, up and down       2 ceil(log2 N) (alpha + T/beta)   fewer steps, the whole tensor in each
    ring all-gather, reduce-scatter  (N-1) (alpha + T/N/beta)          each is half a ring all-reduce

alpha is the latency of a message, beta the bandwidth. So the ring is faster from the size on at which its smaller
messages outweigh its latencies; up to 3 ranks it has no more steps than the tree, and is never slower.
Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH" (2005), section
4; Patarasuk and Yuan 2009 for the ring. Additions are left out: the ring has no more of them.
"""

from __future__ import annotations

import math

from impls.reference.network.links import Link


def ring_time(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
    """Seconds of a ring all-reduce. ValueError for figures that make no sense, here and below."""
    return 2 * ring_half_time(num_bytes, world_size, latency_s, bandwidth)


def ring_half_time(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
    """Seconds of a ring all-gather whose output has `num_bytes`, or of a reduce-scatter whose input has."""
    link = _checked(num_bytes, world_size, latency_s, bandwidth)
    return (world_size - 1) * link.message_s(num_bytes / world_size)


def tree_time(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
    """Seconds of an all-reduce up a binomial tree and down again."""
    link = _checked(num_bytes, world_size, latency_s, bandwidth)
    return 2 * log2_ceil(world_size) * link.message_s(num_bytes)


def crossover_bytes(world_size: int, latency_s: float, bandwidth: float) -> float:
    """Bytes above which the ring is faster than the tree, and below which it is slower; 0 up to 3 ranks.

    From ring_time = tree_time: alpha beta (N - 1 - log) / (log - (N-1)/N) with log = ceil(log2 N).
    """
    link = _checked(0, world_size, latency_s, bandwidth)
    if world_size <= 3:
        return 0.0
    steps = log2_ceil(world_size)
    in_latencies = (world_size - 1 - steps) / (steps - (world_size - 1) / world_size)
    return in_latencies * link.latency_s * link.bandwidth


def log2_ceil(world_size: int) -> int:
    """The depth of a binomial tree over so many ranks."""
    return (world_size - 1).bit_length()


def _checked(num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> Link:
    if not isinstance(world_size, int) or world_size < 1:
        raise ValueError(f"world_size is {world_size!r}; give a whole number of ranks, at least 1")
    if not (num_bytes >= 0 and math.isfinite(num_bytes)):
        raise ValueError(f"num_bytes is {num_bytes!r}; give the bytes of the whole tensor, 0 or more")
    return Link(latency_s=latency_s, bandwidth=bandwidth)
