"""Lesson 79's tables: all schedules at one size, and the bubble by numbers of ranks and of microbatches."""

from __future__ import annotations

from collections.abc import Iterator

from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.counts import copies, paired_share, peak_activations
from impls.reference.pipeline.names import SCHEDULES, named
from impls.reference.pipeline.simulate import simulate
from impls.words import number_of
from lessons.pipeline_text import aligned, number, percent

CURVED = ("1f1b", "zb_h1", "dualpipe", "dualpipev")
CURVE_RANKS = (4, 8, 16, 64, 256, 1024)
CURVE_PER_RANK = (2, 4, 8)  # M / N


def compared(num_ranks: int, num_microbatches: int, num_chunks: int, figures: Costs) -> Iterator[str]:
    """A row for each of the reference's schedules."""
    sizes = f"{number_of(num_ranks, 'rank')}, {number_of(num_microbatches, 'microbatch')}"
    yield f"the reference's schedules on {sizes}, a barrier at both ends"
    yield "bubble: share of the total time; peak activations: of the rank that holds most"
    yield ""
    rows, refused = [["schedule", "makespan", "idle", "bubble", "peak activations", "paired", "copies"]], []
    for name in SCHEDULES:
        try:
            schedule = named(name, num_ranks, num_microbatches, num_chunks)
        except ValueError as error:
            refused.append(str(error))
            continue
        timeline = simulate(schedule, figures.of_rank(schedule))
        paired = sum(paired_share(schedule)) / num_ranks
        idle = sum(timeline.bubble()) / num_ranks
        held = number(max(peak_activations(schedule)))
        shares = [percent(timeline.bubble_share()), held, percent(paired), str(max(copies(schedule)))]
        rows.append([name, number(timeline.makespan), number(idle), *shares])
    yield from aligned(rows)
    if refused:
        yield from ["", *refused]


def curve(figures: Costs) -> Iterator[str]:
    """The share of total time that is idle: it falls with M / N, and hardly depends on N alone."""
    yield "bubble as a share of the total time, simulated"
    yield ""
    rows = [["N", "M", *CURVED]]
    for num_ranks in CURVE_RANKS:
        for per_rank in CURVE_PER_RANK:
            rows.append([str(num_ranks), str(per_rank * num_ranks)])
            for name in CURVED:
                schedule = SCHEDULES[name](num_ranks, per_rank * num_ranks)
                rows[-1].append(percent(simulate(schedule, figures.of_rank(schedule)).bubble_share()))
    yield from aligned(rows)
