"""One unit of a fully sharded module: the memory of its parameters, whole while it computes and 1/N of it otherwise.

    whole     |  a  |      b      | c |     d     |0|     all ranks' shards; ``layer.weight`` is a view of it
    shards    |  rank 0  |  rank 1  |   rank 2    |      equal, so zeros (fewer than N) fill the end
    pieces    |  a  |b...|b.......|c..|c|d........|      what a rank has of each parameter: those the optimizer updates

The two directions are each other's derivative. Forward, N shards are gathered into the whole; backward, the N ranks'
gradients of the whole are summed, and every rank keeps its shard of the sum: a reduce-scatter. So the autograd function
`Gather` is all that autograd has to know. N = ``world_size``.
Source: Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel" (VLDB 2023), section 3.2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from impls.mesh import GlooMesh
from impls.reference.collectives import ring_reduce_scatter
from impls.reference.cut import Place

Gradients = Sequence[Tensor | None]
Finish = Callable[[Gradients], Gradients]  # from the gradients of a unit's parameters to those of its pieces


class FlatParameter:
    """Parameters of one dtype and ``requires_grad``, end to end, cut into N equal shards.

    `whole` keeps its shape while its memory comes and goes. That is how backward finds the weights again: autograd
    saved views of `whole` in forward, and they come back to life when the same storage is filled again.

    *Unused everywhere, or zero?* Without gradient a parameter is left alone, while one whose gradient is zero decays
    and moves on by its momentum. So a rank sends **-0.0** for what it did not use, and never in a real gradient
    (x + 0.0 turns -0.0 into 0.0). A sum is -0.0 only when all its terms are: that says that no rank used it.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], places: Sequence[Place], group: dist.ProcessGroup | None
    ) -> None:
        self.places = places
        self.trainable = parameters[0].requires_grad
        self._shapes = [parameter.shape for parameter in parameters]
        self._numels = [parameter.numel() for parameter in parameters]
        self._group = group
        self._mesh = GlooMesh(group)
        shard_numel = math.ceil(sum(self._numels) / self._mesh.world_size)
        start = self._mesh.rank * shard_numel
        self.spans: list[slice] = []  # which elements of each flattened parameter this rank has
        self._within: list[slice] = []  # and where they are in its shard
        for end, numel in zip(itertools.accumulate(self._numels), self._numels, strict=True):
            begin = end - numel
            first, last = (min(max(cut, begin), end) for cut in (start, start + shard_numel))
            self.spans.append(slice(first - begin, last - begin))
            self._within.append(slice(first - start, last - start))

        self.whole = parameters[0].detach().new_zeros(self._mesh.world_size * shard_numel)
        for view, parameter in zip(self.views(), parameters, strict=True):
            view.copy_(parameter.detach())
        self._shard = self.whole[start : start + shard_numel].clone()
        self.pieces = [nn.Parameter(piece, requires_grad=self.trainable) for piece in self._pieces_of(self._shard)]
        self._work: dist.Work | None = None  # the all-gather under way
        self.release()

    def start_gather(self) -> None:
        """Give `whole` memory again, and let all ranks' shards set out into it."""
        if any(not _shares_memory(piece, self._shard) for piece in self.pieces):
            raise RuntimeError(
                f"{self.places[0].names[0]} or its neighbours got new memory after fully_shard, which would stay as it "
                "is. Likely: module.to(...) or .data = ... afterwards. Cast, move and load first, then shard."
            )
        self.whole.untyped_storage().resize_(self.whole.nbytes)
        # Through .data: what autograd saved is not being modified, it will find the values that it left.
        self._work = self._all_gather(self.whole.data)

    def wait(self) -> None:
        """Wait until `whole` is filled."""
        if self._work is not None:
            self._work.wait()
        self._work = None

    def release(self) -> None:
        """Free the memory of `whole`, whoever still has views of it."""
        self.wait()
        self.whole.untyped_storage().resize_(0)

    def views(self, whole: Tensor | None = None) -> list[Tensor]:
        """The parameters, as parts of `whole`."""
        parts = torch.split((self.whole if whole is None else whole)[: sum(self._numels)], self._numels)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]

    def gathered(self) -> list[Tensor]:
        """The parameters whole, in memory of their own."""
        whole = self._shard.new_empty(self.whole.shape)
        if (work := self._all_gather(whole)) is not None:
            work.wait()
        return self.views(whole)

    def reduce(self, gradients: Gradients) -> Gradients:
        """Pieces of the mean of all ranks' `gradients`; None where there is no piece, or no rank had a gradient."""
        total = self._reduce_scatter(self._flatten(gradients))  # [shard_numel]
        mean = self._pieces_of(total / self._mesh.world_size)  # new memory: that of the whole gradient can go
        parts = zip(mean, self._pieces_of(total), gradients, strict=True)
        return [piece if sums.numel() and _is_used(sums, own) else None for piece, sums, own in parts]

    def _flatten(self, gradients: Gradients) -> Tensor:
        """The gradients end to end, -0.0 for those that are missing. [N * shard_numel]"""
        flat = self._shard.new_empty(self.whole.shape)
        for part, gradient in zip(self.views(flat), gradients, strict=True):
            part.fill_(-0.0) if gradient is None else torch.add(gradient, 0.0, out=part)
        flat[sum(self._numels) :].zero_()
        return flat

    def _reduce_scatter(self, flat: Tensor) -> Tensor:
        """This rank's shard of the sum of all ranks' `flat`. [shard_numel]"""
        if flat.is_cuda:  # where there is no gloo mesh; not tried here
            total = torch.empty_like(self._shard)
            dist.reduce_scatter_tensor(total, flat, group=self._group)
            return total
        # Around the ring, because gloo's own reduce-scatter sends twice as much.
        return ring_reduce_scatter(self._mesh, self._mesh.rank, self._mesh.world_size, flat, in_place=True)

    def _all_gather(self, whole: Tensor) -> dist.Work | None:
        """Let all shards set out into `whole`. While they are under way, gloo has a copy of it on this rank besides."""
        if not self._shard.numel():
            return None
        parts = list(whole.tensor_split(self._mesh.world_size))
        work: dist.Work | None = dist.all_gather(parts, self._shard, group=self._group, async_op=True)
        return work

    def _pieces_of(self, shard: Tensor) -> list[Tensor]:
        return [shard[within] for within in self._within]


class Gather(torch.autograd.Function):
    """From the pieces of a unit's parameters to the whole; backward, from whole gradients to those of the pieces.

    Autograd calls backward once all gradients that this forward pass of the unit brings are complete.
    """

    @staticmethod
    def forward(ctx: Any, unit: Unit, finish: Finish, *pieces: Tensor) -> tuple[Tensor, ...]:
        """The trainable parameters of `unit`, which is whole already."""
        ctx.finish = finish
        ctx.set_materialize_grads(False)
        return tuple(view for flat in unit.trainable for view in flat.views())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of the pieces; autograd adds them to their ``.grad``."""
        return None, None, *ctx.finish(gradients)


class Unit:
    """A module with a forward pass, and the parameters that are gathered for it."""

    def __init__(
        self, module: nn.Module, places: Mapping[nn.Parameter, Place], group: dist.ProcessGroup | None
    ) -> None:
        self.module = module
        self.is_gathered = False  # or about to be
        self.in_backward = False
        self.flats: list[FlatParameter] = []
        for parameters in _runs(places):
            flat = FlatParameter(parameters, [places[parameter] for parameter in parameters], group)
            for parameter, place, piece in zip(parameters, flat.places, flat.pieces, strict=True):
                parameter.data = parameter.data.new_empty(0)  # somebody may still have it: it shall not keep its memory
                for owner, attribute in place.attributes:
                    owner._parameters[attribute] = piece
            self.flats.append(flat)
        self.trainable = [flat for flat in self.flats if flat.trainable]

    def start_gather(self) -> None:
        """Let the parameters set out to this rank, unless they are here."""
        if not self.is_gathered:
            for flat in self.flats:
                flat.start_gather()
        self.is_gathered = True

    def attach(self, finish: Finish) -> None:
        """Gather, and show the module its whole parameters; backward will hand their gradients to `finish`."""
        self.start_gather()
        for flat in self.flats:
            flat.wait()
        pieces = [piece for flat in self.trainable for piece in flat.pieces]
        trained = iter(Gather.apply(self, finish, *pieces) if pieces else ())  # type: ignore[no-untyped-call]
        for flat in self.flats:
            for view, place in zip(flat.views(), flat.places, strict=True):
                parameter = next(trained) if flat.trainable else view
                for owner, attribute in place.attributes:
                    owner.__dict__[attribute] = parameter  # found before the piece in ``_parameters``
        self._tell_recurrent_layers()

    def release(self) -> None:
        """Free the parameters, if they are here; what the module shows are the pieces again."""
        if self.is_gathered:
            for flat in self.flats:
                flat.release()
                for owner, attribute in itertools.chain.from_iterable(place.attributes for place in flat.places):
                    owner.__dict__.pop(attribute, None)
            self._tell_recurrent_layers()
        self.is_gathered = False

    def reduce(self, gradients: Gradients) -> Gradients:
        """The gradients of the trainable pieces, from those of the parameters in the order of `Gather`'s outputs."""
        rest = iter(gradients)
        parts = [list(itertools.islice(rest, len(flat.places))) for flat in self.trainable]
        return [piece for flat, part in zip(self.trainable, parts, strict=True) for piece in flat.reduce(part)]

    def _tell_recurrent_layers(self) -> None:
        """torch's RNN, LSTM and GRU have a list of their weights besides."""
        for layer in self.module.modules():
            if isinstance(layer, nn.RNNBase):
                layer._flat_weights = [getattr(layer, name) for name in layer._flat_weights_names]


def _runs(parameters: Iterable[nn.Parameter]) -> list[list[nn.Parameter]]:
    """The parameters by dtype, device and whether they are trained: what can share a `FlatParameter`."""
    runs: dict[tuple[torch.dtype, torch.device, bool], list[nn.Parameter]] = {}
    for parameter in parameters:
        runs.setdefault((parameter.dtype, parameter.device, parameter.requires_grad), []).append(parameter)
    return list(runs.values())


def _is_used(sums: Tensor, own: Tensor | None) -> bool:
    """Whether any rank had a gradient: this one its `own`, or else the sum does not begin with -0.0."""
    if own is not None:
        return True
    first = sums[0].real
    return not bool(first.signbit()) or bool(first != 0)


def _shares_memory(a: Tensor, b: Tensor) -> bool:
    return bool(a.untyped_storage()._cdata == b.untyped_storage()._cdata)
