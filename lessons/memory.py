"""What each rank has to hold, before the first activation, and which stage of ZeRO makes it fit.

Training with Adam keeps parameters, gradients and the optimizer's state. Plain data parallelism (ddp) keeps all of it
on every rank. ZeRO-1 shards the optimizer's state over the N ranks, ZeRO-2 gradients as well, ZeRO-3 (FSDP) parameters
too. Figures in print differ because they count differently, so each table is in one convention:

    mixed, FP32 master   16-bit parameters and gradients, FP32 copies of the parameters, two FP32 moments: 16 bytes
    mixed, no master     the same without the copies: 12 bytes
    all FP32             everything in 4 bytes: 16 bytes, as many as mixed precision with its master copy

For example, 70 billion parameters on 8 ranks under ZeRO-3 are 105 GB each without a master copy and 140 GB with one:

    python -m lessons memory --params 70B --world-size 8 --device-memory 80GB

All figures are closed forms (impls/reference/memory.py) of what is held between steps. Activations, the layers that
ZeRO-3 has gathered at the moment, buckets and padding come on top; activation checkpointing shrinks the first of these
and nothing in the tables. Source: Rajbhandari et al. 2020 (ZeRO), sections 3.1 and 5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction

from impls.reference.memory import (
    ACCOUNTINGS,
    Accounting,
    Stage,
    bytes_per_parameter,
    fits,
    saving,
    smallest_world_size,
)
from impls.words import number_of
from lessons import quantities

GB = 10**9
SHARDED = {
    Stage.DDP: "nothing",
    Stage.OPTIMIZER: "optimizer",
    Stage.GRADIENTS: "+ gradients",
    Stage.PARAMETERS: "+ parameters",
}
LEGEND = (
    "saving     against ddp in the same convention",
    "fits from  the fewest ranks on which it fits; never, where what stays whole on every rank is too much already",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--params", required=True, metavar="P", help="parameters of the model, such as 13e9 or 7B")
    parser.add_argument("--world-size", default="8", metavar="N", help="ranks (default 8)")
    parser.add_argument(
        "--device-memory", default="80GB", metavar="BYTES", help="of each rank's device, such as 80e9 or 24GiB (80GB)"
    )


def run(options: argparse.Namespace) -> int:
    """Print a table for each convention; 0, or 2 for numbers of no use."""
    try:
        params = quantities.read("--params", quantities.parameters, options.params)
        world_size = quantities.read("--world-size", quantities.count, options.world_size)
        device_bytes = quantities.read("--device-memory", quantities.num_bytes, options.device_memory)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(told(params, world_size, device_bytes)))
    return 0


def told(params: int, world_size: int, device_bytes: int) -> list[str]:
    """The whole text, line by line."""
    lines = [
        f"{number_of(params, 'parameter')} under Adam, {number_of(world_size, 'rank')}, devices of "
        f"{device_bytes / GB:,.6g} GB (1 GB = 1e9 bytes).",
        "GB on each rank between steps; activations come on top, with or without checkpointing.",
    ]
    for accounting in ACCOUNTINGS:
        lines += ["", _heading(accounting), "", *table(params, world_size, device_bytes, accounting)]
    return [*lines, "", *LEGEND]


def table(params: int, world_size: int, device_bytes: int, accounting: Accounting) -> list[str]:
    """A row for each stage."""
    device = f"of {device_bytes / GB:,.6g} GB"
    head = [
        "stage",
        "shards",
        "parameters",
        "gradients",
        "optimizer",
        "total",
        "bytes/P",
        "saving",
        device,
        "fits from",
    ]
    rows = [head, *(_row(params, stage, world_size, device_bytes, accounting) for stage in Stage)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  " + _aligned(row, widths) for row in rows]


def _row(params: int, stage: Stage, world_size: int, device_bytes: int, accounting: Accounting) -> list[str]:
    held = bytes_per_parameter(stage, world_size, accounting)
    room = device_bytes - params * held.total
    smallest = smallest_world_size(params, stage, device_bytes, accounting)
    return [
        stage,
        SHARDED[stage],
        *(_amount(params * kind) for kind in (held.parameters, held.gradients, held.optimizer, held.total)),
        f"{float(held.total):.3f}",
        f"{float(saving(stage, world_size, accounting)):,.1f}x",
        f"{_amount(abs(room))} {'left' if fits(params, stage, world_size, device_bytes, accounting) else 'over'}",
        "never" if smallest is None else f"N = {smallest:,}",
    ]


def _heading(accounting: Accounting) -> str:
    kinds = {
        "parameter": accounting.parameter,
        "gradient": accounting.gradient,
        "master": accounting.master,
        "moments": accounting.moments,
    }
    terms = " + ".join(f"{size} {kind}" for kind, size in kinds.items() if size)
    return f"{accounting.name}: {terms} = {accounting.total} bytes per parameter"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    cells = [
        text.ljust(width) if column < 2 else text.rjust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _amount(num_bytes: Fraction | int) -> str:
    """In GB, with a decimal or two; the first two digits of what is less than that."""
    gigabytes = float(num_bytes / GB)
    return f"{gigabytes:,.1f}" if gigabytes >= 10 else f"{gigabytes:.2f}" if gigabytes >= 0.1 else f"{gigabytes:.2g}"
