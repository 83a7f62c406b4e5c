"""The reference implementation of every block, written to be read.

The forms over a group (`over_group`) are not repeated here: mutants take over what they do not change from this module,
and have enough to break in the rings and trees themselves.
"""

from __future__ import annotations

from impls.mesh import RECV_TIMEOUT_S, GlooMesh, queue_mesh
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
from impls.reference.loop import batch_slice, train
from impls.reference.mixed_precision import MixedPrecision
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
from impls.reference.zero1 import ShardedOptimizer
from impls.reference.zero2 import Zero2Optimizer

__all__ = [
    "NUM_MICROBATCHES",
    "NUM_STAGES",
    "RECV_TIMEOUT_S",
    "DataParallel",
    "GlooMesh",
    "MixedPrecision",
    "ShardedOptimizer",
    "Zero2Optimizer",
    "average_gradients",
    "batch_slice",
    "broadcast_parameters",
    "bubble_1f1b",
    "bubble_dualpipe",
    "bubble_dualpipev",
    "bubble_fraction",
    "bubble_zero_bubble",
    "cure_fsdp_70b_over_80gb",
    "cure_missing_broadcast",
    "cure_pipeline_send_send",
    "dualpipe",
    "dualpipev",
    "fully_shard",
    "gather_parameters",
    "gpipe",
    "init_group",
    "interleaved_1f1b",
    "one_f_one_b",
    "partition",
    "queue_mesh",
    "ring_allgather",
    "ring_allreduce",
    "ring_reduce_scatter",
    "shard_gradients",
    "sum_gradients",
    "train",
    "train_step",
    "tree_allreduce",
    "tree_broadcast",
    "zb_h1",
    "zb_h2",
    "zbv",
]
