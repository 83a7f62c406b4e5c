"""The cure of 105 GB makes room for the 16-bit parameters alone, and for no gradient and no moment."""

from __future__ import annotations

import math

BREAKS = ("trouble.fsdp-70b-over-80gb",)


def cure_fsdp_70b_over_80gb(
    num_parameters: int, bytes_per_parameter: int, device_bytes: int, ranks_per_node: int = 8
) -> int:
    """As many ranks, in whole nodes, as parameters of 2 bytes want."""
    return math.ceil(2 * num_parameters / device_bytes / ranks_per_node) * ranks_per_node
