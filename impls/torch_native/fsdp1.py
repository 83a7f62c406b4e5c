"""FSDP1, `FullyShardedDataParallel`, with a named strategy, on a CPU: what PyTorch's own names for the stages do.

No block of the contract: FSDP1 wraps a module and shards its parameters at rest under every strategy but NO_SHARD, so
SHARD_GRAD_OP is no `Zero2Optimizer`, whose module keeps its parameters whole.
"""

from __future__ import annotations

import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy
from torch.distributed.fsdp.wrap import CustomPolicy

from impls.torch_native.fsdp import units

Pair = tuple[dist.ProcessGroup, dist.ProcessGroup]


def fsdp1(module: nn.Module, strategy: str, group: dist.ProcessGroup | Pair | None = None) -> FullyShardedDataParallel:
    """`module` under ``ShardingStrategy[strategy]``: its layers are units, as for `fully_shard`, and so is the root.

    A hybrid strategy takes a pair of groups: to shard over, and to replicate over.
    """
    layers = frozenset(units(module))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)  # NO_SHARD is deprecated in favour of DDP
        return FullyShardedDataParallel(
            module,
            process_group=group,
            sharding_strategy=ShardingStrategy[strategy],
            auto_wrap_policy=CustomPolicy(lambda inner: inner in layers),
            device_id=torch.device("cpu"),
            use_orig_params=True,
        )
