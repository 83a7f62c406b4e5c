"""The reference ring against gloo's own all-reduce, and one property-test example against a bare ring."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import programs
from benchmarks.measure import Ratio, benchmark, interleaved, seconds
from conformance.collectives import programs as checks
from conformance.collectives.values import judge_sums
from conformance.judge import Judge
from fixtures.draws import Case
from fixtures.world.per_rank import PerRank
from fixtures.world.server import Server
from fixtures.world.world import World

RANKS = 4
FLOATS_PER_MIB = 2**20 // 4


@benchmark("ring")
def ring_bandwidth() -> Iterator[Ratio]:
    """Bandwidth of the reference ring over the gloo mesh against ``dist.all_reduce``, 4 ranks, untraced."""
    with Server.start() as server, World(RANKS, server, trace=False) as world:
        for mib, target in ((1, ""), (16, ">= 0.7"), (64, ">= 0.7")):
            numel, number = mib * FLOATS_PER_MIB, max(1, 16 // mib)

            def measured(program: object, numel: int = numel, number: int = number) -> float:
                return float(world.run(program, numel, number).values[0])  # type: ignore[arg-type]

            ours, theirs = interleaved(lambda m=measured: m(programs.ring), lambda m=measured: m(programs.library))
            yield Ratio(
                name=f"ring.bandwidth-{mib}MiB",
                value=theirs / ours,
                unit="of bandwidth",
                against=f"dist.all_reduce ({theirs * 1e3:.1f} ms)",
                target=target,
            )


@benchmark("example")
def one_example() -> Iterator[Ratio]:
    """One example of the ring's value claim, run and judged, against a bare untraced ring; 4 ranks, 1,000 floats."""
    case = Case(world_size=RANKS, shape=(1000,))
    with (
        Server.start() as server,
        World(RANKS, server, impl="reference") as world,
        World(RANKS, server, trace=False) as plain,
    ):

        def example() -> None:
            outcomes = world.run(checks.once, "ring_allreduce", PerRank(case.inputs()))
            judge_sums(Judge(), case, [value["result"] for value in outcomes.values], outcomes)

        ours, theirs = interleaved(
            lambda: seconds(example, repeat=1, number=30),
            lambda: seconds(lambda: plain.run(programs.bare_ring, 1000), repeat=1, number=30),
        )
    yield Ratio(
        name="example.ring",
        value=ours / theirs,
        unit="times the time",
        against=f"a bare isend/irecv ring in a warm world ({theirs * 1e3:.1f} ms)",
        target="<= 2",
    )
