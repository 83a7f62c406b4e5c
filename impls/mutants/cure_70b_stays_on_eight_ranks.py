"""The cure of 105 GB counts on activation checkpointing: the number of ranks stays what it was."""

from __future__ import annotations

BREAKS = ("trouble.fsdp-70b-over-80gb",)


def cure_fsdp_70b_over_80gb(
    num_parameters: int, bytes_per_parameter: int, device_bytes: int, ranks_per_node: int = 8
) -> int:
    """As many ranks as there are in a node."""
    return ranks_per_node
