"""Tensor parallelism: layers of which each rank has a part. What is asked for by name is handed over."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

Group = torch.distributed.ProcessGroup | None


class ColumnParallelLinear(nn.Module):
    """The r-th of N parts of the outputs of `module`: [.., in] to [.., out/N], or [.., out] with `gather_output`.

    Or build it from sizes: `(in_features, out_features, bias, group, gather_output)`.
    """

    def __init__(self, module: nn.Linear, rank: int, world_size: int, group: Group = None, gather_output: bool = False):
        raise NotImplementedError


class RowParallelLinear(nn.Module):
    """The r-th of N parts of the inputs of `module`: [.., in/N] to the sum over ranks, [.., out]; one bias, added once.

    Or build it from sizes: `(in_features, out_features, bias, group, input_is_parallel)`.
    """

    def __init__(self, module: nn.Linear, rank: int, world_size: int, group: Group = None):
        raise NotImplementedError


class VocabParallelEmbedding(nn.Module):
    """The r-th of N parts of the rows of `module`: whole ids to whole vectors.

    Or build it from sizes: `(num_embeddings, embedding_dim)`.
    """

    def __init__(self, module: nn.Embedding, rank: int, world_size: int, group: Group = None):
        raise NotImplementedError


class ParallelMLP(nn.Module):
    """``down(activation(up(x)))``: `module` has these three."""

    def __init__(self, module: nn.Module, rank: int, world_size: int, group: Group = None):
        raise NotImplementedError


class ParallelAttention(nn.Module):
    """A part of the heads on each rank.

    `module` has ``q``, ``k``, ``v``, ``out``, ``num_heads``, ``head_dim`` and ``dropout``.
    """

    def __init__(self, module: nn.Module, rank: int, world_size: int, group: Group = None):
        raise NotImplementedError


def tensor_parallel(
    module: nn.Module, plan: Mapping[str, str], rank: int, world_size: int, group: Group = None
) -> nn.Module | None:
    """Make an MLP, an attention or a block of both parallel; `plan` says which layers, by "column" and "row".

    For sequence parallelism ask for `sequence_parallel`, here or in the classes above.
    """
    raise NotImplementedError


def copy_to_region(tensor: Tensor, group: Group = None) -> Tensor:
    """Megatron's f: the identity; its gradient is summed over ranks."""
    raise NotImplementedError


def reduce_from_region(tensor: Tensor, group: Group = None) -> Tensor:
    """Megatron's g: the sum over ranks; its gradient is passed on."""
    raise NotImplementedError


def scatter_to_region(tensor: Tensor, group: Group = None) -> Tensor:
    """This rank's part along the last dimension; its gradient is gathered."""
    raise NotImplementedError


def gather_from_region(tensor: Tensor, group: Group = None) -> Tensor:
    """The parts of all ranks along the last dimension; its gradient is this rank's part."""
    raise NotImplementedError
