"""From which size on a ring is faster than a tree, and by which links; and sizes for which gathers must be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.collectives import programs
from conformance.collectives.costs import ITEM_BYTES, count, patterns, shifts
from conformance.collectives.timing import MB, Timed, crossover, curve, own_crossover, timed
from conformance.verdict import Tier, Witness
from fixtures.world.outcome import Outcomes
from fixtures.world.per_rank import PerRank
from impls.reference.network.presets import PRESETS
from impls.words import number_of

PRINTED_MB = 1.0  # on the cheatsheet
SMALLEST_MB, LARGEST_MB = 0.05, 30.0
ROUNDING = 1.02  # of "about", and of the chunks of a ring
MODELLED = (4, 8, 16, 32, 64, 128, 256)  # in between, a tree one level deeper halves the size at first


def _table(world_size: int, size: float) -> dict[str, float]:
    """MB by link for a crossover of so many latency x bandwidth, of the links that can connect so many ranks."""
    return {
        name: size * preset.link.latency_s * preset.link.bandwidth / MB
        for name, preset in PRESETS.items()
        if preset.most_ranks is None or world_size <= preset.most_ranks
    }


def _judge_sizes(judge: Judge, own: Timed, size: float, what: str) -> None:
    table = _table(own.world_size, size)
    for name, megabytes in table.items():
        if not SMALLEST_MB / ROUNDING <= megabytes <= LARGEST_MB * ROUNDING:
            judge.violated(
                f"{own.name} on {number_of(own.world_size, 'rank')}: {what} {megabytes:.3g} MB over {name}",
                expected=f"a crossover from {SMALLEST_MB} to {LARGEST_MB:g} MB",
                observed=f"{megabytes:.3g} MB",
                witness=Witness.SIMULATION,
            )
    by_n = {world_size: _table(world_size, crossover(world_size)) for world_size in MODELLED}
    everything = [megabytes for found in by_n.values() for megabytes in found.values()]
    judge.holds(
        expected=f"from {SMALLEST_MB} to {LARGEST_MB:g} MB; {PRINTED_MB:g} MB is printed",
        observed=", ".join(f"{name} {megabytes:.2g}" for name, megabytes in table.items()) + " MB",
        witness=Witness.SIMULATION,
        message=f"its messages on {number_of(own.world_size, 'rank')}, {what} {size:.2f} latencies x bandwidth; "
        "for N from 4 to 256 "
        f"the model has {min(everything):.2g} to {max(everything):.2g} MB",
        data={"crossover_mb": table, "model_mb": {str(n): found for n, found in by_n.items()}} | curve(own),
    )


def _ring(subject: Subject, judge: Judge, world_size: int) -> None:
    own = timed(judge, count(subject, judge, "ring_allreduce", world_size))
    size = own_crossover(own)
    if size is None:
        judge.violated(
            f"on {number_of(world_size, 'rank')} there is no size from which on ring_allreduce is faster than a tree: "
            f"{own.latencies(0):.0f} latencies, and {own.latencies(1e6) / 1e6:.2f} T/bandwidth",
            expected=f"{2 * (world_size - 1)} latencies and {2 * (world_size - 1) / world_size:.2f} T/bandwidth",
            observed="no crossover",
            witness=Witness.SIMULATION,
        )
    _judge_sizes(judge, own, size, "faster than a tree from")


def _tree(subject: Subject, judge: Judge, world_size: int) -> None:
    own = timed(judge, count(subject, judge, "tree_allreduce", world_size))
    size = own_crossover(own)
    if size is None and own.latencies(1.0) < 2 * (world_size - 1):
        judge.not_provided(
            "its messages become smaller on the way, so that no ring is ever faster: not the binomial tree of the claim"
        )
    if size is None:
        judge.violated(
            f"on {number_of(world_size, 'rank')} there is no size at which tree_allreduce is faster than a ring: "
            f"{own.latencies(0):.0f} latencies, and {own.latencies(1e6) / 1e6:.2f} T/bandwidth",
            expected=f"fewer than the ring's 2(N-1) = {2 * (world_size - 1)} latencies",
            observed="no crossover",
            witness=Witness.SIMULATION,
        )
    _judge_sizes(judge, own, size, "faster than a ring up to")


@claim("collectives.ring.message-size", provides=["ring_allreduce"])
def test_a_ring_wins_from_a_size_on_that_depends_on_the_link(subject: Subject, judge: Judge) -> None:
    _ring(subject, judge, 4)


@claim("collectives.ring.message-size", provides=["ring_allreduce"], tier=Tier.EXOTIC)
def test_eight_ranks_move_the_size_up(subject: Subject, judge: Judge) -> None:
    _ring(subject, judge, 8)


@claim("collectives.tree.message-size", provides=["tree_allreduce"])
def test_a_tree_wins_up_to_a_size_that_depends_on_the_link(subject: Subject, judge: Judge) -> None:
    _tree(subject, judge, 4)


@claim("collectives.tree.message-size", provides=["tree_allreduce"], tier=Tier.EXOTIC)
def test_a_tree_wins_longer_on_eight_ranks(subject: Subject, judge: Judge) -> None:
    _tree(subject, judge, 8)


# -- sizes for which a result must be right ----------------------------------------------------------------------------

LARGEST_BYTES = 64 * 2**20
GATHERS = ("ring_allgather", "all_gather")
SCATTERS = ("ring_reduce_scatter", "reduce_scatter")


def _sizes(world_size: int) -> list[int]:
    """Elements: none, one, fewer than ranks, one more, an odd number in the middle, and just above a power of two."""
    return [0, 1, world_size - 1, world_size + 1, 4099, 2**18 + 1]


def _judge_gather(subject: Subject, judge: Judge, name: str, world_size: int, numel: int) -> None:
    outcomes = subject.run(programs.digested, world_size, name, numel, PerRank(shifts(world_size)))
    expected = torch.cat(patterns(numel, world_size))
    for rank, found in enumerate(outcomes.values):
        _judge_pieces(
            judge, f"rank {rank} of {world_size}, {number_of(numel, 'element')} from each", found, expected, outcomes
        )
    _told(judge, numel * world_size, world_size, "the tensors of all ranks")


def _judge_scatter(subject: Subject, judge: Judge, name: str, world_size: int, numel: int) -> None:
    outcomes = subject.run(programs.digested, world_size, name, numel, PerRank(shifts(world_size)))
    total = sum(patterns(numel, world_size), torch.zeros(numel))
    parts = [found["numel"] for found in outcomes.values]
    if not 0 <= sum(parts) - numel < world_size:
        judge.violated(
            f"{number_of(numel, 'element')} on {number_of(world_size, 'rank')}: the parts do not add up to them",
            expected=f"{number_of(numel, 'element')}, or up to {world_size - 1} more as padding",
            observed=f"parts of {parts}",
            outcomes=outcomes,
        )
    padded = torch.cat([total, torch.zeros(sum(parts) - numel)])
    for rank, (found, part) in enumerate(zip(outcomes.values, torch.split(padded, parts), strict=True)):
        _judge_pieces(
            judge, f"rank {rank} of {world_size}, part {rank} of {number_of(numel, 'element')}", found, part, outcomes
        )
    _told(judge, numel, world_size, "each rank's part of the sum")


def _judge_pieces(
    judge: Judge, what: str, found: Mapping[str, Any], expected: torch.Tensor, outcomes: Outcomes
) -> None:
    """The digests of the result, a MiB each, against those of what it should be."""
    if found["numel"] != expected.numel():
        judge.violated(
            f"{what}: the result has {number_of(found['numel'], 'element')}",
            expected=f"{number_of(expected.numel(), 'element')}",
            observed=f"{found['numel']:,}",
            outcomes=outcomes,
        )
    wanted = programs.digests(expected)
    wrong = [piece for piece, (mine, its) in enumerate(zip(found["digests"], wanted, strict=True)) if mine != its]
    if wrong:
        judge.violated(
            f"{what}: {len(wrong)} of {len(wanted)} MiB of the result are wrong, the first is number {wrong[0]}",
            expected="every MiB as in the computation of one process, bit for bit",
            observed=f"{len(wrong)} wrong",
            outcomes=outcomes,
        )


def _told(judge: Judge, numel: int, world_size: int, what: str) -> None:
    size = numel * ITEM_BYTES
    judge.holds(
        expected="right from 0 B to 64 MiB, bit for bit",
        observed=f"right at {size:,} B",
        witness=Witness.VALUE,
        message=f"{what}, on {number_of(world_size, 'rank')} and others",
    )


@claim("collectives.allgather.message-size", provides=["|".join(GATHERS)])
@pytest.mark.parametrize("name", GATHERS)
def test_a_gather_is_right_from_nothing_to_64_mib(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    for numel in _sizes(3):
        _judge_gather(subject, judge, name, 3, numel)
    _judge_gather(subject, judge, name, 2, LARGEST_BYTES // ITEM_BYTES // 2)


@claim("collectives.reduce-scatter.message-size", provides=["|".join(SCATTERS)])
@pytest.mark.parametrize("name", SCATTERS)
def test_a_reduce_scatter_is_right_from_nothing_to_64_mib(subject: Subject, judge: Judge, name: str) -> None:
    subject.require(name)
    for numel in _sizes(3):
        _judge_scatter(subject, judge, name, 3, numel)
    _judge_scatter(subject, judge, name, 2, LARGEST_BYTES // ITEM_BYTES)
