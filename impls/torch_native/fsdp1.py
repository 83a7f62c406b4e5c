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

from impls.torch_native.fsdp import units


def fsdp1(module: nn.Module, strategy: str, group: dist.ProcessGroup | None = None) -> FullyShardedDataParallel:
    """`module` under ``ShardingStrategy[strategy]``: its layers are wrapped in place, then the root around them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)  # NO_SHARD is deprecated in favour of DDP
        chosen = set(units(module))
        for parent in list(module.modules()):
            for name, child in list(parent.named_children()):
                if child in chosen:
                    setattr(parent, name, _wrapped(child, strategy, group))
        return _wrapped(module, strategy, group)


def _wrapped(module: nn.Module, strategy: str, group: dist.ProcessGroup | None) -> FullyShardedDataParallel:
    return FullyShardedDataParallel(
        module,
        process_group=group,
        sharding_strategy=ShardingStrategy[strategy],
        device_id=torch.device("cpu"),
        use_orig_params=True,
    )
