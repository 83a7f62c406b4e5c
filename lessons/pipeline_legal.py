"""Which numbers of ranks and of microbatches a schedule allows, and the nearest ones that it does."""

from __future__ import annotations

from collections.abc import Iterator

from impls.reference.pipeline.names import named


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
