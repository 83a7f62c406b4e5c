"""What the parameters of the contract may be called, and in which further orders they may come."""

from __future__ import annotations

from collections.abc import Mapping

# Parameters by which a class or function shards one layer: it is given each layer that has parameters.
LAYER_PARAMETERS = ("layer", "linear", "lin", "linear_layer")

# A pipeline is handed a list of microbatches under the names of `microbatches`; where it asks for their number, and has
# one of these and none of a list, the whole batch.
BATCH_PARAMETERS = ("batch", "x", "inputs", "input", "data", "input_batch", "minibatch", "mini_batch", "full_batch")
LIST_PARAMETERS = ("microbatches", "micro_batches", "batches", "xs", "input_chunks", "microbatch_inputs", "mbs")
COUNT_PARAMETERS = (
    *("num_microbatches", "num_micro_batches", "n_microbatches", "n_micro_batches", "n_micro", "num_mb", "num_chunks"),
    *("n_chunks", "chunks", "M", "m"),
)
STAGE_LIST_PARAMETERS = ("stages", "modules", "stage_modules", "model_chunks")  # a list, also of one module

# Names of a bandwidth's inverse, by which there is no doubt; beta is used for either.
SECONDS_PER_BYTE = (
    *("inv_bw", "inv_bandwidth", "inverse_bandwidth", "seconds_per_byte", "s_per_byte", "sec_per_byte", "byte_time"),
    *("time_per_byte", "beta_inv"),
)

# What a parameter may be called. A value is handed over under the first of its names that is asked for.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "mesh": ("comm", "endpoint", "links", "link", "transport", "network"),
    "to_next": (
        *("to_right", "send_queue", "send_q", "next_queue", "next_q", "right_queue", "right_q", "out_queue", "out_q"),
        *("queue_out", "q_out", "q_send", "q_next", "q_right", "queue_next", "send_to_next", "to_next_queue", "outbox"),
        *("send_conn", "next_conn", "right_conn", "out_conn", "conn_next", "conn_right", "conn_out", "tx"),
        *("send_pipe", "next_pipe", "right_pipe", "out_pipe", "pipe_next", "pipe_right", "pipe_out"),
    ),
    "from_previous": (
        *("from_prev", "from_left", "recv_queue", "recv_q", "prev_queue", "prev_q", "left_queue", "left_q", "in_queue"),
        *("in_q", "queue_in", "q_in", "q_recv", "q_prev", "q_left", "queue_prev", "recv_from_prev", "from_prev_queue"),
        *("inbox", "recv_conn", "prev_conn", "left_conn", "in_conn", "conn_prev", "conn_left", "conn_in", "rx"),
        *("recv_pipe", "prev_pipe", "left_pipe", "in_pipe", "pipe_prev", "pipe_left", "pipe_in"),
    ),
    "queues": ("qs", "inboxes", "mailboxes", "queue_list", "queue_dict"),
    "connections": ("conns", "pipes", "channels", "peers", "neighbors", "neighbours"),
    "rank": ("my_rank", "rank_id", "rankid", "rank_idx", "tp_rank", "r", "me", "local_rank", "global_rank"),
    "world_size": (
        *("n", "N", "size", "num_ranks", "nranks", "n_ranks", "ws", "world", "num_processes", "nprocs", "p"),
        *("num_devices", "num_gpus", "n_gpus", "tp_size", "tensor_parallel_size", "tensor_model_parallel_size"),
        *("model_parallel_size", "dp_size"),
    ),
    "tensor": (
        *("x", "t", "input", "data", "inp", "input_tensor", "tensor_in", "buf", "buffer", "flat", "value", "values"),
        *("vec", "arr", "array", "local", "shard", "chunk", "grad", "gradient", "local_tensor", "tensor_list"),
        *("inputs", "ids", "input_ids", "token_ids", "tokens", "indices", "idx", "local_shard", "local_x"),
        *("sendbuf", "send_buf", "send_buffer", "src_array", "send_array", "sendarray"),
    ),
    "out": (
        *("recvbuf", "recv_buf", "recv_buffer", "output", "result", "dest_array", "dst_array", "recv_array"),
        "recvarray",
    ),
    "src": ("root", "source", "src_rank", "root_rank", "from_rank", "broadcaster"),
    "group": (
        *("process_group", "pg", "proc_group", "dp_group", "data_parallel_group", "tp_group"),
        *("tensor_parallel_group", "model_parallel_group", "mp_group", "shard_group", "fsdp_group"),
    ),
    "module": (
        *(
            "model",
            "net",
            "wrapped",
            "nn_module",
            "ddp_model",
            "ddp",
            "linear",
            "lin",
            "layer",
            "embedding",
            "emb",
            "mlp",
        ),
        *("attention", "attn", "block", "full", "whole", "dense", "source_module", "fsdp_model", "fsdp", "ddp_module"),
        *("wrapped_model", "wrapped_module", "base_model", "base_module"),
    ),
    "bucket_cap_mb": ("bucket_size_mb", "bucket_mb", "bucket_size", "cap_mb"),
    "init_file": ("rendezvous_file", "file", "path", "file_path", "rendezvous", "store_path"),
    "port": ("master_port", "MASTER_PORT"),
    "step": ("i", "iteration", "step_index", "it"),
    "batch_size": ("batch", "per_rank_batch", "local_batch", "local_batch_size", "batch_size_per_rank", "bs", "b"),
    "make_model": ("model_fn", "build_model", "model_factory", "make_module", "model_cls"),
    "inputs": ("x", "X", "data", "features"),
    "targets": (
        *("y", "Y", "labels", "target", "ys", "target_chunks", "microbatch_targets", "target_microbatches"),
        *("micro_targets", "label", "tgt", "tgts", "micro_labels", "microbatch_labels", "label_chunks"),
    ),
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
    "microbatches": (
        *("micro_batches", "inputs", "batches", "xs", "input_chunks", "x", "data", "batch", "input"),
        *("microbatch_inputs", "mbs", "input_batch", "minibatch", "mini_batch", "full_batch", "chunks"),
    ),
    "loss_fn": ("criterion", "loss", "loss_function", "loss_func"),
    "schedule": ("schedule_name", "pipeline_schedule", "name"),
    "stage_index": ("stage_id", "stage_idx", "stage_num", "stage_rank"),
    "is_first": ("is_first_stage", "first"),
    "is_last": ("is_last_stage", "last"),
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
    "device_bytes": ("capacity_bytes", "memory_bytes", "gpu_bytes", "device_memory", "gpu_memory"),
    "num_bytes": (
        *("n_bytes", "nbytes", "message_bytes", "message_size", "msg_bytes", "msg_size", "tensor_bytes", "size_bytes"),
        *("T", "M", "m"),
    ),
    "activation_bytes": ("activations", "activations_bytes", "activation_memory"),
    "hidden": ("hidden_size", "width", "d_model", "hidden_dim", "h"),
    "tokens": ("num_tokens", "tokens_per_microbatch", "microbatch_tokens", "n_tokens", "s"),
    "flops": ("device_flops", "flops_per_device", "flops_per_s", "achieved_flops"),
    "all_to_all_share": ("expert_share", "ep_share", "a2a_share", "expert_parallel_load"),
    "latency_s": ("latency", "alpha", "lat", "latency_seconds", "intra_latency_s", "inside_latency_s"),
    "bandwidth": (
        *("bw", "beta", "bandwidth_bytes_per_s", "bytes_per_s", "bytes_per_second", "intra_bandwidth"),
        *("inside_bandwidth", *SECONDS_PER_BYTE),
    ),
    "between_latency_s": ("inter_latency_s", "inter_latency", "inter_node_latency_s", "inter_node_latency"),
    "between_bandwidth": ("inter_bandwidth", "inter_node_bandwidth", "inter_bw"),
    "num_layers": ("n_layers", "layers", "num_blocks", "n_blocks", "depth", "L"),
    "ranks_per_node": ("gpus_per_node", "devices_per_node", "node_size"),
    "gather_output": ("gather", "gather_out", "gather_outputs"),
    "input_is_parallel": ("input_is_sharded", "parallel_input", "input_parallel", "input_is_split"),
    "sequence_parallel": ("sp", "seq_parallel", "use_sequence_parallel", "use_sp", "sequence_parallel_enabled"),
    "sequence_dim": ("seq_dim",),
    "in_features": ("in_dim", "input_size", "d_in", "in_size", "n_in", "input_dim", "nin"),
    "out_features": ("out_dim", "output_size", "d_out", "out_size", "n_out", "output_dim", "nout"),
    "bias": ("use_bias", "add_bias", "has_bias", "bias_shard", "b"),
    "weight": ("w", "W", "weight_shard", "local_weight", "kernel"),
    "up_weight": (
        "w1",
        "W1",
        "w_1",
        "weight1",
        "weight_1",
        "w_up",
        "up_w",
        "fc1_weight",
        "w_in",
        "A",
        "A_shard",
        "w1_shard",
    ),
    "up_bias": ("b1", "B1", "b_1", "bias1", "bias_1", "b_up", "up_b", "fc1_bias", "b_in", "b1_shard"),
    "down_weight": (
        *("w2", "W2", "w_2", "weight2", "weight_2", "w_down", "down_w", "fc2_weight", "w_out", "B", "B_shard"),
        "w2_shard",
    ),
    "down_bias": ("b2", "B2", "b_2", "bias2", "bias_2", "b_down", "down_b", "fc2_bias", "b_out"),
    "q_weight": ("wq", "Wq", "w_q", "W_q", "W_Q", "WQ", "wq_shard", "q_proj_weight", "weight_q"),
    "q_bias": ("bq", "b_q", "q_proj_bias", "bias_q"),
    "k_weight": ("wk", "Wk", "w_k", "W_k", "W_K", "WK", "wk_shard", "k_proj_weight", "weight_k"),
    "k_bias": ("bk", "b_k", "k_proj_bias", "bias_k"),
    "v_weight": ("wv", "Wv", "w_v", "W_v", "W_V", "WV", "wv_shard", "v_proj_weight", "weight_v"),
    "v_bias": ("bv", "b_v", "v_proj_bias", "bias_v"),
    "out_weight": ("wo", "Wo", "w_o", "W_o", "W_O", "WO", "wo_shard", "o_proj_weight", "out_proj_weight", "weight_o"),
    "out_bias": ("bo", "b_o", "o_proj_bias", "out_proj_bias", "bias_o"),
    "num_embeddings": ("vocab_size", "n_vocab", "num_emb", "vocabulary_size", "vocab"),
    "embedding_dim": ("embed_dim", "emb_dim", "d_model", "hidden_size", "dim", "width", "n_embd", "d", "hidden"),
    "hidden_size": ("d_model", "dim", "embed_dim", "width", "n_embd", "d", "in_features", "model_dim"),
    "ffn_size": (
        *("ffn_hidden_size", "d_ff", "dff", "intermediate_size", "hidden_dim", "ff_dim", "mlp_dim", "inner_dim"),
        *("hidden_features", "d_hidden", "ffn_dim", "hidden"),
    ),
    "activation": ("act", "act_fn", "activation_fn", "nonlinearity", "activation_function", "act_func"),
    "num_heads": ("n_heads", "n_head", "heads", "num_attention_heads", "nhead", "nheads", "h"),
    "plan": ("parallelize_plan", "tp_plan", "layer_plan"),
    "device_mesh": ("tp_mesh",),
}
_NEIGHBOURS = (("to_next", "from_previous"), ("queues", "connections"))  # a mesh in other forms: see `neighbours`

# What else is offered under a name; of a function without names the longest order is taken, the Protocol's first.
FURTHER_ORDERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "shard_gradients": (("local_grad", "chunks"),),
    **dict.fromkeys(("ShardedOptimizer", "Zero2Optimizer", "MixedPrecision"), (("optimizer",),)),
    "tree_broadcast": (("tensor", "src", "group"), *_NEIGHBOURS),
    "train_step": (  # all that a pipeline may ask for beside the contract's own
        (
            *("stage", "microbatches", "targets", "loss_fn", "schedule", "rank", "world_size", "group", "tied"),
            *("num_microbatches", "num_stages", "stage_index", "is_first", "is_last"),
        ),
    ),
    **dict.fromkeys(
        ("ring_allreduce", "tree_allreduce", "ring_allgather"), (("tensor", "group"), ("tensor", "out"), *_NEIGHBOURS)
    ),
    "ring_reduce_scatter": (("tensor", "group"), ("tensor", "out"), ("chunks",), *_NEIGHBOURS),
    **dict.fromkeys(
        ("all_reduce", "all_gather"), (("tensor", "out"), ("mesh", "rank", "world_size", "tensor"), *_NEIGHBOURS)
    ),
    "reduce_scatter": (("tensor", "out"), ("chunks",), ("mesh", "rank", "world_size", "tensor"), *_NEIGHBOURS),
    "broadcast": (("mesh", "rank", "world_size", "tensor", "src"), *_NEIGHBOURS),
}
