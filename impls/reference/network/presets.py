"""Links that can be bought, one direction of one device, with where the figures are from.

Bandwidths are of the vendors' data sheets; what a collective reaches is somewhat less. Latencies are those of one step
of a collective as software sees it, which is longer than that of the wire.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from impls.reference.network.links import Cluster, Link

US = 1e-6
GB = 1e9
# What NCCL's own model of collectives reckons for a step of a ring, in microseconds, protocol Simple.
NCCL_LATENCIES = "latency: NVIDIA NCCL, src/graph/tuning.cc (b6475625), table hwLat, ring, protocol Simple"
# Rumble et al., "It's time for low latency" (HotOS 2011): round trips under 100 us were out of reach for kernels' TCP.
TCP_LATENCY = "latency: half of the 100 us round trip of kernel TCP in Rumble et al. 2011, 'It's time for low latency'"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A link by name. `most_ranks`: as many as it can connect, None for any number."""

    link: Link
    inside: bool  # of a node; else between nodes
    source: str
    most_ranks: int | None = None


def _link(latency_us: float, gigabytes: float) -> Link:
    return Link(latency_s=latency_us * US, bandwidth=gigabytes * GB)


PRESETS: Mapping[str, Preset] = {
    "nvlink5": Preset(
        link=_link(3.4, 900),
        inside=True,
        most_ranks=8,
        source=f"NVIDIA Blackwell architecture brief: 1.8 TB/s per GPU, both directions; {NCCL_LATENCIES}",
    ),
    "nvlink4": Preset(
        link=_link(3.4, 450),
        inside=True,
        most_ranks=8,
        source=f"NVIDIA H100 data sheet: 900 GB/s per GPU, both directions; {NCCL_LATENCIES}",
    ),
    "pcie4": Preset(
        link=_link(5.7, 32),
        inside=True,
        most_ranks=8,
        source=f"PCI Express 4.0, 16 lanes of 16 GT/s: 32 GB/s each way; {NCCL_LATENCIES}",
    ),
    "ib-ndr": Preset(
        link=_link(14.0, 50),
        inside=False,
        source=f"NVIDIA ConnectX-7 data sheet: NDR InfiniBand, 400 Gb/s; {NCCL_LATENCIES}",
    ),
    "ib-hdr": Preset(
        link=_link(14.0, 25),
        inside=False,
        source=f"NVIDIA ConnectX-6 data sheet: HDR InfiniBand, 200 Gb/s; {NCCL_LATENCIES}",
    ),
    "eth100": Preset(
        link=_link(14.0, 12.5),
        inside=False,
        source=f"NVIDIA ConnectX-5 data sheet: 100 Gb/s Ethernet with RoCE; {NCCL_LATENCIES}",
    ),
    "eth25": Preset(link=_link(50, 3.125), inside=False, source=f"IEEE 802.3by: 25 Gb/s; {TCP_LATENCY}"),
    "eth10": Preset(link=_link(50, 1.25), inside=False, source=f"IEEE 802.3ae: 10 Gb/s; {TCP_LATENCY}"),
}


def cluster(inside: str = "nvlink4", between: str = "ib-ndr", ranks_per_node: int = 8) -> Cluster:
    """Two presets as a cluster. ValueError for a name that there is not."""
    for name in (inside, between):
        if name not in PRESETS:
            raise ValueError(f"there is no link {name!r}; choose one of {', '.join(PRESETS)}")
    return Cluster(inside=PRESETS[inside].link, between=PRESETS[between].link, ranks_per_node=ranks_per_node)
