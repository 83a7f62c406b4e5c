"""An advisor of dense models that knows no nodes and answers mostly with the name of a strategy, as the cheatsheet.

Its closed forms count in seconds per byte.
"""

from __future__ import annotations

LINK = 5e9  # bytes per second, below which parameters are not gathered in every layer
NODE = 8


def choose_strategy(num_params, layers, activation_memory, gpu_memory, num_gpus, inter_node_bandwidth):
    """The first that fits; a pipeline where links between nodes are slow."""
    for name, per_parameter in (("DDP", 16), ("ZeRO-1", 4 + 12 / num_gpus), ("ZeRO-2", 2 + 14 / num_gpus)):
        if per_parameter * num_params + activation_memory <= gpu_memory:
            return name
    gathered = 6 * num_params / layers
    if 16 * num_params / num_gpus + gathered + activation_memory <= gpu_memory:
        if inter_node_bandwidth > LINK or num_params < 1e10:
            return "FSDP"
        return {"strategy": "pipeline", "pp": num_gpus // NODE, "tp": NODE, "schedule": "ZBV"}
    return "FSDP + tensor parallel"


def ring_time(n_bytes, p, alpha, inv_bw):
    """Seconds."""
    return 2 * (p - 1) * (alpha + n_bytes / p * inv_bw)


def tree_time(n_bytes, p, alpha, seconds_per_byte):
    """Seconds."""
    return 2 * (p - 1).bit_length() * (alpha + n_bytes * seconds_per_byte)
