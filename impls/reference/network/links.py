"""Links, and two levels of them: quick ones between the ranks of a node, slower ones between nodes.

A message of n bytes takes ``latency_s + n / bandwidth`` seconds. Source: Hockney, "The communication challenge for MPP"
(Parallel Computing 20, 1994); alpha and beta in Thakur, Rabenseifner and Gropp 2005, section 3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction of one rank's connection."""

    latency_s: float  # alpha: what a message takes however small it is
    bandwidth: float  # 1/beta: bytes per second

    def __post_init__(self) -> None:
        if not (self.latency_s >= 0 and math.isfinite(self.latency_s)):
            raise ValueError(f"latency_s is {self.latency_s!r}; give seconds, 0 or more, such as 5e-6")
        if not self.bandwidth > 0:
            raise ValueError(f"bandwidth is {self.bandwidth!r}; give bytes per second above 0, such as 25e9")

    def message_s(self, num_bytes: float) -> float:
        """Seconds from the moment a message leaves to the moment it is there."""
        return self.latency_s + num_bytes / self.bandwidth


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes of `ranks_per_node` ranks each: ranks 0, 1, ... fill the first node, and so on.

    Every rank has a connection of its own to both levels, so that two ranks of a node never share one to another node.
    """

    inside: Link
    between: Link
    ranks_per_node: int = 8

    def __post_init__(self) -> None:
        if not isinstance(self.ranks_per_node, int) or self.ranks_per_node < 1:
            raise ValueError(f"ranks_per_node is {self.ranks_per_node!r}; give a whole number of at least 1, such as 8")

    @classmethod
    def flat(cls, link: Link) -> Cluster:
        """One level: the same link between all ranks."""
        return cls(inside=link, between=link)

    def link(self, src: int, dst: int) -> Link:
        """The link that a message from rank `src` to rank `dst` takes."""
        return self.inside if src // self.ranks_per_node == dst // self.ranks_per_node else self.between

    def ring_link(self, ranks: Sequence[int]) -> Link:
        """The pace of a ring over these ranks in this order: that of its slowest message.

        Every connection of a ring carries as many messages as any other, so the slowest one is never idle, and all
        others wait for it.
        """
        nodes = {rank // self.ranks_per_node for rank in ranks}
        if len(nodes) == 1:
            return self.inside
        pairs = {rank // self.ranks_per_node == after // self.ranks_per_node for rank, after in _around(ranks)}
        used = [self.inside] * (True in pairs) + [self.between]
        return Link(latency_s=max(link.latency_s for link in used), bandwidth=min(link.bandwidth for link in used))


def _around(ranks: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(ranks, [*ranks[1:], ranks[0]], strict=True))
