"""A send returns only when its message has been taken."""

from __future__ import annotations

import queue

from torch import Tensor

BREAKS = ("collectives.queue-mesh", "resists.pipeline-send-send")

Queues = dict[tuple[int, int], "queue.Queue[Tensor]"]
RECV_TIMEOUT_S = 30.0


class Box:
    """One end of the mesh."""

    def __init__(self, rank: int, world_size: int, queues: Queues) -> None:
        self.rank = rank
        self.world_size = world_size
        self.queues = queues

    def send(self, dst: int, tensor: Tensor) -> None:
        """Put a copy into the queue to `dst`."""
        self.queues[self.rank, dst].put(tensor.clone())
        self.queues[self.rank, dst].join()

    def recv(self, src: int) -> Tensor:
        """Take from the queue of `src`."""
        try:
            letter = self.queues[src, self.rank].get(timeout=RECV_TIMEOUT_S)
        except queue.Empty:
            raise TimeoutError(f"rank {self.rank} heard nothing from rank {src}") from None
        self.queues[src, self.rank].task_done()
        return letter


def queue_mesh(world_size: int) -> list[Box]:
    """Linked ends."""
    ranks = range(world_size)
    queues: Queues = {(src, dst): queue.Queue() for src in ranks for dst in ranks}
    return [Box(rank, world_size, queues) for rank in ranks]
