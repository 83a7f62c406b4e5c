"""What else the functions and classes of the contract may be called, and by what others are known."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Functions and classes that run one schedule of a pipeline each.
SCHEDULE_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "gpipe": (
        *("train_gpipe", "train_step_gpipe", "gpipe_train_step", "gpipe_step", "run_gpipe", "GPipe", "GPipePipeline"),
        *("GPipeEngine", "PipelineGPipe"),
    ),
    "1f1b": (
        *("train_1f1b", "train_one_f_one_b", "train_step_1f1b", "one_f_one_b_train_step", "one_f_one_b_step"),
        *("run_1f1b", "run_one_f_one_b", "OneFOneB", "OneFOneBPipeline", "Pipeline1F1B", "PipeDream"),
    ),
    "interleaved_1f1b": ("train_interleaved_1f1b", "train_interleaved", "train_step_interleaved", "run_interleaved"),
    "zb_h1": ("train_zb_h1", "train_zbh1", "train_zero_bubble", "train_step_zb_h1", "run_zb_h1", "ZeroBubble"),
    "zb_h2": ("train_zb_h2", "train_zbh2", "train_step_zb_h2", "run_zb_h2"),
    "zbv": ("train_zbv", "train_step_zbv", "run_zbv"),
    "dualpipe": ("train_dualpipe", "train_step_dualpipe", "run_dualpipe", "DualPipe"),
    "dualpipev": ("train_dualpipev", "train_step_dualpipev", "run_dualpipev", "DualPipeV"),
}

# Other spellings of a name, tried after the name itself.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "queue_mesh": ("make_queue_mesh", "make_mesh", "build_mesh"),
    "ring_allreduce": ("ring_all_reduce", "allreduce_ring", "all_reduce_ring", "RingAllreduce"),
    "tree_allreduce": ("tree_all_reduce", "allreduce_tree", "all_reduce_tree", "binomial_allreduce", "TreeAllreduce"),
    "ring_allgather": ("ring_all_gather", "allgather_ring", "all_gather_ring"),
    "ring_reduce_scatter": ("ring_reducescatter", "reduce_scatter_ring"),
    "tree_broadcast": ("broadcast_tree", "binomial_broadcast"),
    "all_reduce": ("allreduce", "my_all_reduce", "my_allreduce", "allreduce_inplace", "all_reduce_inplace"),
    "all_gather": ("allgather", "my_all_gather", "my_allgather"),
    "reduce_scatter": ("reducescatter", "my_reduce_scatter"),
    "broadcast": ("bcast", "my_broadcast"),
    "shard_gradients": ("shard_grads", "reduce_scatter_gradients", "reduce_scatter_grads"),
    "gather_parameters": ("gather_params", "all_gather_parameters", "all_gather_params"),
    "DataParallel": (
        *("DistributedDataParallel", "DDP", "MyDDP", "DDPBucketed", "DDPOverlapBucketed", "BucketedDDP", "NaiveDDP"),
        *("DDPIndividualParameters", "DDPOverlapIndividualParameters", "DataParallelBucket", "DataParallelNaive"),
        *("get_ddp", "get_ddp_bucketed", "get_ddp_individual_parameters"),
    ),
    "init_group": ("init_process_group", "init_distributed", "setup", "setup_process_group"),
    "broadcast_parameters": ("broadcast_params", "sync_parameters", "sync_params", "broadcast_model"),
    "sum_gradients": ("sum_grads", "all_reduce_gradients", "allreduce_gradients", "all_reduce_grads"),
    "average_gradients": ("average_grads", "avg_gradients", "mean_gradients", "sync_gradients", "sync_grads"),
    "batch_slice": ("local_slice", "slice_for", "shard_batch", "get_batch_slice"),
    "ShardedOptimizer": (
        *("ZeroOptimizer", "ZeROOptimizer", "Zero1Optimizer", "ZeRO1", "ZeRO1Optimizer", "ZeroRedundancyOptimizer"),
        *("ShardedAdam", "ShardedAdamW", "ShardedStateOptimizer", "OptimizerStateSharding", "get_sharded_optimizer"),
    ),
    "Zero2Optimizer": ("ZeRO2Optimizer", "ZeRO2", "Zero2", "ShardedGradOptimizer", "get_zero2_optimizer"),
    "fully_shard": (
        *("FSDP", "FullyShardedDataParallel", "FullySharded", "FullyShard", "MyFSDP", "MiniFSDP", "NaiveFSDP"),
        *("ZeRO3", "Zero3", "ZeroStage3", "get_fsdp", "shard_module"),
    ),
    "MixedPrecision": (
        *("MixedPrecisionOptimizer", "Float16Optimizer", "FP16_Optimizer", "FP16Optimizer", "BF16Optimizer"),
        *("MasterWeightsOptimizer", "AmpOptimizer"),
    ),
    "gpipe": ("gpipe_schedule", "schedule_gpipe", "make_gpipe"),
    "one_f_one_b": (
        *("schedule_1f1b", "one_f_one_b_schedule", "schedule_one_f_one_b", "make_1f1b", "onefoneb"),
        *("non_interleaved_1f1b",),
    ),
    "interleaved_1f1b": (
        *("interleaved", "interleaved_schedule", "schedule_interleaved", "schedule_interleaved_1f1b"),
        *("interleaved_one_f_one_b",),
    ),
    "zb_h1": ("zbh1", "zb_h1_schedule", "schedule_zb_h1", "schedule_zbh1", "zero_bubble", "zero_bubble_h1"),
    "zb_h2": ("zbh2", "zb_h2_schedule", "schedule_zb_h2", "schedule_zbh2", "zero_bubble_h2"),
    "zbv": ("zb_v", "zbv_schedule", "schedule_zbv", "zero_bubble_v"),
    "dualpipe": ("dual_pipe", "dualpipe_schedule", "schedule_dualpipe"),
    "dualpipev": ("dual_pipe_v", "dualpipe_v", "dualpipev_schedule", "schedule_dualpipev"),
    "bubble_fraction": (
        *("bubble_gpipe", "gpipe_bubble", "gpipe_bubble_fraction", "bubble_fraction_gpipe", "pipeline_bubble"),
        *("bubble_ratio",),
    ),
    "bubble_1f1b": ("bubble_one_f_one_b", "bubble_fraction_1f1b", "one_f_one_b_bubble"),
    "bubble_zero_bubble": ("bubble_zb", "bubble_zb_h1", "bubble_zbh1", "bubble_fraction_zero_bubble"),
    "bubble_dualpipe": ("dualpipe_bubble", "bubble_dual_pipe", "bubble_fraction_dualpipe"),
    "bubble_dualpipev": ("dualpipev_bubble", "bubble_dual_pipe_v", "bubble_fraction_dualpipev"),
    "train_step": (
        *("pipeline_step", "pipeline_train_step", "train_pipeline", "run_pipeline", "pipeline_parallel_step"),
        *("run_schedule", "pipeline_forward_backward", "forward_backward"),
        *("Pipeline", "PipelineParallel", "PipelineEngine", "PipelineStage", "PipelineSchedule", "PipelineTrainer"),
        *("PipelineRunner", "PipelineWorker", "MyPipeline", "PP"),
        *(name for names in SCHEDULE_FUNCTIONS.values() for name in names),
    ),
    "partition": ("partition_layers", "balance_layers", "balance_stages", "split_layers", "balance"),
    "advise": ("advisor", "choose", "choose_strategy", "choose_parallelism", "recommend", "plan"),
    "ring_time": ("ring_allreduce_time", "ring_all_reduce_time", "allreduce_ring_time", "time_ring", "ring_cost"),
    "tree_time": ("tree_allreduce_time", "tree_all_reduce_time", "allreduce_tree_time", "time_tree", "tree_cost"),
    "crossover_bytes": ("crossover", "crossover_size", "ring_tree_crossover", "crossover_point"),
    "tensor_parallel_time": ("tp_time", "tensor_time", "tp_comm_time", "tensor_parallel_comm_time"),
    "train": ("worker", "ddp_worker", "train_worker", "run_worker", "training_loop"),
    "ColumnParallelLinear": (
        *("ColumnwiseLinear", "ColwiseLinear", "ColParallelLinear", "ColumnLinear", "TPColumnLinear", "TPLinear"),
        *(
            "ColwiseParallelLinear",
            "LinearColumnParallel",
            "column_parallel_linear",
            "column_parallel",
            "ColumnTPLinear",
        ),
    ),
    "RowParallelLinear": (
        *("RowwiseLinear", "RowLinear", "TPRowLinear", "RowwiseParallelLinear", "LinearRowParallel"),
        *("row_parallel_linear", "row_parallel", "RowTPLinear"),
    ),
    "VocabParallelEmbedding": (
        *("ParallelEmbedding", "VocabularyParallelEmbedding", "TPEmbedding", "ShardedEmbedding"),
        *("vocab_parallel_embedding", "parallel_embedding"),
    ),
    "ParallelMLP": (
        "TPMLP",
        "TensorParallelMLP",
        "ParallelFeedForward",
        "MLPParallel",
        "TPFeedForward",
        "parallel_mlp",
    ),
    "ParallelAttention": (
        *("TPAttention", "TensorParallelAttention", "ParallelSelfAttention", "ParallelMultiheadAttention"),
        *("parallel_attention",),
    ),
    "tensor_parallel": (
        *(
            "parallelize_module",
            "parallelize",
            "parallelize_block",
            "apply_tensor_parallel",
            "apply_tp",
            "TensorParallel",
        ),
        *("make_tensor_parallel", "shard_block", "ParallelBlock", "TPBlock", "ParallelTransformerBlock"),
    ),
    "copy_to_region": ("copy_to_tensor_model_parallel_region", "copy_to_tensor_parallel_region", "copy_to_parallel"),
    "reduce_from_region": (
        *("reduce_from_tensor_model_parallel_region", "reduce_from_tensor_parallel_region", "reduce_from_parallel"),
    ),
    "scatter_to_region": (
        *("scatter_to_tensor_model_parallel_region", "scatter_to_tensor_parallel_region", "scatter_to_parallel"),
    ),
    "gather_from_region": (
        *("gather_from_tensor_model_parallel_region", "gather_from_tensor_parallel_region", "gather_from_parallel"),
    ),
}

# Names of one entry that belong together: the first that is there is taken, and each can be asked for by its own.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "DataParallel": ("get_ddp", "get_ddp_individual_parameters", "get_ddp_bucketed"),
    "train_step": tuple(name for names in SCHEDULE_FUNCTIONS.values() for name in names),
}
# Methods by which a class of any name is known for what it is.
WRAPPER_METHODS: Mapping[str, tuple[str, ...]] = {"DataParallel": ("finish_gradient_synchronization",)}
# Classes whose methods are collectives.
COMMUNICATORS = re.compile(r"[Cc]omm(unicator|unication|s|$|[A-Z])|Collective|AllReduce|ProcessMesh")
