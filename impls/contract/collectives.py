"""Block `collectives`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # names in signatures only: pytest's controller reads the tables and never needs torch
    import torch
    from torch import Tensor
    from torch.distributed import ProcessGroup

    from impls.mesh import Mesh


class Collectives(Protocol):
    """Sums, copies and shards of one tensor over all ranks, from send and recv or over torch.distributed.

    Any N, any numel (0, 1, fewer than N, not divisible by N), any strides, every dtype that gloo carries (f64 f32 f16
    bf16 i64 i32 i8 u8 bool c64 c128). All ranks end with the same bits. Sources: Patarasuk and Yuan 2009 (ring);
    Thakur, Rabenseifner and Gropp 2005 (binomial tree, ring).
    """

    RECV_TIMEOUT_S: float  # seconds that a queue mesh waits for a silent peer: 30.0

    def queue_mesh(self, world_size: int) -> Sequence[Mesh]:
        """N linked ends (`send(dst, tensor)`, `recv(src)`), one for each thread of this process."""

    def ring_allreduce(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """Sum over ranks, shape of `tensor`. 2(N-1) steps, 2T(N-1)/N bytes sent per rank. In place allowed."""

    def tree_allreduce(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """Sum over ranks, shape of `tensor`. 2 ceil(log2 N) steps, at most T ceil(log2 N) sent. In place allowed."""

    def ring_allgather(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """All ranks' tensors joined flat in rank order, [sum of numel]; a list of them is fine. N-1 steps, T(N-1)/N."""

    def ring_reduce_scatter(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor) -> Tensor:
        """This rank's part of the flat sum. N-1 steps, T(N-1)/N bytes sent.

        Joined in rank order the parts are the flat sum; ours are cut as ``torch.tensor_split`` cuts. Padding at the end
        of the last parts is understood.
        """

    def tree_broadcast(self, mesh: Mesh, rank: int, world_size: int, tensor: Tensor, src: int) -> Tensor:
        """Rank `src`'s tensor on every rank; elsewhere `tensor` gives shape and dtype. In place allowed."""

    def all_reduce(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """Sum over the ranks of `group`, by whatever algorithm. In place allowed."""

    def all_gather(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """All ranks' tensors (equal shapes) joined flat in rank order; a list of them is fine."""

    def reduce_scatter(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """This rank's part of the flat sum, by whatever algorithm; layout as `ring_reduce_scatter`."""

    def broadcast(self, tensor: Tensor, src: int, group: ProcessGroup | None) -> Tensor:
        """Rank `src`'s tensor on every rank, by whatever algorithm. In place allowed."""

    def shard_gradients(self, tensor: Tensor, group: ProcessGroup | None) -> Tensor:
        """ZeRO-1's gradient shard: this rank's part of the summed flat gradient, as `reduce_scatter`.

        Also in the form of the cheatsheet, `shard_gradients(local_grad, chunks)`: `chunks` are the N parts of this
        rank's gradient, and the sum of part `rank` over all ranks is written into `local_grad`.
        Source: Rajbhandari et al. 2020, ZeRO, section 5.1.
        """

    def gather_parameters(self, master_shard: Tensor, dtype: torch.dtype, group: ProcessGroup | None) -> Tensor:
        """ZeRO-1's way back: all ranks' shards (equal sizes), cast to `dtype` before they travel, joined flat."""
