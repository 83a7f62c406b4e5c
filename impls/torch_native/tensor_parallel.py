"""``torch.distributed.tensor.parallel.parallelize_module``, with plans as its documentation has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

Group = dist.ProcessGroup | None


def ColumnParallelLinear(  # noqa: N802
    module: nn.Linear,
    group: Group = None,
    gather_output: bool = False,
    sequence_parallel: bool = False,
    sequence_dim: int = 1,
) -> nn.Module:
    """``ColwiseParallel``."""
    style = ColwiseParallel(
        input_layouts=Shard(sequence_dim) if sequence_parallel else Replicate(),
        output_layouts=Replicate() if gather_output else Shard(-1),
    )
    return parallelize_module(module, _mesh(group), style)


def RowParallelLinear(  # noqa: N802
    module: nn.Linear,
    group: Group = None,
    input_is_parallel: bool = True,
    sequence_parallel: bool = False,
    sequence_dim: int = 1,
) -> nn.Module:
    """``RowwiseParallel``."""
    style = RowwiseParallel(
        input_layouts=Shard(-1) if input_is_parallel else Replicate(),
        output_layouts=Shard(sequence_dim) if sequence_parallel else Replicate(),
    )
    return parallelize_module(module, _mesh(group), style)


def VocabParallelEmbedding(module: nn.Embedding, group: Group = None) -> nn.Module:  # noqa: N802
    """``RowwiseParallel``, which for an embedding cuts the rows."""
    return parallelize_module(module, _mesh(group), RowwiseParallel(input_layouts=Replicate()))


def tensor_parallel(
    module: nn.Module,
    plan: Mapping[str, str],
    group: Group = None,
    sequence_parallel: bool = False,
    sequence_dim: int = 1,
) -> nn.Module:
    """A plan for the whole module: what enters a region, its linear layers, and with the sequence cut the norms.

    The input becomes a DTensor once for a region: otherwise q, k and v would each all-reduce a gradient of it.
    """
    mesh = _mesh(group)
    outside: Any = Shard(sequence_dim) if sequence_parallel else Replicate()
    entrance = PrepareModuleInput(input_layouts=(outside,), desired_input_layouts=(Replicate(),))
    styles: dict[str, ParallelStyle] = {
        name: ColwiseParallel() if cut == "column" else RowwiseParallel(output_layouts=outside)
        for name, cut in plan.items()
    }
    regions = {name.rpartition(".")[0] for name in plan}
    styles |= {name: entrance for name in regions if name}
    if sequence_parallel:
        norms = [name for name, child in module.named_modules() if isinstance(child, nn.LayerNorm)]
        styles |= {name: SequenceParallel(sequence_dim=sequence_dim) for name in norms}
    made = parallelize_module(module, mesh, styles)
    return parallelize_module(made, mesh, entrance) if "" in regions else made


def _mesh(group: Group) -> DeviceMesh:
    if group is None:
        return init_device_mesh("cpu", (dist.get_world_size(),))
    return DeviceMesh.from_group(group, "cpu")
