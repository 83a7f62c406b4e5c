"""Parameters of which several ranks hold a copy: their gradients are summed once, at the end of a step.

That is so for a weight that the first and the last stage share (an embedding that is the output layer too), and for all
of DualPipe, where every stage is on two ranks. Copies stay equal because each adds up all gradients in rank order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from impls.mesh import GlooMesh
from impls.reference.pipeline.post import recv, send

Copies = Mapping[nn.Parameter, Sequence[int]]  # a parameter of this rank -> all ranks with a copy, this one included


class SharedGradients:
    """Sets the gradients of `copies` aside when it is made, and gives them back with a step's sum added.

    Two ranks name the copies that they share in the same order. ValueError where this rank is not among the holders.
    """

    def __init__(self, copies: Copies, mesh: GlooMesh | None) -> None:
        self._mesh = mesh if copies else None
        self._rank = 0 if mesh is None else mesh.rank
        for parameter, ranks in copies.items():
            if self._rank not in ranks:
                raise ValueError(
                    f"rank {self._rank} is not among the ranks {list(ranks)} that, it says, hold copies of its "
                    f"parameter of {tuple(parameter.shape)}; name all of them, by their place in the group"
                )
        self._holders = {parameter: sorted(set(ranks)) for parameter, ranks in copies.items()}
        self._before = {parameter: parameter.grad for parameter in copies}
        for parameter in copies:
            parameter.grad = None

    @torch.no_grad()
    def sum(self) -> None:
        """Called on all holders after their last backward. A copy without a gradient adds nothing."""
        theirs = self._exchange()
        for parameter, holders in self._holders.items():
            gradients = [theirs[rank, parameter] for rank in holders]
            given = [gradient for gradient in gradients if gradient is not None]
            before = self._before[parameter]
            if given:
                total = functools.reduce(torch.add, given)
                parameter.grad = total if before is None else before.add_(total)
            else:
                parameter.grad = before

    def _exchange(self) -> dict[tuple[int, nn.Parameter], Tensor | None]:
        """The gradients of all holders, by rank and own parameter."""
        found = {(self._rank, parameter): parameter.grad for parameter in self._holders}
        if self._mesh is None:
            return found
        shared = {rank: self._shared_with(rank) for rank in range(self._mesh.world_size) if rank != self._rank}
        for rank, parameters in shared.items():
            send(self._mesh, rank, [parameter.grad for parameter in parameters])
        for rank, parameters in shared.items():
            if parameters:
                arrived = recv(self._mesh, rank)
                found |= {(rank, parameter): gradient for parameter, gradient in zip(parameters, arrived, strict=True)}
        self._mesh.flush()
        return found

    def _shared_with(self, rank: int) -> list[nn.Parameter]:
        return [parameter for parameter, holders in self._holders.items() if rank in holders]
