"""Parameters laid end to end in one buffer and cut into N equal shards: what ZeRO-1 and ZeRO-2 are built on.

    parameters   |  a  |      b      | c |       d       |0 0|      one buffer; the parameters are views of it
    shards       |    rank 0   |    rank 1   |    rank 2     |      equal, so zeros (fewer than N) fill the end
    pieces       |  a  |b......|b....| c |d..|d..........|          the parts of parameters in a shard

A cut goes through parameters wherever it falls, so every rank has the same share whatever the shapes. A rule that works
element by element (SGD, Adam, ...) does not notice: a piece is to it what a parameter is. N = ``world_size``.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.mesh import Mesh
from impls.reference.collectives import ring_reduce_scatter

HALVES = (torch.float16, torch.bfloat16)  # too coarse to add small updates to: their shard has an FP32 master copy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """Elements ``begin`` to ``end`` of a flattened parameter: what this rank updates of it."""

    parameter: Tensor
    begin: int
    end: int
    within_shard: slice
    master: nn.Parameter  # [end - begin], a view of the master shard: the inner optimizer's parameter


class Flat:
    """Some parameters of one dtype and device; their memory moves into ``buffer``, and gradients come through here.

    *Unused everywhere, or zero?* In a single process a parameter without gradient is left alone, while one whose
    gradient is zero still decays and moves on by its momentum. So a rank sends **-0.0** for a parameter that it did not
    use, and never in a real gradient (x + 0.0 turns -0.0 into 0.0). A sum is -0.0 only when all its terms are: that
    tells, without a single extra byte, that no rank used the parameter.
    """

    def __init__(self, parameters: Sequence[Tensor], rank: int, world_size: int) -> None:
        self.parameters = parameters
        self.world_size = world_size
        ends = list(itertools.accumulate(parameter.numel() for parameter in parameters))
        self.places = {p: slice(end - p.numel(), end) for p, end in zip(parameters, ends, strict=True)}
        self.shard_numel = math.ceil(ends[-1] / world_size)
        self.buffer = parameters[0].new_zeros(world_size * self.shard_numel)
        _refuse_common_memory(parameters)
        for parameter in parameters:
            self._move_in(parameter)

        start = rank * self.shard_numel
        self.shard = self.buffer[start : start + self.shard_numel]
        # FP32 parameters are their own master copy: a second one would hold nothing new.
        self.master = self.shard.float() if self.shard.dtype in HALVES else self.shard
        self.pieces = list(self._cut(start, start + self.shard_numel))

        self.gradient: Tensor | None = None  # this rank's shard of the mean gradient, [shard_numel]
        self.used: set[Piece] = set()  # those for which some rank had a gradient
        self._incoming: Tensor | None = None  # this rank's own gradient, whole, on its way to the others; like `buffer`
        self._taken: set[Tensor] = set()  # the parameters whose gradient is in there

    # -- gradients -----------------------------------------------------------------------------------------------------

    def take(self, parameter: Tensor) -> None:
        """Copy the gradient of `parameter` in; a second one before the reduction is added."""
        assert parameter.grad is not None
        if self._incoming is None:
            self._incoming = torch.full_like(self.buffer, -0.0)
        view = self._incoming[self.places[parameter]].view(parameter.shape)
        torch.add(parameter.grad, view if parameter in self._taken else 0.0, out=view)
        self._taken.add(parameter)

    def is_full(self) -> bool:
        """Whether no gradient is missing that this backward can still bring."""
        return all(parameter in self._taken or not parameter.requires_grad for parameter in self.parameters)

    def reduce(self, mesh: Mesh) -> None:
        """Reduce-scatter what was taken, wait for it, and add this rank's shard of the mean to `gradient`."""
        whole = torch.full_like(self.buffer, -0.0) if self._incoming is None else self._incoming
        total = ring_reduce_scatter(mesh, mesh.rank, mesh.world_size, whole, in_place=True)
        for piece in self.pieces:
            if piece.parameter in self._taken or not _is_negative_zero(total[piece.within_shard][0]):
                self.used.add(piece)
        mean = total / mesh.world_size  # a shard in memory of its own: the whole goes
        self.gradient = mean if self.gradient is None else self.gradient.add_(mean)
        self._incoming = None
        self._taken.clear()

    def hand_over(self) -> None:
        """Give each piece's master its gradient, None for what no rank used."""
        if self.gradient is not None:
            gradient = self.gradient.to(self.master.dtype)
            for piece in self.used:
                piece.master.grad = gradient[piece.within_shard]

    def forget(self) -> None:
        """Drop the gradient, and what of a backward that broke off is still here."""
        self.gradient = self._incoming = None
        self.used.clear()
        self._taken.clear()

    # -- parameters ----------------------------------------------------------------------------------------------------

    def publish(self, group: dist.ProcessGroup | None) -> None:
        """All-gather the shards straight into the parameters, in their dtype: for bf16, half the master's bytes."""
        if self.master is not self.shard:
            self.shard.copy_(self.master)
        if self.shard_numel:
            dist.all_gather(list(self.buffer.tensor_split(self.world_size)), self.shard, group=group)

    def take_over_changes(self) -> None:
        """Let what was written into the parameters from outside (a checkpoint, a new ``.data``) count from now on."""
        for parameter in self.parameters:
            if not _shares_memory(parameter, self.buffer):
                if (parameter.dtype, parameter.device) != (self.buffer.dtype, self.buffer.device):
                    raise RuntimeError(
                        f"a parameter of shape {tuple(parameter.shape)} was {self.buffer.dtype} on {self.buffer.device}"
                        f" when the sharded optimizer was built, and is {parameter.dtype} on {parameter.device} now. "
                        "Likely: module.to(...) afterwards. Cast or move the module first, then build the optimizer."
                    )
                self._move_in(parameter)
        if self.master is not self.shard:
            unchanged = self.master.to(self.shard.dtype) == self.shard
            self.master.copy_(torch.where(unchanged, self.master, self.shard))

    def _move_in(self, parameter: Tensor) -> None:
        view = self.buffer[self.places[parameter]].view(parameter.shape)
        view.copy_(parameter.detach())
        parameter.data = view

    def _cut(self, start: int, stop: int) -> Iterable[Piece]:
        """The parts of parameters between `start` and `stop` of the buffer."""
        for parameter, place in self.places.items():
            first, last = max(place.start, start), min(place.stop, stop)
            if first < last:
                within_shard = slice(first - start, last - start)
                yield Piece(
                    parameter=parameter,
                    begin=first - place.start,
                    end=last - place.start,
                    within_shard=within_shard,
                    master=nn.Parameter(self.master[within_shard]),
                )


def pack(parameters: Iterable[Tensor], cap_bytes: float = math.inf) -> list[list[Tensor]]:
    """The parameters in runs of one dtype and device, of at most `cap_bytes` (or of one parameter), in their order."""
    runs: list[list[Tensor]] = []
    open_for: dict[tuple[torch.dtype, torch.device], tuple[list[Tensor], int]] = {}
    for parameter in parameters:
        kind = (parameter.dtype, parameter.device)
        run, num_bytes = open_for.get(kind, ([], 0))
        if not run or num_bytes + parameter.nbytes > cap_bytes:
            run, num_bytes = [], 0
            runs.append(run)
        run.append(parameter)
        open_for[kind] = run, num_bytes + parameter.nbytes
    return runs


def _refuse_common_memory(parameters: Sequence[Tensor]) -> None:
    starts = [(p.untyped_storage()._cdata, p.storage_offset()) for p in parameters if p.numel()]
    if len(set(starts)) < len(starts):
        raise ValueError(
            "two different parameters lie in the same memory, which moving them into a flat buffer would end. "
            "Likely: tied by a.data = b.data; tie them by a = b, so that both names are one parameter."
        )


def _is_negative_zero(element: Tensor) -> bool:
    return bool((element.real == 0) & element.real.signbit())


def _shares_memory(a: Tensor, b: Tensor) -> bool:
    return bool(a.untyped_storage()._cdata == b.untyped_storage()._cdata)
