"""What the rig costs: a check in a warm world, a fresh world, an example, a traced operation."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from benchmarks import programs
from benchmarks.measure import Ratio, benchmark, interleaved, seconds
from fixtures.world.per_rank import PerRank
from fixtures.world.server import Server
from fixtures.world.world import World

RANKS = 4


def _spawned_rank(rank: int, rendezvous: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=RANKS)
    dist.barrier()
    os._exit(0)  # as fast an end as there is


def _spawn() -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        mp.spawn(_spawned_rank, args=(str(Path(folder) / "rendezvous"),), nprocs=RANKS)
        return time.perf_counter() - start


def _fresh(server: Server) -> None:
    with World(RANKS, server) as world:
        world.run(programs.nothing)


@benchmark("world")
def world_costs() -> Iterator[Ratio]:
    """A no-op check in a warm world against the usual spawn and against a fresh world from the fork server."""
    with Server.start() as server, World(RANKS, server) as world:
        world.run(programs.nothing)
        warm = seconds(lambda: world.run(programs.nothing), repeat=7, number=200)
        fresh = seconds(lambda: _fresh(server), repeat=5)
        spawned = seconds(_spawn, repeat=3)
    yield Ratio(name="world.warm", value=warm * 1e3, unit="ms", against="nothing; a no-op on 4 warm ranks")
    yield Ratio(
        name="world.warm-vs-spawn",
        value=spawned / warm,
        unit="times faster",
        against=f"torch.multiprocessing.spawn + init_process_group ({spawned:.2f} s)",
        target=">= 300",
    )
    yield Ratio(
        name="world.warm-vs-fresh",
        value=fresh / warm,
        unit="times faster",
        against=f"a fresh world from the fork server ({fresh * 1e3:.0f} ms)",
        target=">= 10",
    )


@benchmark("trace")
def trace_costs() -> Iterator[Ratio]:
    """A synchronous one-element all-reduce on one rank, traced, against plain gloo."""
    with Server.start() as server, World(1, server) as traced, World(1, server, trace=False) as plain:
        with_trace, without = interleaved(
            lambda: float(traced.run(programs.library, 1, 2000).values[0]),
            lambda: float(plain.run(programs.library, 1, 2000).values[0]),
        )
    yield Ratio(
        name="trace.per-operation",
        value=(with_trace - without) * 1e6,
        unit="microseconds",
        against=f"plain gloo ({without * 1e6:.1f} us per operation)",
        target="<= 100",
    )


def _handing(world: World, value: object, number: int) -> Callable[[], float]:
    return lambda: seconds(lambda: world.run(programs.given, value), repeat=1, number=number)


@benchmark("per-rank")
def own_value_costs() -> Iterator[Ratio]:
    """Each rank its own tensor, of 64 bytes or of 16 MiB, against the tensors of all ranks handed to all."""
    with Server.start() as server, World(RANKS, server) as world:
        for name, numel, number, target in (("small", 16, 100, "<= 1.5"), ("large", 2**22, 3, "<= 1")):
            tensors = [torch.full((numel,), float(rank)) for rank in range(RANKS)]
            own, everything = interleaved(_handing(world, PerRank(tensors), number), _handing(world, tensors, number))
            yield Ratio(
                name=f"per-rank.{name}",
                value=own / everything,
                unit="times as long",
                against=f"one message for all {RANKS} ranks ({everything * 1e3:.2f} ms)",
                target=target,
            )
