"""Methods and functions that a block needs around it: what they may be called, in order of trial."""

from __future__ import annotations

# What a wrapper may call the method that ends a step's gradient reduction, in order of trial.
SYNC_METHODS = (
    *("sync_grads", "sync_gradients", "finish_gradient_synchronization", "synchronize_gradients", "on_after_backward"),
    *("average_gradients", "all_reduce_gradients", "allreduce_gradients", "reduce_gradients", "all_reduce_grads"),
    *("allreduce_grads", "reduce_grads", "average_grads", "finish_gradient_sync", "finish_grad_sync", "finish_sync"),
    *("synchronize", "wait_for_gradients", "wait_for_grads", "sync"),
)
# What it may call the method that has to come before a step's first forward pass, in order of trial.
BEGIN_METHODS = ("on_train_batch_start", "on_batch_start", "start_step", "begin_step", "reset", "reset_buckets")
# Setters that say whether the next backward reduces: what `no_sync` is made of where there is none.
SYNC_SWITCHES = ("set_require_backward_grad_sync", "set_requires_gradient_sync", "set_grad_sync")
# The same as a function of the module's wrapper, as some courses' adapters have it. Of ``get_NAME`` come those first
# that begin with NAME: ``get_ddp_bucketed``, ``ddp_bucketed_on_after_backward``, ``ddp_bucketed_on_train_batch_start``.
AFTER_BACKWARD, BATCH_START = "_on_after_backward", "_on_train_batch_start"
FSDP_SYNC_FUNCTIONS = ("fsdp_on_after_backward",)
# What sets a module's own global state, such as its process group, before anything of it is used; asked for by name.
STATE_FUNCTIONS = (
    *("initialize_model_parallel", "init_model_parallel", "init_parallel_state", "initialize_parallel_state"),
    *("init_tensor_parallel", "init_tp", "setup_tensor_parallel", "init_tp_group", "set_tp_group"),
    *("set_tensor_parallel_group", "set_process_group", "init_globals", "init_state", "init_parallel"),
)
# What sums the gradients of whole parameters under sequence parallelism: a method, or a function of the module.
SEQUENCE_SYNCS = (
    *("sync_gradients", "sync_grads", "sync_sequence_parallel_gradients", "allreduce_sequence_parallel_gradients"),
    *("allreduce_sequence_parallel_grads", "reduce_sequence_parallel_gradients", "finalize_gradients"),
)
# What gives the parameters of a sharded module whole: methods of it, and a function of it, in order of trial.
GATHER_METHODS = ("full_parameters", "gather_full_params", "gather_full_parameters", "full_params")
GATHER_FUNCTIONS = ("full_parameters", "fsdp_gather_full_params", "gather_full_params")

# What may gather the parameters of a sharded module before a forward pass that does not do so itself.
GATHERS_FIRST = ("gather", "unshard", "all_gather", "gather_shards")

# What the class of a pipeline may call the method that does a training step, in order of trial.
STEP_METHODS = (
    *("train_step", "step", "run", "forward_backward", "train_batch", "run_step", "run_schedule"),
    *("forward_backward_step", "train", "__call__"),
)
