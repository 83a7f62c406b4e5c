"""From which size on a ring all-reduce is faster than a tree, by link and number of ranks.

A message of n bytes takes latency + n / bandwidth seconds. A ring all-reduce of T bytes over N ranks makes 2(N-1) steps
with messages of T/N, a binomial tree 2 ceil(log2 N) steps with messages of T. So the tree wins small tensors, for which
latency decides, and the ring large ones. Where they cross is no constant such as 1 MB: it grows with latency times
bandwidth and with N, and up to 3 ranks the ring is never slower. A table for links that can be bought, or for your own:

    python -m lessons network --latency 20us --bandwidth 3GB/s

Sources: Hockney 1994 for the model; Thakur, Rabenseifner and Gropp 2005, section 4, for the algorithms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping

from impls.reference.network.formulas import crossover_bytes, ring_time, tree_time
from impls.reference.network.links import Link
from impls.reference.network.presets import PRESETS
from lessons import quantities

RANKS = (2, 3, 4, 8, 16, 64, 256, 4096)
SIZES = (1_000, 100_000, 1_000_000, 10_000_000, 1_000_000_000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--latency", metavar="TIME", help="of a link of your own, such as 5us (with --bandwidth)")
    parser.add_argument("--bandwidth", metavar="RATE", help="of that link, such as 25GB/s, or 200Gb/s for bits")
    parser.add_argument("--world-size", default="8", metavar="N", help="ranks of the table by size (default 8)")


def run(options: argparse.Namespace) -> int:
    """Print the tables; 0, or 2 for an option of no use."""
    try:
        links = _links(options)
        world_size = quantities.read("--world-size", quantities.count, options.world_size)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join([*told_crossovers(links), "", *told_times(links, world_size), "", *told_sources(links)]))
    return 0


def _links(options: argparse.Namespace) -> Mapping[str, Link]:
    if (options.latency is None) != (options.bandwidth is None):
        raise ValueError("a link of your own needs both: --latency 5us --bandwidth 25GB/s")
    if options.latency is None:
        return {name: preset.link for name, preset in PRESETS.items()}
    return {
        "yours": Link(
            latency_s=quantities.read("--latency", quantities.seconds, options.latency),
            bandwidth=quantities.read("--bandwidth", quantities.bandwidth, options.bandwidth),
        )
    }


def told_crossovers(links: Mapping[str, Link]) -> Iterator[str]:
    """The size from which on the ring is faster, by link and N."""
    yield "MB above which the ring all-reduce is faster than the tree (the cheatsheet prints 1 MB)"
    yield ""
    yield f"{'link':<8} {'latency':>8} {'GB/s':>6}  " + " ".join(f"{f'N={n}':>8}" for n in RANKS)
    for name, link in links.items():
        most = PRESETS[name].most_ranks if name in PRESETS else None
        cells = [
            _megabytes(crossover_bytes(n, link.latency_s, link.bandwidth)) if most is None or n <= most else "-"
            for n in RANKS
        ]
        figures = f"{link.latency_s * 1e6:>5.3g} us {link.bandwidth / 1e9:>6.3g}"
        yield f"{name:<8} {figures}  " + " ".join(f"{cell:>8}" for cell in cells)


def told_times(links: Mapping[str, Link], world_size: int) -> Iterator[str]:
    """What both take by size, in microseconds."""
    yield f"ring / tree in microseconds on {world_size} rank{'s' if world_size > 1 else ''}; the faster one has a star"
    yield ""
    yield f"{'link':<8} " + " ".join(f"{_size(size):>21}" for size in SIZES)
    for name, link in links.items():
        cells = []
        for size in SIZES:
            ring = ring_time(size, world_size, link.latency_s, link.bandwidth) * 1e6
            tree = tree_time(size, world_size, link.latency_s, link.bandwidth) * 1e6
            cells.append(f"{ring:.4g}{'*' * (ring < tree)} / {tree:.4g}{'*' * (tree < ring)}")
        yield f"{name:<8} " + " ".join(f"{cell:>21}" for cell in cells)


def told_sources(links: Mapping[str, Link]) -> Iterator[str]:
    """Where the figures of the links are from."""
    for name in links:
        if name in PRESETS:
            yield f"{name:<8} {PRESETS[name].source}"


def _megabytes(num_bytes: float) -> str:
    return "always" if num_bytes == 0 else f"{num_bytes / 1e6:.3g}"


def _size(num_bytes: int) -> str:
    return f"{num_bytes // 10**6} MB" if num_bytes >= 10**6 else f"{num_bytes // 1000} kB"
