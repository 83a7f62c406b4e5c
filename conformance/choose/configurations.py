"""Configurations for which the right advice is beyond doubt, drawn with room on both sides of every boundary.

Mixed precision with Adam: 16 bytes per parameter, of which data-parallel ranks can share 12 (stage 1), 14 (stage 2) or
all (stage 3). P parameters, N devices, d bytes each.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from impls.reference.network.presets import PRESETS

Configuration = dict[str, Any]
Draw = Callable[[random.Random], Configuration | None]

LITTLE, MUCH = 0.8, 1.25  # of a device: fits whatever comes on top, and does not fit whatever is left out
COUNT = 40
NODE = 8
LAYERS = (24, 32, 48, 80)
DEVICES = (24e9, 40e9, 80e9, 192e9)


def draw(kind: Draw, seed: int, count: int = COUNT) -> list[Configuration]:
    """`count` configurations of a kind, the same for the same seed."""
    source = random.Random(seed)
    return [configuration for _, configuration in zip(range(count), _endless(kind, source), strict=False)]


def _endless(kind: Draw, source: random.Random) -> Iterator[Configuration]:
    while True:
        if (found := kind(source)) is not None:
            yield found


def configuration(
    source: random.Random,
    *,
    num_parameters: float,
    device_bytes: float,
    world_size: int,
    activation_share: float = 0.02,
    between: str = "ib-ndr",
    **more: Any,
) -> Configuration:
    """The arguments of `advise`, with what is not given drawn or usual; activations as a share of a device."""
    layers = source.choice(LAYERS)
    near, far = PRESETS["nvlink4"].link, PRESETS[between].link
    usual = {
        "num_parameters": float(num_parameters),
        "num_layers": layers,
        "hidden": max(64, round(math.sqrt(num_parameters / 12 / layers))),
        "tokens": 8192,
        "num_microbatches": 8,
        "activation_bytes": float(activation_share * device_bytes),
        "device_bytes": float(device_bytes),
        "world_size": world_size,
        "ranks_per_node": NODE,
        "latency_s": near.latency_s,
        "bandwidth": near.bandwidth,
        "between_latency_s": far.latency_s,
        "between_bandwidth": far.bandwidth,
        "flops": 2e14,
        "all_to_all_share": 0.0,
    }
    return usual | more


def shared(stage: str, world_size: float) -> float:
    """Bytes per parameter that one of N data-parallel ranks holds."""
    sharded = {"ddp": 0, "1": 12, "2": 14, "3": 16}[stage]
    return 16 - sharded + sharded / world_size


def between_shares(source: random.Random, low: float, high: float, device_bytes: float) -> float | None:
    """A number of parameters from low to high times the device's bytes; None where there is none."""
    return source.uniform(low, high) * device_bytes if low < high else None


# -- kinds -------------------------------------------------------------------------------------------------------------


def fits_on_one(source: random.Random) -> Configuration:
    """States and activations of a replica fit on a device, over any links."""
    device, activations = source.choice(DEVICES), source.uniform(0.01, 0.3)
    return configuration(
        source,
        num_parameters=source.uniform(0.001, LITTLE - activations) * device / 16,
        device_bytes=device,
        world_size=source.choice((2, 4, 8, 16, 64, 256)),
        activation_share=activations,
        between=source.choice(("ib-ndr", "ib-hdr", "eth100", "eth10")),
    )


def activations_do_not_fit(source: random.Random) -> Configuration:
    """States fit on a device, and one microbatch's activations do not."""
    device = source.choice(DEVICES)
    return configuration(
        source,
        num_parameters=source.uniform(0.05, 0.5) * device / 16,
        device_bytes=device,
        world_size=source.choice((8, 16, 64)),
        activation_share=source.uniform(MUCH, 3.0),
    )


def activations_need_a_whole_node(source: random.Random) -> Configuration:
    """One node that has room for one microbatch's activations if all its ranks divide them, and not if half of them do.

    A pipeline does not divide them: the first stage has as many microbatches under way as there are stages.
    """
    device = source.choice(DEVICES)
    return configuration(
        source,
        num_parameters=source.uniform(0.05, 0.5) * device / 16,
        device_bytes=device,
        world_size=NODE,
        activation_share=source.uniform(MUCH * NODE / 2, LITTLE * NODE),
        num_microbatches=source.choice((8, 16, 32)),
    )


def fills_no_pipeline(source: random.Random) -> Configuration | None:
    """Too large for replicas, fits in shards that quick links gather in time; and one microbatch in a step."""
    device, size = source.choice(DEVICES), source.choice((16, 32, 64))
    number = between_shares(source, MUCH / shared("2", size), (LITTLE - 0.15) / shared("3", size), device)
    if number is None:
        return None
    return configuration(
        source, num_parameters=number, device_bytes=device, world_size=size, num_microbatches=1, tokens=2**16
    )


def states_do_not_fit(source: random.Random) -> Configuration:
    """Parameters, gradients and activations fit on a device, and with the optimizer's 12 bytes they do not."""
    device = source.choice(DEVICES)
    return configuration(
        source,
        num_parameters=source.uniform(MUCH / 16, (LITTLE - 0.02) / 4) * device,
        device_bytes=device,
        world_size=source.choice((8, 16, 64)),
    )


def needs(stage: str, before: str, sizes: tuple[int, ...]) -> Draw:
    """`stage` is the first that fits; the one before it does not."""

    def kind(source: random.Random) -> Configuration | None:
        device, size = source.choice(DEVICES), source.choice(sizes)
        low, high = MUCH / shared(before, size), (LITTLE - 0.15) / shared(stage, size)
        number = between_shares(source, low, high, device)
        if number is None:
            return None
        return configuration(source, num_parameters=number, device_bytes=device, world_size=size)

    return kind


def parameters_alone_do_not_fit(source: random.Random) -> Configuration:
    """The 2 bytes of each parameter are more than a device has."""
    device, size = source.choice(DEVICES), source.choice((32, 64, 256))
    number = source.uniform(MUCH / 2, min(0.5 * size / 16, 4.0)) * device
    return configuration(source, num_parameters=number, device_bytes=device, world_size=size)


def fits_with_tensor_in_a_node(source: random.Random) -> Configuration:
    """Too large for replicas; fits in several ways with no tensor-parallel group beyond a node."""
    device, size = source.choice(DEVICES), source.choice((16, 32, 64, 128))
    number = source.uniform(MUCH / 4, 0.4 * size / 16) * device
    return configuration(
        source,
        num_parameters=number,
        device_bytes=device,
        world_size=size,
        activation_share=source.uniform(0.02, 0.15 * NODE),
        between=source.choice(("ib-ndr", "ib-hdr", "eth100")),
        num_microbatches=source.choice((8, 16, 32)),
    )


def slow_between_nodes(source: random.Random, copies: float = 1.0, share: float = 0.0) -> Configuration:
    """10 Gb/s between nodes, and a model of which 4P + 12P/N bytes do not fit on a device even if a node shares it.

    `copies` of 1/N of all states are at most 4/10 of a device.
    """
    device, size = source.choice(DEVICES), source.choice((128, 256))
    most = 0.4 * size / 16 / copies
    number = source.uniform(min(2.2, 0.7 * most), min(most, 5.0)) * device
    return configuration(
        source,
        num_parameters=number,
        device_bytes=device,
        world_size=size,
        between="eth10",
        num_microbatches=2 * size // NODE * source.choice((2, 4)),
        num_layers=source.choice((64, 128)),
        tokens=4096,
        all_to_all_share=share,
    )


def thin_layers(source: random.Random) -> Configuration:
    """Narrow layers over 10 Gb/s: a stage of few of them computes for less time than its activation travels.

    Batches are long, so that gathering parameters hides; activations are recomputed and small.
    """
    layers, hidden = source.choice((48, 64, 96)), source.choice((1024, 1536, 2048))
    number = 12.0 * layers * hidden**2
    return configuration(
        source,
        num_parameters=number,
        device_bytes=2 * number / source.uniform(MUCH, 2.0),
        world_size=source.choice((64, 128)),
        between="eth10",
        num_microbatches=256,
        num_layers=layers,
        hidden=hidden,
        tokens=2**18,
    )
