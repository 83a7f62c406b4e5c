"""A right pipeline that is easy to spoil: all ranks go through all hand-overs together, one microbatch at a time.

Forward of every microbatch, then backward of every one, as in GPipe. What passes between two stages does so in `Hands`,
whose methods all ranks call at once. No mutant itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

LossFunction = Callable[[Any, Any], Tensor]


class Hands:
    """How the activation of a microbatch goes from one rank to the next, and its gradient back."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def forward(self, tensor: Tensor | None, src: int, dst: int, microbatch: int) -> Tensor | None:
        """`tensor` is there on `src`, and is returned on `dst`."""
        return self.pass_on(tensor, src, dst)

    def backward(self, tensor: Tensor | None, src: int, dst: int, microbatch: int) -> Tensor | None:
        """As `forward`."""
        return self.pass_on(tensor, src, dst)

    def pass_on(self, tensor: Tensor | None, src: int, dst: int) -> Tensor | None:
        """The shape, and the tensor."""
        if self.rank == src:
            assert tensor is not None
            dist.send(shape_of(tensor), dst)
            dist.send(tensor.contiguous(), dst)
        if self.rank != dst:
            return None
        shape = shape_of(torch.empty(0))
        dist.recv(shape, src)
        arrived = torch.empty(tuple(shape.tolist()))
        dist.recv(arrived, src)
        return arrived


def shape_of(tensor: Tensor) -> Tensor:
    """The two sizes of a matrix as a message; of anything else room for that message."""
    return torch.tensor(tensor.shape if tensor.dim() == 2 else (0, 0))


def train_step(
    stage: nn.Module,
    microbatches: Sequence[Tensor],
    targets: Sequence[Tensor],
    loss_fn: LossFunction,
    rank: int,
    world_size: int,
    hands: Hands | None = None,
    version_of: Callable[[nn.Module], nn.Module] = lambda stage: stage,
) -> list[Tensor]:
    """Forward and backward of all microbatches on the `version_of` the stage that each of them gets."""
    hands = hands or Hands(rank)
    num_rows = sum(len(target) for target in targets)
    versions = [version_of(stage) for _ in microbatches]
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    for number, rows in enumerate(microbatches):
        if rank == 0:
            _run(versions[number], rows, inputs, outputs)
        for src in range(world_size - 1):
            mine = outputs[-1].detach() if rank == src else None
            came = hands.forward(mine, src, src + 1, number)
            if rank == src + 1:
                assert came is not None
                _run(versions[number], came.detach().requires_grad_(), inputs, outputs)
    losses = []
    for number, target in enumerate(targets):
        if rank == world_size - 1:
            loss = loss_fn(outputs[number], target)
            losses.append(loss.detach())
            (loss * (len(target) / num_rows)).backward()
        for src in reversed(range(1, world_size)):
            came = hands.backward(inputs[number].grad if rank == src else None, src, src - 1, number)
            if rank == src - 1 and came is not None:
                outputs[number].backward(came)
        for own, used in zip(stage.parameters(), versions[number].parameters(), strict=True):
            if own is not used and used.grad is not None:
                own.grad = used.grad if own.grad is None else own.grad + used.grad
    return losses


def _run(stage: nn.Module, rows: Tensor, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    inputs.append(rows)
    outputs.append(stage(rows))
