"""What there is no use in asking for: sizes that a schedule does not allow, options that it has no place for."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from impls.reference.pipeline.names import named

PAIRED = ("dualpipe", "dualpipev")  # the schedules with overlapped pairs
CHUNKED = "interleaved_1f1b"  # the one whose ranks have as many stages as one likes
IN_NO_TABLE = ("execute", "svg", "trace", "impl")
FIXED_IN_CURVE = ("stages", "microbatches", "chunks")


class Illegal(ValueError):
    """A schedule that there cannot be; says the rule and the nearest numbers that it allows."""


def require(name: str, num_stages: int, num_microbatches: int, num_chunks: int) -> None:
    """`Illegal` unless the schedule allows these numbers."""
    rule = _against(name, num_stages, num_microbatches, num_chunks)
    if rule:
        near = next(_nearest(name, num_stages, num_microbatches, num_chunks), None)
        way_out = f" The nearest that will do: --stages {near[0]} --microbatches {near[1]}." if near else ""
        raise Illegal(f"{rule}.{way_out}")


def _against(name: str, num_stages: int, num_microbatches: int, num_chunks: int) -> str:
    """Why not; nothing where it is allowed."""
    try:
        named(name, num_stages, num_microbatches, num_chunks)
    except ValueError as error:
        return str(error)
    return ""


def _nearest(name: str, num_stages: int, num_microbatches: int, num_chunks: int) -> Iterator[tuple[int, int]]:
    """As few changes as possible: other microbatches first, then one rank more or less."""
    for stages in (num_stages, num_stages + 1, num_stages - 1):
        for away in range(4 * stages + 1):
            for microbatches in dict.fromkeys((num_microbatches + away, num_microbatches - away)):
                if min(stages, microbatches) >= 1 and not _against(name, stages, microbatches, num_chunks):
                    yield stages, microbatches


def out_of_place(options: argparse.Namespace) -> str:
    """The sentence for the first option of lesson 79 that would change nothing; empty where there is none."""
    if options.compare and options.curve:
        return "--compare --curve: one table at a time; leave one of them out"
    table = "--compare" if options.compare else "--curve" if options.curve else ""
    given = {name for name in (*IN_NO_TABLE, *FIXED_IN_CURVE, "pair") if getattr(options, name) not in (None, False)}
    if is_ours := options.impl == "reference":
        given.discard("impl")
    for name in IN_NO_TABLE if table else ():
        if name in given:
            return f"{table} --{name}: the table is of the reference's schedules, simulated; leave --{name} out"
    for name in FIXED_IN_CURVE if options.curve else ():
        if name in given:
            return f"--curve --{name}: the curve has sizes of its own; leave --{name} out, or take --compare"
    if "chunks" in given and not table and options.schedule != CHUNKED:
        return f"--chunks {options.chunks}: {options.schedule} has no choice of them; only --schedule {CHUNKED} has"
    if "pair" in given and is_ours and not table and options.schedule not in PAIRED:  # another's may have pairs
        others = " and ".join(PAIRED)
        return f"--pair {options.pair}: {options.schedule} has no overlapped pairs; --schedule {others} have"
    return ""
