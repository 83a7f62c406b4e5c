"""An advisor and closed forms as a student may write them: a few rules of thumb, alpha and beta, names of one's own."""

from __future__ import annotations

import math


def ring_cost(n_bytes, p, alpha, beta):
    """Seconds; beta is seconds per byte, as in Thakur et al."""
    return 2 * (p - 1) * alpha + 2 * (p - 1) / p * n_bytes * beta


def tree_cost(n_bytes, p, alpha, beta):
    """Seconds."""
    return 2 * math.ceil(math.log2(p)) * (alpha + n_bytes * beta)


def crossover(p, alpha, beta):
    """Bytes, by searching."""
    if p <= 3:
        return None
    low, high = 1.0, 1e12
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        if ring_cost(middle, p, alpha, beta) < tree_cost(middle, p, alpha, beta):
            high = middle
        else:
            low = middle
    return high


def recommend(num_params, n_layers, activations, gpu_memory, num_gpus, gpus_per_node, between_bandwidth, ep_share):
    """Replicas, shards, then tensor parallelism in the node, and a pipeline between nodes."""
    for strategy, held in (
        ("DDP", 16),
        ("ZeRO-1", 4 + 12 / num_gpus),
        ("ZeRO-2", 2 + 14 / num_gpus),
        ("FSDP", 16 / num_gpus),
    ):
        gathered = 4 * num_params / n_layers if strategy == "FSDP" else 0
        slow = (
            strategy == "FSDP" and between_bandwidth < 5e9 and num_gpus > gpus_per_node and n_layers * num_params > 1e12
        )
        if held * num_params + activations + gathered <= 0.95 * gpu_memory and not slow:
            return {"strategy": strategy, "data_parallel": num_gpus}
    nodes = num_gpus // gpus_per_node
    if between_bandwidth > 5e9 or nodes == 1:  # quick enough to gather: sharded replicas of a node each
        return {"strategy": "FSDP", "tp": gpus_per_node, "dp": nodes}
    states = 16 * num_params / num_gpus
    if ep_share > 0.5 and nodes % 2 == 0 and 2 * states + activations < gpu_memory:
        schedule = "DualPipe"
    else:
        schedule = "DualPipeV" if ep_share else "ZB-H1"
    return {"strategy": "pipeline", "tp": gpus_per_node, "pp": nodes, "schedule": schedule}
