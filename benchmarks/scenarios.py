"""How long a reader waits for a failure mode: for its story in the terminal, and for the verdict on each that hangs."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Ratio, benchmark
from fixtures.faults import gallery
from fixtures.faults.scenario import Run
from fixtures.world.outcome import Outcomes
from fixtures.world.pool import WorldPool
from fixtures.world.server import Server

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
DEADLINE_S = 30.0


def _pytest(*options: str) -> float:
    """Seconds of a run of the suite that has to end well."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, f"--report={folder}"]
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        took = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")
    return took


@benchmark("scenarios-explained")
def stories() -> Iterator[Ratio]:
    """``pytest --scenario=NAME --explain`` for every failure mode, one after another, from the prompt to the prompt."""
    for name in gallery.find():
        yield Ratio(
            name=f"scenarios-explained.{name}",
            value=_pytest(f"--scenario={name}", "--explain"),
            unit="s",
            against="nothing; pytest and torch included",
            target="<= 5",
        )


@benchmark("scenarios-together")
def all_at_once() -> Iterator[Ratio]:
    """``pytest -n 4 --scenario=all``."""
    took = _pytest("-n", "4", "--scenario=all")
    yield Ratio(name="scenarios-together.n-4", value=took, unit="s", against="nothing", target="<= 60")


@benchmark("scenarios-verdict")
def verdicts_on_hangs() -> Iterator[Ratio]:
    """For every run that locks in any scenario: from the last operation that any rank issued to the verdict."""
    told: defaultdict[str, list[float]] = defaultdict(list)
    with Server.start() as server, WorldPool(server) as pool:
        for number in range(ROUNDS):
            for name, scenario in gallery.find().items():
                if number == 0 or name in told:
                    list(scenario.reproduce(_watched(pool, told, name)))
    for name, found in told.items():
        yield _verdict(name, max(found), f"the last operation issued; worst of {len(found)}")
    every = [one for found in told.values() for one in found]
    yield _verdict("median", statistics.median(every), f"the last operation issued; {len(every)} hangs", "<= 1")
    yield _verdict("worst", max(every), f"the last operation issued; {len(every)} hangs", "<= 1")


def _verdict(name: str, value: float, against: str, target: str = "") -> Ratio:
    return Ratio(name=f"scenarios-verdict.{name}", value=value, unit="s", against=against, target=target)


def _watched(pool: WorldPool, told: dict[str, list[float]], name: str) -> Run:
    """A Run that notes how long the verdict on a deadlock took."""

    def run(
        program: Any,
        world_size: int,
        /,
        *args: Any,
        impl: str | None = None,
        bare: bool = False,
        trace: bool = True,
        deadline_s: float = DEADLINE_S,
        **kwargs: Any,
    ) -> Outcomes:
        world = pool.world(world_size, impl=impl, bare=bare, trace=trace)
        began_s = time.monotonic()
        outcomes: Outcomes = world.run(program, *args, deadline_s=deadline_s, **kwargs)
        locked = [outcome for outcome in outcomes if outcome.hang is not None and outcome.hang.deadlock]
        issued_ns = [operation.issued_ns for outcome in outcomes for operation in outcome.operations]
        if locked and issued_ns:
            told[name].append(began_s + locked[0].duration_s - max(issued_ns) / 1e9)
        return outcomes

    return run
