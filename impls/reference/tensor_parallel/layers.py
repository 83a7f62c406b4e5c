"""Linear layers and embeddings of which each rank has a part. Source: Shoeybi et al. 2019 (1909.08053), section 3."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from impls.reference.tensor_parallel.regions import (
    Group,
    copy_to_region,
    gather_from_region,
    gather_sequence,
    part_of,
    reduce_from_region,
    reduce_scatter_sequence,
    scatter_to_region,
    share_gradient,
)


def shard(parameter: Tensor, group: Group, dim: int) -> nn.Parameter:
    """This rank's part of a parameter along `dim`; frozen where that is. Raises ValueError where N cannot cut it."""
    return nn.Parameter(part_of(parameter.detach(), group, dim), requires_grad=parameter.requires_grad)


class ColumnParallelLinear(nn.Module):
    """The r-th part of the outputs of `module`, (out, in) in torch's order: weight (out/N, in), bias (out/N).

    Every rank needs the whole input, [.., in], or with `sequence_parallel` has its part of the sequence of it.
    Gives [.., out/N], or [.., out] with `gather_output`. Raises ValueError where N does not divide the outputs.
    """

    def __init__(
        self,
        module: nn.Linear,
        group: dist.ProcessGroup | None = None,
        gather_output: bool = False,
        sequence_parallel: bool = False,
        sequence_dim: int = 1,
    ) -> None:
        super().__init__()
        self.weight = shard(module.weight, group, 0)
        self.bias = None if module.bias is None else shard(module.bias, group, 0)
        self.group, self.gather_output = group, gather_output
        self.sequence_parallel, self.sequence_dim = sequence_parallel, sequence_dim

    def forward(self, x: Tensor) -> Tensor:
        """[.., in] to [.., out/N]."""
        whole = self._enter(x)
        part = functional.linear(whole, self.weight, self.bias)
        return gather_from_region(part, self.group) if self.gather_output else part

    def _enter(self, x: Tensor) -> Tensor:
        if self.sequence_parallel:
            return gather_sequence(x, self.group, self.sequence_dim)
        return copy_to_region(x, self.group)


class RowParallelLinear(nn.Module):
    """The r-th part of the inputs of `module`: weight (out, in/N), and the whole bias, added once: after the sum.

    Takes [.., in/N], what a column-parallel layer before it gives, or the whole [.., in] without `input_is_parallel`.
    Gives the whole [.., out], or with `sequence_parallel` this rank's part of the sequence of it. Raises ValueError
    where N does not divide the inputs.
    """

    def __init__(
        self,
        module: nn.Linear,
        group: dist.ProcessGroup | None = None,
        input_is_parallel: bool = True,
        sequence_parallel: bool = False,
        sequence_dim: int = 1,
    ) -> None:
        super().__init__()
        self.weight = shard(module.weight, group, 1)
        self.bias = None if module.bias is None else whole(module.bias)
        self.group, self.input_is_parallel = group, input_is_parallel
        self.sequence_parallel, self.sequence_dim = sequence_parallel, sequence_dim
        if sequence_parallel and self.bias is not None:
            share_gradient(self.bias, group)

    def forward(self, x: Tensor) -> Tensor:
        """[.., in/N] to [.., out]."""
        part = x if self.input_is_parallel else scatter_to_region(x, self.group)
        out = self._leave(functional.linear(part, self.weight))
        return out if self.bias is None else out + self.bias

    def _leave(self, out: Tensor) -> Tensor:
        if self.sequence_parallel:
            return reduce_scatter_sequence(out, self.group, self.sequence_dim)
        return reduce_from_region(out, self.group)


class VocabParallelEmbedding(nn.Module):
    """The r-th part of the rows of `module`: weight (vocabulary/N, width). Whole ids [..] to whole vectors [.., width].

    Each id is in the part of one rank; the others add zeros. Raises ValueError where N does not divide the vocabulary.
    """

    def __init__(self, module: nn.Embedding, group: dist.ProcessGroup | None = None) -> None:
        super().__init__()
        self.weight = shard(module.weight, group, 0)
        self.group = group
        self.first = len(self.weight) * dist.get_rank(group)

    def forward(self, ids: Tensor) -> Tensor:
        """[..] to [.., width]."""
        local = ids - self.first
        foreign = (local < 0) | (local >= len(self.weight))
        vectors = functional.embedding(local.masked_fill(foreign, 0), self.weight)
        return reduce_from_region(vectors.masked_fill(foreign.unsqueeze(-1), 0.0), self.group)


def whole(parameter: Tensor) -> nn.Parameter:
    """A copy that this rank keeps whole."""
    return nn.Parameter(torch.clone(parameter.detach()), requires_grad=parameter.requires_grad)
