"""Blocks whose layers come in column-row pairs: MLP, attention, and whatever contains them.

One pair has one all-reduce in forward, out of its row-parallel layer, and one in backward, out of its column-parallel
layers: f is applied once, where the input enters, though three layers of an attention take it. With sequence
parallelism each becomes a reduce-scatter or an all-gather: as many bytes in both, and norms and dropout in between work
on 1/N of the sequence. Sources: Shoeybi et al. 2019 (1909.08053), section 3; Korthikanti et al. 2022 (2205.05198), 4.2.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.tensor_parallel.layers import RowParallelLinear, shard
from impls.reference.tensor_parallel.randomness import own_randomness
from impls.reference.tensor_parallel.regions import Group, copy_to_region, gather_sequence, share_gradient


class _Region(nn.Module):
    """How an input comes into a parallel region: whole already, or gathered along the sequence."""

    def __init__(self, group: Group, sequence_parallel: bool, sequence_dim: int) -> None:
        super().__init__()
        self.group, self.sequence_parallel, self.sequence_dim = group, sequence_parallel, sequence_dim

    def enter(self, x: Tensor) -> Tensor:
        if self.sequence_parallel:
            return gather_sequence(x, self.group, self.sequence_dim)
        return copy_to_region(x, self.group)

    def row_parallel(self, module: nn.Linear) -> RowParallelLinear:
        return RowParallelLinear(
            module, self.group, sequence_parallel=self.sequence_parallel, sequence_dim=self.sequence_dim
        )


class ColumnPart(nn.Module):
    """A column-parallel layer inside a region: its input is whole already, and nothing is sent."""

    def __init__(self, module: nn.Linear, group: Group) -> None:
        super().__init__()
        self.weight = shard(module.weight, group, 0)
        self.bias = None if module.bias is None else shard(module.bias, group, 0)

    def forward(self, x: Tensor) -> Tensor:
        """[.., in] to [.., out/N]."""
        return nn.functional.linear(x, self.weight, self.bias)


class ParallelMLP(_Region):
    """``down(activation(up(x)))``, with 1/N of the hidden width on each rank. Any elementwise activation will do."""

    def __init__(
        self,
        module: Any,
        group: dist.ProcessGroup | None = None,
        sequence_parallel: bool = False,
        sequence_dim: int = 1,
    ) -> None:
        super().__init__(group, sequence_parallel, sequence_dim)
        self.up = ColumnPart(module.up, group)
        self.activation = module.activation
        self.down = self.row_parallel(module.down)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, sequence, width] to the same; with sequence parallelism the sequence is this rank's part."""
        out: Tensor = self.down(self.activation(self.up(self.enter(x))))
        return out


class ParallelAttention(_Region):
    """Self-attention with 1/N of the heads on each rank. Raises ValueError where N does not divide their number.

    Heads lie side by side in the outputs of q, k and v, so that a part of the columns is whole heads if N divides them.
    """

    def __init__(
        self,
        module: Any,
        group: dist.ProcessGroup | None = None,
        sequence_parallel: bool = False,
        sequence_dim: int = 1,
    ) -> None:
        super().__init__(group, sequence_parallel, sequence_dim)
        if module.num_heads % dist.get_world_size(group):
            raise ValueError(f"{dist.get_world_size(group)} ranks cannot share {module.num_heads} heads equally")
        self.head_dim = int(module.head_dim)
        self.q, self.k, self.v = (ColumnPart(layer, group) for layer in (module.q, module.k, module.v))
        self.dropout: nn.Dropout = module.dropout
        self.out = self.row_parallel(module.out)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, sequence, width] to the same; with sequence parallelism the sequence is this rank's part."""
        whole = self.enter(x)
        q, k, v = (self._heads(layer(whole)) for layer in (self.q, self.k, self.v))
        weights = torch.softmax(q @ k.transpose(-2, -1) * self.head_dim**-0.5, dim=-1)
        mixed = self._dropped(weights) @ v  # [batch, heads/N, sequence, head_dim]
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], -1, self.head_dim).transpose(1, 2)

    def _dropped(self, weights: Tensor) -> Tensor:
        if not (self.training and self.dropout.p):
            return weights
        with own_randomness(self.group):
            dropped: Tensor = self.dropout(weights)
        return dropped


def tensor_parallel(
    module: nn.Module,
    group: dist.ProcessGroup | None = None,
    sequence_parallel: bool = False,
    sequence_dim: int = 1,
) -> nn.Module:
    """`module` with every MLP and attention in it made parallel, in place but for `module` itself being one.

    All else stays whole on every rank. With `sequence_parallel` it works on this rank's part of the sequence, so the
    gradients of what has stayed whole are summed. Raises ValueError where N does not divide a width or the heads.
    """
    for kind, layers in ((ParallelMLP, ("up", "down")), (ParallelAttention, ("q", "k", "v", "out"))):
        if all(hasattr(module, name) for name in layers):
            made: nn.Module = kind(module, group, sequence_parallel, sequence_dim)
            return made
    for name, child in list(module.named_children()):
        setattr(module, name, tensor_parallel(child, group, sequence_parallel, sequence_dim))
    if sequence_parallel:
        for parameter in module.parameters(recurse=False):
            share_gradient(parameter, group)
    return module
