"""PyTorch's own blocks as a peer (``--impl=torch``): thin adapters, and what they are known not to hold."""

from __future__ import annotations

from impls.torch_native.collectives import (
    all_gather,
    all_reduce,
    broadcast,
    gather_parameters,
    reduce_scatter,
    shard_gradients,
)
from impls.torch_native.data_parallel import (
    DataParallel,
    average_gradients,
    broadcast_parameters,
    init_group,
    sum_gradients,
    train,
)
from impls.torch_native.fsdp import fully_shard
from impls.torch_native.manifest import MANIFEST
from impls.torch_native.pipelining import dualpipev, gpipe, interleaved_1f1b, one_f_one_b, train_step, zbv
from impls.torch_native.tensor_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    tensor_parallel,
)
from impls.torch_native.zero import ShardedOptimizer

__all__ = [
    "MANIFEST",
    "ColumnParallelLinear",
    "DataParallel",
    "RowParallelLinear",
    "ShardedOptimizer",
    "VocabParallelEmbedding",
    "all_gather",
    "all_reduce",
    "average_gradients",
    "broadcast",
    "broadcast_parameters",
    "dualpipev",
    "fully_shard",
    "gather_parameters",
    "gpipe",
    "init_group",
    "interleaved_1f1b",
    "one_f_one_b",
    "reduce_scatter",
    "shard_gradients",
    "sum_gradients",
    "tensor_parallel",
    "train",
    "train_step",
    "zbv",
]
