"""What advice is asked for: a model, a step, the devices, the links. Nonsense is refused with what to give instead."""

from __future__ import annotations

import dataclasses
import math

from impls.reference.network.links import Cluster, Link
from impls.reference.network.presets import PRESETS
from impls.reference.network.steps import Workload
from impls.words import number_of

# Korthikanti et al. 2022 (2205.05198), section 4: what a transformer layer keeps for backward in 16 bits, and with full
# checkpointing; in bytes per token and unit of width, without the attention matrix (section 5 recomputes it).
KEPT, CHECKPOINTED = 34, 2
TRANSFORMER = 12  # parameters per layer and squared width


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything that the advice depends on; see `impls.contract.advisor` for the fields."""

    work: Workload
    activation_bytes: float
    device_bytes: float
    num_devices: int
    cluster: Cluster
    all_to_all_share: float = 0.0


def request(
    num_parameters: float,
    num_layers: int,
    device_bytes: float,
    world_size: int,
    ranks_per_node: int = 8,
    hidden: int | None = None,
    tokens: int = 4096,
    num_microbatches: int = 8,
    activation_bytes: float | None = None,
    latency_s: float | None = None,
    bandwidth: float | None = None,
    between_latency_s: float | None = None,
    between_bandwidth: float | None = None,
    flops: float = 2e14,
    all_to_all_share: float = 0.0,
) -> Request:
    """The request of these figures. What is left out is that of a transformer on NVLink 4 and InfiniBand NDR.

    ValueError names the figure that makes no sense.
    """
    for name, value in (("num_layers", num_layers), ("world_size", world_size), ("ranks_per_node", ranks_per_node)):
        _whole(name, value)
    for name, value in (("tokens", tokens), ("num_microbatches", num_microbatches)):
        _whole(name, value)
    for name, figure in (("num_parameters", num_parameters), ("device_bytes", device_bytes), ("flops", flops)):
        _positive(name, figure)
    if not 0 <= all_to_all_share < math.inf:
        raise ValueError(f"all_to_all_share is {all_to_all_share!r}; give a share of computation time, 0 if dense")
    if world_size > ranks_per_node and world_size % ranks_per_node:
        raise ValueError(
            f"{number_of(world_size, 'device')} do not fill nodes of {ranks_per_node}; give whole nodes, such as "
            f"{math.ceil(world_size / ranks_per_node) * ranks_per_node} devices"
        )
    width = hidden or round(math.sqrt(num_parameters / TRANSFORMER / num_layers))
    _whole("hidden", width)
    kept = KEPT * tokens * width * num_layers if activation_bytes is None else activation_bytes
    if not 0 <= kept < math.inf:
        raise ValueError(f"activation_bytes is {activation_bytes!r}; give the bytes of one microbatch, 0 or more")
    near, far = PRESETS["nvlink4"].link, PRESETS["ib-ndr"].link
    return Request(
        work=Workload(
            num_parameters=num_parameters,
            num_layers=num_layers,
            hidden=width,
            tokens=tokens,
            num_microbatches=num_microbatches,
            flops=flops,
        ),
        activation_bytes=kept,
        device_bytes=device_bytes,
        num_devices=world_size,
        cluster=Cluster(
            inside=_link(near, latency_s, bandwidth),
            between=_link(far, between_latency_s, between_bandwidth),
            ranks_per_node=ranks_per_node,
        ),
        all_to_all_share=all_to_all_share,
    )


def _link(usual: Link, latency_s: float | None, bandwidth: float | None) -> Link:
    return Link(
        latency_s=usual.latency_s if latency_s is None else latency_s,
        bandwidth=usual.bandwidth if bandwidth is None else bandwidth,
    )


def _whole(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")


def _positive(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is {value!r}; give a number above 0")
