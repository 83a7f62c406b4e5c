"""What else the names of the contract may be called: blocks' members, methods of what they return, parameters."""

from __future__ import annotations

from collections.abc import Mapping

# Other spellings of a name, tried after the name itself.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "queue_mesh": ("make_queue_mesh", "make_mesh", "build_mesh"),
    "ring_allreduce": ("ring_all_reduce", "allreduce_ring", "all_reduce_ring", "RingAllreduce"),
    "tree_allreduce": ("tree_all_reduce", "allreduce_tree", "all_reduce_tree", "binomial_allreduce", "TreeAllreduce"),
    "ring_allgather": ("ring_all_gather", "allgather_ring", "all_gather_ring"),
    "ring_reduce_scatter": ("ring_reducescatter", "reduce_scatter_ring"),
    "tree_broadcast": ("broadcast_tree", "binomial_broadcast"),
    "all_reduce": ("allreduce", "my_all_reduce", "my_allreduce"),
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
    ),
    "partition": ("partition_layers", "balance_layers", "balance_stages", "split_layers", "balance"),
    "train": ("worker", "ddp_worker", "train_worker", "run_worker", "training_loop"),
}

# What a wrapper may call the method that ends a step's gradient reduction, in order of trial.
SYNC_METHODS = (
    *("sync_grads", "sync_gradients", "finish_gradient_synchronization", "synchronize_gradients", "on_after_backward"),
    *("average_gradients", "all_reduce_gradients", "allreduce_gradients", "reduce_gradients", "all_reduce_grads"),
)
# The same as a function of the module's wrapper, as some courses' adapters have it.
SYNC_FUNCTIONS = (
    "ddp_on_after_backward",
    "ddp_bucketed_on_after_backward",
    "ddp_individual_parameters_on_after_backward",
)
FSDP_SYNC_FUNCTIONS = ("fsdp_on_after_backward",)
# What gives the parameters of a sharded module whole: methods of it, and a function of it, in order of trial.
GATHER_METHODS = ("full_parameters", "gather_full_params", "gather_full_parameters", "full_params")
GATHER_FUNCTIONS = ("full_parameters", "fsdp_gather_full_params", "gather_full_params")

# What a parameter may be called. A value is handed over under the first of its names that is asked for.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "mesh": ("comm", "endpoint", "links", "link", "transport", "network"),
    "rank": ("my_rank", "rank_id", "r", "me", "local_rank", "global_rank"),
    "world_size": ("n", "N", "size", "num_ranks", "nranks", "n_ranks", "ws", "world", "num_processes", "nprocs", "p"),
    "tensor": (
        *("x", "t", "input", "data", "inp", "input_tensor", "tensor_in", "buf", "buffer", "flat", "value", "values"),
        *(
            "vec",
            "arr",
            "array",
            "local",
            "shard",
            "chunk",
            "grad",
            "gradient",
            "local_tensor",
            "tensor_list",
            "inputs",
        ),
    ),
    "src": ("root", "source", "src_rank", "root_rank", "from_rank", "broadcaster"),
    "group": ("process_group", "pg", "proc_group", "dp_group", "data_parallel_group"),
    "module": ("model", "net", "wrapped", "nn_module", "ddp_model", "ddp"),
    "bucket_cap_mb": ("bucket_size_mb", "bucket_mb", "bucket_size", "cap_mb"),
    "init_file": ("rendezvous_file", "file", "path", "file_path", "rendezvous", "store_path"),
    "port": ("master_port", "MASTER_PORT"),
    "step": ("i", "iteration", "step_index", "it"),
    "batch_size": ("batch", "per_rank_batch", "local_batch", "local_batch_size", "batch_size_per_rank", "bs", "b"),
    "make_model": ("model_fn", "build_model", "model_factory", "make_module", "model_cls"),
    "inputs": ("x", "X", "data", "features"),
    "targets": ("y", "Y", "labels", "target", "ys", "target_chunks"),
    "steps": ("num_steps", "n_steps"),
    "learning_rate": ("lr",),
    "seed": ("SEED", "random_seed"),
    "local_grad": ("output", "out", "local_gradient", "grad_shard", "shard"),
    "chunks": ("input_list", "grad_chunks", "parts"),
    "master_shard": ("shard", "local_shard", "master", "local_master", "tensor", "x"),
    "dtype": ("param_dtype", "model_dtype", "compute_dtype", "half_dtype", "low_dtype"),
    "params": ("parameters", "model_params", "model_parameters"),
    "optimizer_cls": ("optimizer_class", "optim_cls", "optim_class", "base_optimizer", "base_cls", "inner_cls"),
    "optimizer": ("optim", "opt", "base_optim", "inner", "inner_optimizer", "init_optimizer"),
    "lr": ("learning_rate",),
    "reshard_after_forward": ("reshard", "free_after_forward"),
    "master": ("keep_master", "master_weights", "fp32_master"),
    "init_scale": ("initial_scale", "loss_scale", "scale"),
    "growth_interval": ("scale_window", "growth_steps"),
    "stage": (
        *("stages", "module", "modules", "model", "stage_module", "stage_modules", "model_chunks", "layers", "net"),
    ),
    "microbatches": ("micro_batches", "inputs", "batches", "xs", "chunks", "input_chunks", "x", "data"),
    "loss_fn": ("criterion", "loss", "loss_function", "loss_func"),
    "schedule": ("schedule_name", "pipeline_schedule", "name"),
    "tied": ("tied_weights", "tied_parameters", "shared_parameters", "shared"),
    "costs": ("layer_costs", "times", "flops", "weights", "layers", "loads"),
    "num_stages": (
        *("n_stages", "num_ranks", "n_ranks", "stages", "world_size", "pp_size", "num_devices", "num_partitions"),
        *("P", "p", "N", "n", "k", "S"),
    ),
    "num_microbatches": (
        *("num_micro_batches", "n_microbatches", "n_micro_batches", "n_micro", "num_mb", "microbatches"),
        *("micro_batches", "num_batches", "batches", "chunks", "M", "m"),
    ),
    "num_chunks": ("chunks_per_rank", "num_model_chunks", "model_chunks", "n_chunks", "chunks", "V", "v", "interleave"),
    "num_samples": ("n_samples", "dataset_size", "num_examples", "length"),
    "num_parameters": ("num_params", "n_params", "parameter_count", "P"),
    "bytes_per_parameter": ("bytes_per_param",),
    "device_bytes": ("capacity_bytes", "memory_bytes", "gpu_bytes"),
    "ranks_per_node": ("gpus_per_node", "devices_per_node", "node_size"),
}

# Further orders of parameters, for functions whose parameters have names that nobody knows; the Protocol's comes first.
FURTHER_ORDERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "shard_gradients": (("local_grad", "chunks"),),
    "tree_broadcast": (("tensor", "src", "group"),),
    **dict.fromkeys(
        ("ring_allreduce", "tree_allreduce", "ring_allgather", "ring_reduce_scatter"), (("tensor", "group"),)
    ),
}
