"""Lesson 76: collectives made of send and recv, on a mesh of queues beside gloo, and the bytes that each rank sends.

N threads of one process play the ranks; a queue leads from each to each. The same collectives run on N processes over
gloo, and the results must be equal. Everything sent through the mesh is counted, and set beside the formula of its
algorithm; T is the size of the full tensor in bytes:

    ring all-reduce        2T(N-1)/N           each rank sends N-1 chunks of T/N twice: first summed, then copied
    ring reduce-scatter     T(N-1)/N           the first half of that
    ring all-gather         T(N-1)/N           the second half; T is the gathered tensor
    tree all-reduce      <= T ceil(log2 N)     up a binomial tree to rank 0 and down again, the busiest rank
    tree broadcast       <= T ceil(log2 N)     down only

    python -m lessons collectives                                      four ranks
    python -m lessons collectives --world-size 3 --numel 1000          N does not divide the tensor
    python -m lessons collectives --impl ../homework/collectives.py    your mesh, your rings, or both

Sources: Patarasuk and Yuan 2009 (ring); Thakur, Rabenseifner and Gropp 2005 (trees).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from fixtures.world.outcome import RanksFailed
from impls.locate import ImplementationError, locate
from lessons.collectives_run import PRIMITIVES, Row, differing, observe
from lessons.progress import during
from lessons.ranks import came_to_no_end, ranks_of

MOST_RANKS, MOST_ELEMENTS = 8, 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--world-size", type=int, default=4, metavar="N", help="ranks, 2 to 8 (default 4)")
    parser.add_argument(
        "--numel", type=int, default=33_600, metavar="ELEMENTS", help="floats of each rank's tensor (default 33600)"
    )
    parser.add_argument("--impl", default="reference", metavar="NAME", help="whose mesh and rings: a name or a path")


def run(options: argparse.Namespace) -> int:
    """Print the table; 0 when results and bytes are as they should be, 1 when not, 2 for options of no use."""
    if trouble := _unusable(options):
        print(trouble, file=sys.stderr)
        return 2
    try:
        with ranks_of(options.impl) as on_ranks:
            rows = []
            for primitive in PRIMITIVES:
                with during(primitive.told):
                    rows.append(observe(on_ranks, primitive.name, options.world_size, options.numel))
    except RanksFailed as failed:
        print(came_to_no_end(failed), file=sys.stderr)
        return 1
    print("\n".join(told(rows)))
    wrong = [fault for row in rows for fault in faults(row)]
    print("\n" + "\n".join(wrong or ["Results and bytes are as they should be."]))
    return 1 if wrong else 0


def _unusable(options: argparse.Namespace) -> str:
    if not 2 <= options.world_size <= MOST_RANKS:
        return f"--world-size {options.world_size}: a mesh needs 2 ranks at least, here {MOST_RANKS} at most"
    if not 1 <= options.numel <= MOST_ELEMENTS:
        return f"--numel {options.numel}: give a number of elements from 1 to {MOST_ELEMENTS:,}"
    try:
        locate(options.impl)
    except ImplementationError as error:
        return str(error)
    return ""


def told(rows: Sequence[Row]) -> Iterator[str]:
    """The table, line by line."""
    first = rows[0]
    yield (
        f"N = {first.world_size} ranks, {first.numel:,} floats on each: {first.numel * 4:,} bytes; "
        "T is as much, and N times that for the all-gather"
    )
    yield ""
    yield f"{'':<20} {'as gloo':<8} {'formula':>18} {'bytes':>12}   sent by each rank"
    for row in rows:
        yield f"{row.primitive.told:<20} {_figures(row)}"
    yield ""
    yield f"The mesh is {_whose([row.own_mesh for row in rows if not row.skipped])}."


def _figures(row: Row) -> str:
    if row.skipped:
        return row.skipped
    same = "-" if row.trouble else "no" if differing(row) else "yes"
    on_one = row.primitive.on_one(row.world_size, row.numel)
    sent = "  ".join(f"{num_bytes:,}" for num_bytes in row.sent_bytes)
    note = "" if row.own_function else "   (the reference's)"
    return f"{same:<8} {row.primitive.formula:>18} {on_one:>12,.10g}   {sent}{note}"


def _whose(own: Sequence[bool]) -> str:
    return "the implementation's" if any(own) else "the reference's, as the implementation has none"


def faults(row: Row) -> Iterator[str]:
    """What is wrong with one primitive: it did not come back, gave something else than gloo, or sent other bytes."""
    name = row.primitive.told
    if row.skipped:
        return
    if row.trouble:
        yield f"{name} on the mesh of queues came to no end: {row.trouble}. See: pytest --claim=collectives.queue-mesh"
        return
    if (where := differing(row)) is not None:
        rank, element = where
        yield (
            f"{name}: the mesh of queues and gloo differ on rank {rank} from element {element} on. "
            "See: pytest --claim='collectives.values.*'"
        )
    if fault := _fault_in_bytes(row):
        yield f"{name}: {fault}. See: pytest --claim='collectives.*.bytes'"


def _fault_in_bytes(row: Row) -> str:
    """Each rank of a ring sends what the formula says, all together where N does not divide the tensor."""
    on_one, total = (figure(row.world_size, row.numel) for figure in (row.primitive.on_one, row.primitive.total))
    sent, formula = list(row.sent_bytes), row.primitive.formula
    if row.primitive.is_tree:
        if max(sent) > on_one:
            return f"rank {sent.index(max(sent))} sent {max(sent):,} bytes, more than T ceil(log2 N) = {on_one:,}"
        return f"all ranks together sent {sum(sent):,} bytes, less than {total:,}" if sum(sent) < total else ""
    if row.numel % row.world_size == 0 or row.primitive.gathers:
        odd = next((rank for rank, num_bytes in enumerate(sent) if num_bytes != on_one), None)
        return "" if odd is None else f"rank {odd} sent {sent[odd]:,} bytes, not {formula} = {on_one:,.10g}"
    return (
        "" if sum(sent) == total else f"all ranks together sent {sum(sent):,} bytes, not N times {formula} = {total:,}"
    )
