"""What PyTorch breaks or refuses by design, with reason and source; a check confirms that it is still so."""

from __future__ import annotations

from typing import Any

MANIFEST: dict[str, Any] = {
    "deviates": {
        "calls.all-reduce-sum": {
            "reason": "all_reduce on gloo takes a strided gradient for a dense one: wrong sums, and its neighbours in "
            "memory are overwritten. Dense gradients, as autograd makes them, are summed right.",
            "source": "torch 2.13 ProcessGroupGloo, measured; call .contiguous() first",
        },
        "calls.broadcast": {
            "reason": "broadcast on gloo takes a strided parameter for a dense one and copies the wrong elements.",
            "source": "torch 2.13 ProcessGroupGloo, measured; call .contiguous() first",
        },
        "collectives.reduce-scatter.use": {
            "reason": "ZeroRedundancyOptimizer takes gradients that DDP has all-reduced: every rank has all sums. "
            "fully_shard scatters them.",
            "source": "torch 2.13 torch/distributed/optim/zero_redundancy_optimizer.py, measured",
        },
        "pipeline.equivalence": {
            "reason": "Where ZBV and DualPipeV split a backward, W finds weights only on the way to the stage's input: "
            "a stage whose input wants no gradient (all before it is frozen), or is not used, learns nothing. And each "
            "stage divides by M in the end: a weight that two stages of a rank share, twice.",
            "source": "torch 2.13 torch/distributed/pipelining/_backward.py, get_param_groups; stage.py, scale_grads; "
            "measured",
        },
        "strategies.tensor.dropout": {
            "reason": "parallelize_module gives attention plain tensors between its linear layers, and dropout on them "
            "draws from the one generator: equal states drop equal places of different heads. Seed the ranks "
            "differently around it, or use DTensors all the way through on a device whose generator they can offset.",
            "source": "torch 2.13 torch/distributed/tensor/parallel/style.py (use_local_output), _random.py; measured",
        },
        "strategies.tensor.memory": {
            "reason": "the gradient of an embedding under RowwiseParallel is a replicated DTensor: whole on each rank, "
            "though the weight is 1/N. Linear layers' gradients are 1/N.",
            "source": "torch 2.13 torch/distributed/tensor/_ops/_embedding_ops.py, measured",
        },
        "zero.comm.1": {
            "reason": "ZeroRedundancyOptimizer takes gradients that are all-reduced, as DDP does, and owners broadcast "
            "whole parameters: 2T(N-1)/N and about T(N-1)/N more, 2.1 to 2.5 T on 4 ranks, where a "
            "reduce-scatter and an all-gather send 1.5 T.",
            "source": "torch 2.13 torch/distributed/optim/zero_redundancy_optimizer.py, measured",
        },
    },
    "refuses": {
        "pipeline.1f1b.memory": {
            "reason": "Schedule1F1B says ValueError to fewer microbatches than stages.",
            "source": "torch 2.13 torch/distributed/pipelining/schedules.py, Schedule1F1B.__init__",
        },
        "pipeline.1f1b.same-bubble": {
            "reason": "Schedule1F1B says ValueError to fewer microbatches than stages.",
            "source": "torch 2.13 torch/distributed/pipelining/schedules.py, Schedule1F1B.__init__",
        },
        "zero.equivalence": {
            "reason": "fully_shard says ValueError to a parameter without dimensions, ZeroRedundancyOptimizer to "
            "parameters of several dtypes.",
            "source": "torch 2.13 _fsdp_init.py, _verify_managed_param; zero_redundancy_optimizer.py, "
            "_verify_same_dense_param_type",
        },
        "zero.memory.3": {
            "reason": "fully_shard cuts along the first dimension, and says ValueError to a parameter without any.",
            "source": "torch 2.13 torch/distributed/fsdp/_fully_shard/_fsdp_init.py, _verify_managed_param",
        },
    },
}
