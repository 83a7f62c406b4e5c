"""The reference's ZeRO-1 and ZeRO-2 on real ranks, against what one process computes alone."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.world.pool import WorldPool
from tests.impls import zero_programs as programs

ROUNDING = 1e-6
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01}),
    ("Adagrad", {"lr": 0.01}),
]


@pytest.mark.parametrize("microbatches", [1, 2])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: o[0] + str(len(o[1])))
@pytest.mark.parametrize("stage", ["1", "2"])
def test_trains_as_a_single_process(worlds: WorldPool, stage, optimizer, world_size, microbatches) -> None:
    differences = worlds.world(world_size).run(programs.trained, stage, *optimizer, microbatches).values
    assert max(differences) < ROUNDING
