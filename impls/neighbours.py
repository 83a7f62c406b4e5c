"""A mesh as queues or pipes: one to each neighbour on a ring, one to each rank, or one for each pair of ranks.

What ``multiprocessing`` courses hand their ranks: ``to_next.put(x)``, ``from_prev.get()``, ``queues[dst].put(x)`` with
``queues[rank].get()``, ``pipes[peer].send(x)``. Any object travels, as in `mpi_names`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from impls.handover import NotProvided
from impls.mpi_names import MpiNames

NAMES = ("to_next", "from_previous", "queues", "connections")  # the contract's parameters


def neighbours(mesh: MpiNames) -> dict[str, Any]:
    """The values of these parameters over a mesh."""
    return {
        "to_next": Link(mesh, (mesh.rank + 1) % mesh.world_size),
        "from_previous": Link(mesh, (mesh.rank - 1) % mesh.world_size),
        "queues": Queues(mesh),
        "connections": Connections(mesh),
    }


class Link:
    """What goes to one rank, and what comes from it: the end of a pipe, or a queue that is used one way."""

    def __init__(self, mesh: MpiNames, peer: int) -> None:
        self._mesh, self._peer = mesh, peer
        self._own: deque[Any] = deque()  # what this rank sends to itself

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Send, without waiting for anybody."""
        if self._peer == self._mesh.rank:
            self._own.append(item)
        else:
            self._mesh.send(item, dest=self._peer)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object that the rank sent."""
        return self._own.popleft() if self._own else self._mesh.recv(source=self._peer)

    def send(self, item: Any) -> None:
        """As a pipe calls it."""
        self.put(item)

    def recv(self) -> Any:
        """As a pipe calls it."""
        return self.get()

    def put_nowait(self, item: Any) -> None:
        """As a queue calls it; none is ever full."""
        self.put(item)


class Inbox(Link):
    """``queues[i]``: everybody puts into it, and rank i takes out what comes first. ``queues[i][j]``: see `Pair`."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object that any rank sent here."""
        if self._peer != self._mesh.rank:
            raise NotProvided(
                f"rank {self._mesh.rank} takes from queues[{self._peer}], so queues[i] is no inbox of rank i, and "
                f"nothing tells whose it is: put into queues[dst] and get from queues[rank], or index by pairs of "
                f"ranks, queues[src, dst]"
            )
        return self._own.popleft() if self._own else self._mesh.recv_any()

    def __getitem__(self, other: int) -> Link:
        return _of_pair(self._mesh, self._peer, other)


class Queues:
    """One inbox for each rank, ``queues[i]``, or one queue for each pair of ranks, ``queues[i, j]``."""

    def __init__(self, mesh: MpiNames) -> None:
        self._mesh = mesh
        self._links: dict[Any, Link] = {}

    def __len__(self) -> int:
        return self._mesh.world_size

    def __getitem__(self, key: Any) -> Link:
        if key not in self._links:
            self._links[key] = _of_pair(self._mesh, *key) if isinstance(key, tuple) else self._link(int(key))
        return self._links[key]

    def _link(self, rank: int) -> Link:
        _assert_there(self._mesh, rank)
        return Inbox(self._mesh, rank)


class Connections(Queues):
    """One pipe to each rank, ``pipes[peer]``."""

    def _link(self, rank: int) -> Link:
        _assert_there(self._mesh, rank)
        return Link(self._mesh, rank)


def _of_pair(mesh: MpiNames, one: int, other: int) -> Link:
    """The queue from one rank to another, whichever is named first: this rank is one of them."""
    if mesh.rank not in (one, other):
        raise NotProvided(f"rank {mesh.rank} uses the queue between ranks {one} and {other}")
    return Link(mesh, other if one == mesh.rank else one)


def _assert_there(mesh: MpiNames, rank: int) -> None:
    if not 0 <= rank < mesh.world_size:
        raise IndexError(f"there is no rank {rank} among {mesh.world_size}")
