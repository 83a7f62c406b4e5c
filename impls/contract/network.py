"""Block `network`: what collectives take on links with a latency and a bandwidth."""

from __future__ import annotations

from typing import Protocol


class NetworkBlock(Protocol):
    """Closed forms of the latency-bandwidth model: a message of n bytes takes ``latency_s + n / bandwidth`` seconds.

    N = `world_size`, T = `num_bytes` of the whole tensor; bandwidth in bytes per second, results in seconds. A rank
    sends one message and receives one at a time. ValueError for figures that make no sense. Sources: Hockney 1994;
    Thakur, Rabenseifner and Gropp 2005, section 4.
    """

    def ring_time(self, num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
        """Ring all-reduce: 2(N-1) messages of T/N one after the other."""

    def tree_time(self, num_bytes: float, world_size: int, latency_s: float, bandwidth: float) -> float:
        """All-reduce up a binomial tree and down: 2 ceil(log2 N) messages of T one after the other."""

    def crossover_bytes(self, world_size: int, latency_s: float, bandwidth: float) -> float | None:
        """The T above which the ring is the faster of the two; 0 or None up to 3 ranks, where it always is."""

    def tensor_parallel_time(
        self,
        num_bytes: float,
        num_layers: int,
        world_size: int,
        ranks_per_node: int,
        latency_s: float,
        bandwidth: float,
        between_latency_s: float,
        between_bandwidth: float,
    ) -> float:
        """What a training step waits for the all-reduces of one tensor-parallel group over neighbouring ranks.

        Each of `num_layers` layers has four of `num_bytes` (of its activations), two forward and two backward, by ring.
        The first `ranks_per_node` ranks are in one node, the next in another; links between nodes have the ``between_``
        figures. Within one node it is 4 `num_layers` times `ring_time`. Source: Narayanan et al. 2021, section 3.2.
        """
