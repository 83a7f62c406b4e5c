"""Lesson 78: shard the optimizer's state, and nothing about the training changes but the memory.

Some steps of Adam are run three times: in one process, with data parallelism, and with ZeRO-1, each rank on rows of its
own. The losses must agree; that is the first table. The second counts the bytes that one rank holds after a step, for a
bfloat16 model: with an FP32 master copy and Adam's two moments the optimizer has 12 bytes per parameter, which N ranks
share, and 4P + 12P/N are left on each.

    python -m lessons zero                                four ranks, twenty steps
    python -m lessons zero --world-size 8 --plot zero.svg the picture as well
    python -m lessons zero --impl ../homework/zero.py     yours: its ShardedOptimizer

Source: Rajbhandari et al. 2020 (ZeRO), section 5.1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fixtures.world.outcome import Outcomes, RanksFailed
from fixtures.world.pool import WorldPool
from fixtures.world.server import Server
from impls.locate import ImplementationError, locate
from impls.words import number_of
from lessons.paths import PICTURES, trouble
from lessons.ranks import came_to_no_end
from lessons.zero_training import STEP_COUNTER_BYTES, Curves, Held, curves, held

SHOWN_STEPS = 10  # rows of the first table at most
BARS = "▁▂▃▄▅▆▇█"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--world-size", type=int, default=4, metavar="N", help="ranks that train, 2 to 8 (default 4)")
    parser.add_argument("--steps", type=int, default=20, metavar="STEPS", help="training steps (default 20)")
    parser.add_argument("--impl", default="reference", metavar="NAME", help="whose ZeRO-1: a name or a path")
    parser.add_argument(
        "--plot", type=Path, metavar="PATH", help="draw both tables as a picture as well (.svg or .png)"
    )


def run(options: argparse.Namespace) -> int:
    """Print both tables; 0 when losses and bytes are as they should be, 1 when not, 2 for options of no use."""
    if reason := _unusable(options):
        print(reason, file=sys.stderr)
        return 2
    try:
        seen, table = _observe(options)
    except RanksFailed as failed:
        print(came_to_no_end(failed), file=sys.stderr)
        return 1
    print("\n".join([*told_curves(seen), "", *told_memory(table)]))
    if options.plot:
        from lessons.zero_picture import draw

        draw(seen, table, options.plot)
        print(f"\nThe picture is in {options.plot}")
    faults = [*faults_in_curves(seen), *faults_in_memory(table)]
    print("\n" + "\n".join(faults or ["Losses and memory are as they should be."]))
    return 1 if faults else 0


def _unusable(options: argparse.Namespace) -> str:
    if not 2 <= options.world_size <= 8:
        return f"--world-size {options.world_size}: sharding needs 2 ranks at least, and this lesson runs 8 at most"
    try:
        locate(options.impl)
    except ImplementationError as error:
        return str(error)
    if options.steps < 1:
        return f"--steps {options.steps}: at least one step is needed to see a loss"
    return trouble("--plot", options.plot, PICTURES) if options.plot else ""


def _observe(options: argparse.Namespace) -> tuple[Curves, list[Held]]:
    with Server.at_hand() as server, WorldPool(server) as pool:

        def on_ranks(program: Callable[..., Any], world_size: int, *args: Any) -> Outcomes:
            return pool.world(world_size, impl=options.impl).run(program, *args, deadline_s=60.0)

        seen = curves(on_ranks, options.world_size, options.steps)
        sizes = sorted({1, 2, options.world_size})
        return seen, [row for size in sizes for row in held(on_ranks, size)]


# -- the tables --------------------------------------------------------------------------------------------------------


def told_curves(seen: Curves) -> Iterator[str]:
    """The losses as text: a line for each step shown, the curve, and how far apart they are."""
    yield f"Adam on {number_of(seen.world_size, 'rank')}, mean squared error on the global batch"
    yield ""
    yield f"{'step':>5} {'one process':>14} {'data parallel':>14} {'ZeRO-1':>14}"
    count = len(seen.alone)
    for step in sorted({round(i * (count - 1) / max(1, SHOWN_STEPS - 1)) for i in range(SHOWN_STEPS)}):
        yield f"{step + 1:>5} {seen.alone[step]:>14.6f} {seen.data_parallel[step]:>14.6f} {seen.sharded[step]:>14.6f}"
    yield ""
    yield f"loss {_sparkline(seen.sharded)} from {seen.sharded[0]:.3f} to {seen.sharded[-1]:.3f}"
    yield (
        f"ZeRO-1 and one process differ by {seen.difference:.1e} at most, the bound for rounding is {seen.bound:.1e}"
    )


def faults_in_curves(seen: Curves) -> Iterator[str]:
    """What is wrong with the losses."""
    if not seen.difference <= seen.bound:  # also NaN
        yield (
            f"ZeRO-1 does not train like one process: the losses differ by {seen.difference:.3g}, where rounding "
            f"explains {seen.bound:.1e}. See: pytest --claim=zero.equivalence"
        )
    if not seen.alone[-1] < seen.alone[0] and len(seen.alone) > 5:
        yield f"nothing was learnt: the loss went from {seen.alone[0]:.3g} to {seen.alone[-1]:.3g}"


def told_memory(table: Sequence[Held]) -> Iterator[str]:
    """The bytes per parameter on the rank that holds most, beside 4 + K/N."""
    share = optimizer_share(table)
    yield f"bytes per parameter on one rank after a step, bfloat16 model of P = {table[0].num_parameters:,} parameters"
    yield ""
    yield (
        f"{'N':>3} {'parameters':>11} {'gradients':>10} {'optimizer':>10} {'total':>8} "
        f"{f'4 + {share}/N':>10} {'saved':>7}   beside it"
    )
    fullest = _fullest(table)
    for row in fullest:
        per = row.num_parameters
        yield (
            f"{row.world_size:>3} {row.parameters / per:>11.3f} {row.gradients / per:>10.3f} "
            f"{row.optimizer / per:>10.3f} {row.total / per:>8.3f} {4 + share / row.world_size:>10.3f} "
            f"{1 - row.total / fullest[0].total:>7.1%}   {_extras(row, share)}"
        )
    yield ""
    yield "N = 1 shards nothing: it is what every rank of plain data parallelism holds"


def faults_in_memory(table: Sequence[Held]) -> Iterator[str]:
    """What is wrong with the bytes: each rank is held to 4P + KP/N, with room for what is named beside the table."""
    share = optimizer_share(table)
    for row in table:
        limit = expected_bytes(row, share) + allowed_beside(row, share)
        if row.total > limit:
            yield (
                f"rank {row.rank} of {row.world_size} holds {row.total:,} bytes, where 4P + {share}P/N with its "
                f"extras is {limit:,}. See: pytest --claim=zero.memory.1"
            )


def optimizer_share(table: Sequence[Held]) -> int:
    """K: bytes of optimizer state per parameter, read off one rank alone. 12 with an FP32 master copy, 8 without."""
    first = min(table, key=lambda row: row.world_size)
    return round((first.optimizer + first.other) / first.num_parameters)


def expected_bytes(row: Held, share: int) -> int:
    """4P + KP/N."""
    return 4 * row.num_parameters + -(-share * row.num_parameters // row.world_size)


def allowed_beside(row: Held, share: int) -> int:
    """Padding below N elements for each parameter at the most, and a step counter for each tensor that is updated."""
    padding = row.num_tensors * (row.world_size - 1) * (4 + share)
    return padding + 2 * STEP_COUNTER_BYTES * row.num_tensors


def _extras(row: Held, share: int) -> str:
    beside = row.total - expected_bytes(row, share)
    return f"{beside:+,} bytes of padding and step counters"


def _fullest(table: Sequence[Held]) -> list[Held]:
    sizes = sorted({row.world_size for row in table})
    return [max((row for row in table if row.world_size == size), key=lambda row: row.total) for size in sizes]


def _sparkline(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return "".join(BARS[round((value - low) / ((high - low) or 1.0) * (len(BARS) - 1))] for value in values)
