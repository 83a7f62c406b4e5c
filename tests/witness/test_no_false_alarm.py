"""Programs that are right and look suspicious are diagnosed clean, by the hang witness and by the traces.

Each runs twice here. Ten times, on a machine that is busy with something else:

    LOCKSTEP_ROUNDS=10 LOCKSTEP_BURNERS=4 pytest tests/witness/test_no_false_alarm.py --timeout=900

Under the doctor: `tests.doctor.test_no_false_alarm`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from fixtures.witness.compare import agreement
from fixtures.world.context import RankContext
from fixtures.world.pool import WorldPool
from tests.witness import suspicious
from tests.witness.burning import busy

ROUNDS = int(os.environ.get("LOCKSTEP_ROUNDS", "2"))
BY_SIZE = sorted(suspicious.PROGRAMS.items(), key=lambda item: item[1][1])  # worlds stay warm


def run_suspicious(ctx: RankContext, name: str) -> None:
    """A program of the battery in a rank of a world."""
    suspicious.run_named(name, ctx.rank, ctx.world_size, ctx.folder)


@pytest.fixture(scope="module", autouse=True)
def _load() -> Iterator[None]:
    with busy():
        yield


@pytest.mark.parametrize(("name", "world_size"), [(name, size) for name, (_, size) in BY_SIZE])
def test_a_program_that_looks_suspicious_is_diagnosed_clean(worlds: WorldPool, name: str, world_size: int) -> None:
    for _ in range(ROUNDS):
        outcomes = worlds.world(world_size).run(run_suspicious, name, deadline_s=90.0)

        assert outcomes.all_returned, outcomes.describe()
        assert [finding.sentence for finding in agreement([outcome.operations for outcome in outcomes])] == []


def test_the_battery_is_no_smaller_than_promised() -> None:
    assert len(suspicious.PROGRAMS) >= 20
