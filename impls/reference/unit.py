"""One unit of a fully sharded module: the memory of its parameters, whole while it computes and 1/N of it otherwise.

    at rest   shard  |  this rank's 1/N  |                       the nn.Parameter that the optimizer updates
    whole     full   |  a  |      b      | c |     d     |0|     all ranks' shards; ``layer.weight`` is a view of it

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
Finish = Callable[[Gradients], list[Tensor]]  # from the gradients of a unit's parameters to those of its shards


class FlatParameter:
    """Parameters of one dtype and ``requires_grad``, end to end, cut into N equal shards; zeros (under N) fill the end.

    `full` keeps its shape while its memory comes and goes. That is how backward finds the weights again: autograd saved
    views of `full` in forward, and they come back to life when the same storage is filled again.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], places: Sequence[Place], group: dist.ProcessGroup | None
    ) -> None:
        self.places = places
        self.trainable = parameters[0].requires_grad
        self.shapes = [parameter.shape for parameter in parameters]
        self._numels = [parameter.numel() for parameter in parameters]
        self._group = group
        self._mesh = GlooMesh(group)
        self._shard_numel = math.ceil(sum(self._numels) / self._mesh.world_size)
        self._work: dist.Work | None = None  # the all-gather under way

        self.full = self._lay_out([parameter.detach() for parameter in parameters])  # [N * shard_numel]
        self.shard = nn.Parameter(self._own(self.full).clone(), requires_grad=self.trainable)  # [shard_numel]
        self.release()

    def start_gather(self) -> None:
        """Give `full` memory again, and let all ranks' shards set out into it."""
        self.full.untyped_storage().resize_(self.full.nbytes)
        # Through .data: what autograd saved shall not count as modified, since it will find the values that it left.
        self._work = self._all_gather(self.shard, self.full.data)

    def wait(self) -> None:
        """Wait until `full` is filled."""
        if self._work is not None:
            self._work.wait()
        self._work = None

    def release(self) -> None:
        """Free the memory of `full`, whoever still has views of it."""
        self.wait()
        self.full.untyped_storage().resize_(0)

    def views(self) -> list[Tensor]:
        """The parameters, parts of `full`."""
        return self._cut(self.full)

    def reduce(self, gradients: Gradients) -> Tensor:
        """This rank's shard of the mean of all ranks' `gradients`, None counting as zeros. [shard_numel]"""
        flat = self._lay_out(gradients)
        if flat.is_cuda:  # where there is no gloo mesh; not tried here
            total = torch.empty_like(self.shard)
            dist.reduce_scatter_tensor(total, flat, group=self._group)
        else:  # around the ring, because gloo's own reduce-scatter sends twice as much
            total = ring_reduce_scatter(self._mesh, self._mesh.rank, self._mesh.world_size, flat, in_place=True)
        return total / self._mesh.world_size

    # -- anything that is laid out like the parameters: moments, gradients ---------------------------------------------

    def gathered(self, shard: Tensor) -> list[Tensor]:
        """The whole of what every rank has a `shard` of, in the shapes of the parameters."""
        whole = shard.new_empty(self.full.shape)
        work = self._all_gather(shard, whole)
        if work is not None:
            work.wait()
        return self._cut(whole)

    def shard_of(self, tensors: Sequence[Tensor]) -> Tensor:
        """This rank's shard of whole `tensors`: the way back from `gathered`. [shard_numel]"""
        return self._own(self._lay_out(tensors)).clone()

    def _all_gather(self, shard: Tensor, whole: Tensor) -> dist.Work | None:
        if not self._shard_numel:
            return None
        parts = list(whole.tensor_split(self._mesh.world_size))  # all of shard_numel
        work: dist.Work | None = dist.all_gather(parts, shard.detach(), group=self._group, async_op=True)
        return work

    def _lay_out(self, tensors: Gradients) -> Tensor:
        """New memory with `tensors` end to end; zeros for None and in the padding. [N * shard_numel]"""
        like = next((tensor for tensor in tensors if tensor is not None), None)
        whole = (self.shard if like is None else like).new_empty(self._mesh.world_size * self._shard_numel)
        for part, tensor in zip(self._cut(whole), tensors, strict=True):
            part.zero_() if tensor is None else part.copy_(tensor)
        whole[sum(self._numels) :].zero_()
        return whole

    def _cut(self, whole: Tensor) -> list[Tensor]:
        parts = torch.split(whole[: sum(self._numels)], self._numels)
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def _own(self, whole: Tensor) -> Tensor:
        start = self._mesh.rank * self._shard_numel
        return whole[start : start + self._shard_numel]


class Gather(torch.autograd.Function):
    """From the shards of a unit to its parameters; backward, from the parameters' gradients to those of the shards.

    Autograd calls backward once all gradients that this forward pass of the unit brings are complete.
    """

    @staticmethod
    def forward(ctx: Any, unit: Unit, finish: Finish, *shards: Tensor) -> tuple[Tensor, ...]:
        """The trainable parameters of `unit`, which is whole already."""
        ctx.finish = finish
        ctx.set_materialize_grads(False)
        return tuple(view for flat in unit.trainable for view in flat.views())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of the shards; autograd adds them to their ``.grad``."""
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
            self.flats.append(FlatParameter(parameters, [places[parameter] for parameter in parameters], group))
            for parameter in parameters:
                parameter.data = parameter.data.new_empty(0)  # somebody may still have it: it shall not keep its memory
                for owner, attribute in places[parameter].attributes:
                    del owner._parameters[attribute]  # what `attach` puts there is no nn.Parameter
        self.trainable = [flat for flat in self.flats if flat.trainable]
        self._detach()

    def start_gather(self) -> None:
        """Let the parameters set out to this rank, unless they are here."""
        if not self.is_gathered:
            for flat in self.flats:
                flat.start_gather()
        self.is_gathered = True

    def attach(self, finish: Finish) -> None:
        """Gather, and give the module its parameters; backward will hand their gradients to `finish`."""
        self.start_gather()
        for flat in self.flats:
            flat.wait()
        shards = [flat.shard for flat in self.trainable]
        trained = iter(Gather.apply(self, finish, *shards) if shards else ())  # type: ignore[no-untyped-call]
        for flat in self.flats:
            for view, place in zip(flat.views(), flat.places, strict=True):
                parameter = next(trained) if flat.trainable else view
                for owner, attribute in place.attributes:
                    setattr(owner, attribute, parameter)

    def release(self) -> None:
        """Free the parameters, if they are here."""
        if self.is_gathered:
            for flat in self.flats:
                flat.release()
            self._detach()
        self.is_gathered = False

    def reduce(self, gradients: Gradients) -> list[Tensor]:
        """The gradients of the trainable shards, from those of the parameters in the order of `Gather`'s outputs."""
        parts = iter(gradients)
        return [flat.reduce(list(itertools.islice(parts, len(flat.places)))) for flat in self.trainable]

    def _detach(self) -> None:
        """Leave something empty where the parameters were: using it fails, and printing the module does not."""
        for flat in self.flats:
            nothing = flat.shard.detach().new_empty(0)
            for owner, attribute in itertools.chain.from_iterable(place.attributes for place in flat.places):
                setattr(owner, attribute, nothing)


def _runs(parameters: Iterable[nn.Parameter]) -> list[list[nn.Parameter]]:
    """The parameters by dtype, device and whether they are trained: what can share a `FlatParameter`."""
    runs: dict[tuple[torch.dtype, torch.device, bool], list[nn.Parameter]] = {}
    for parameter in parameters:
        runs.setdefault((parameter.dtype, parameter.device, parameter.requires_grad), []).append(parameter)
    return list(runs.values())
