"""Which strategy to train a model with: what fits on a device, and what is quick on the links between devices."""

from __future__ import annotations


def advise(
    num_parameters: float,
    num_layers: int,
    hidden: int,
    tokens: int,
    num_microbatches: int,
    activation_bytes: float,
    device_bytes: float,
    world_size: int,
    ranks_per_node: int,
    latency_s: float,
    bandwidth: float,
    between_latency_s: float,
    between_bandwidth: float,
    flops: float,
    all_to_all_share: float,
) -> dict[str, object] | None:
    """``{"stage": "ddp", "dp": 8, "tp": 1, "pp": 1, "schedule": ""}``, or None when nothing fits.

    Drop the parameters that you do not need. Mixed precision with Adam: 16 bytes per parameter.
    """
    raise NotImplementedError
