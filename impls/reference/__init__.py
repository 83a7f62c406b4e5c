"""The reference implementation of every block, written to be read.

The forms over a group (`over_group`) are not repeated here: mutants take over what they do not change from this module,
and have enough to break in the rings and trees themselves.
"""

from __future__ import annotations

from impls.mesh import RECV_TIMEOUT_S, GlooMesh, queue_mesh
from impls.reference.advisor import advise
from impls.reference.calls import (
    average_gradients,
    broadcast_parameters,
    gather_parameters,
    init_group,
    shard_gradients,
    sum_gradients,
)
from impls.reference.collectives import (
    ring_allgather,
    ring_allreduce,
    ring_reduce_scatter,
    tree_allreduce,
    tree_broadcast,
)
from impls.reference.cures import cure_fsdp_70b_over_80gb, cure_missing_broadcast, cure_pipeline_send_send
from impls.reference.data_parallel import DataParallel
from impls.reference.fsdp import fully_shard
from impls.reference.loop import (
    DEFAULT_BACKEND,
    DEFAULT_BATCH_SIZE,
    DEFAULT_NUM_STEPS,
    DEFAULT_WORLD_SIZE,
    batch_slice,
    train,
)
from impls.reference.mixed_precision import MixedPrecision
from impls.reference.network.formulas import crossover_bytes, ring_time, tree_time
from impls.reference.network.steps import tensor_parallel_time
from impls.reference.pipeline.bubbles import (
    NUM_MICROBATCHES,
    NUM_STAGES,
    bubble_1f1b,
    bubble_dualpipe,
    bubble_dualpipev,
    bubble_fraction,
    bubble_zero_bubble,
)
from impls.reference.pipeline.dualpipe import dualpipe, dualpipev
from impls.reference.pipeline.execute import train_step
from impls.reference.pipeline.partition import partition
from impls.reference.pipeline.schedules import gpipe, interleaved_1f1b, one_f_one_b
from impls.reference.pipeline.zero_bubble import zb_h1, zb_h2, zbv
from impls.reference.tensor_parallel.blocks import ParallelAttention, ParallelMLP, tensor_parallel
from impls.reference.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear, VocabParallelEmbedding
from impls.reference.tensor_parallel.regions import (
    copy_to_region,
    gather_from_region,
    reduce_from_region,
    scatter_to_region,
)
from impls.reference.zero1 import ShardedOptimizer
from impls.reference.zero2 import Zero2Optimizer

__all__ = [
    "DEFAULT_BACKEND",
    "DEFAULT_BATCH_SIZE",
    "DEFAULT_NUM_STEPS",
    "DEFAULT_WORLD_SIZE",
    "NUM_MICROBATCHES",
    "NUM_STAGES",
    "RECV_TIMEOUT_S",
    "ColumnParallelLinear",
    "DataParallel",
    "GlooMesh",
    "MixedPrecision",
    "ParallelAttention",
    "ParallelMLP",
    "RowParallelLinear",
    "ShardedOptimizer",
    "VocabParallelEmbedding",
    "Zero2Optimizer",
    "advise",
    "average_gradients",
    "batch_slice",
    "broadcast_parameters",
    "bubble_1f1b",
    "bubble_dualpipe",
    "bubble_dualpipev",
    "bubble_fraction",
    "bubble_zero_bubble",
    "copy_to_region",
    "crossover_bytes",
    "cure_fsdp_70b_over_80gb",
    "cure_missing_broadcast",
    "cure_pipeline_send_send",
    "dualpipe",
    "dualpipev",
    "fully_shard",
    "gather_from_region",
    "gather_parameters",
    "gpipe",
    "init_group",
    "interleaved_1f1b",
    "one_f_one_b",
    "partition",
    "queue_mesh",
    "reduce_from_region",
    "ring_allgather",
    "ring_allreduce",
    "ring_reduce_scatter",
    "ring_time",
    "scatter_to_region",
    "shard_gradients",
    "sum_gradients",
    "tensor_parallel",
    "tensor_parallel_time",
    "train",
    "train_step",
    "tree_allreduce",
    "tree_broadcast",
    "tree_time",
    "zb_h1",
    "zb_h2",
    "zbv",
]
