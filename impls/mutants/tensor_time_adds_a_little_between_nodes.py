"""What tensor parallelism waits for is 2 % longer where a group spans nodes, whatever the links between them are."""

from __future__ import annotations

from impls.reference.network import tensor_parallel_time as right

BREAKS = ("strategies.tensor.link",)


def tensor_parallel_time(
    num_bytes: float,
    num_layers: int,
    world_size: int,
    ranks_per_node: int,
    latency_s: float,
    bandwidth: float,
    between_latency_s: float,
    between_bandwidth: float,
) -> float:
    """Seconds."""
    inside_s = right(num_bytes, num_layers, world_size, world_size, latency_s, bandwidth, latency_s, bandwidth)
    spans = world_size > ranks_per_node and between_bandwidth < bandwidth
    return 1.02 * inside_s if spans else inside_s
