"""Block `advisor`: which strategy to train a model with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class AdvisorBlock(Protocol):
    """Advice from memory and from the links. Sources: Rajbhandari et al. 2020 (ZeRO); Narayanan et al. 2021, 3."""

    def advise(
        self,
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
    ) -> Mapping[str, Any] | object | str | None:
        """How to use `world_size` devices of `device_bytes` in nodes of `ranks_per_node`; None when nothing fits.

        Training is in mixed precision with Adam: 16 bytes per parameter, of which 2 + 2 are parameter and gradient.
        A replica processes `num_microbatches` of `tokens` tokens in a step; `activation_bytes` are those of one
        microbatch in all layers, which tensor parallelism divides (with sequence parallelism), and `hidden` is the
        width between layers. Links inside a node have `latency_s` and `bandwidth`, those between nodes the
        ``between_`` figures, devices reach `flops` per second. `all_to_all_share`: experts' all-to-all that nothing
        hides, as a share of the computation; 0 for a dense model.

        The answer has ``stage`` ("ddp", "1", "2", "3": what data-parallel ranks shard; names such as "zero1" and
        "fsdp" will do), the degrees ``dp``, ``tp``, ``pp`` (1 where left out), and for a pipeline its ``schedule``,
        named as in block `schedules`; in a mapping or as attributes. A text alone names the strategy.
        """
