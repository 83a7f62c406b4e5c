"""The cure of 105 GB fills no node: the fewest ranks, wherever they are."""

from __future__ import annotations

import math

BREAKS = ("trouble.fsdp-70b-over-80gb",)


def cure_fsdp_70b_over_80gb(
    num_parameters: int, bytes_per_parameter: int, device_bytes: int, ranks_per_node: int = 8
) -> int:
    """14 or 11 ranks for 70B."""
    return math.ceil(num_parameters * bytes_per_parameter / device_bytes)
