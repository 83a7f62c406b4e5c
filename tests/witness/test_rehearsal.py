"""Steps without ranks: the reference's own operations, in order, and timed; against the described steps."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.world.pool import WorldPool
from impls.reference.network.presets import cluster
from impls.reference.network.steps import Layout, Workload, step_time
from tests.witness.rehearsed import LAYERS, WIDTH, step

LAYER_BYTES = 2 * WIDTH * WIDTH
TOKENS = 4096
WORK = Workload(num_parameters=LAYERS * WIDTH * WIDTH, num_layers=LAYERS, hidden=WIDTH, tokens=TOKENS)


def _rehearse(worlds: WorldPool, name: str, world_size: int) -> dict[str, Any]:
    (value,) = worlds.world(1, bare=True, trace=False).run(step, name, world_size, TOKENS).values
    found: dict[str, Any] = value
    return found


@pytest.mark.parametrize("world_size", [2, 4096])
def test_data_parallel_reduces_each_layer_behind_its_backward(worlds: WorldPool, world_size: int) -> None:
    found = _rehearse(worlds, "ddp", world_size)
    assert found["operations"] == [["all_reduce", LAYER_BYTES, world_size]] * LAYERS
    order = [str(layer) for layer in range(LAYERS)]
    forward, backward = [[name, False] for name in order], [[name, True] for name in order[::-1]]
    assert found["computed"] == forward + backward


@pytest.mark.parametrize("world_size", [8, 4096])
def test_a_described_step_takes_as_long_as_a_rehearsed_one(worlds: WorldPool, world_size: int) -> None:
    described = step_time(WORK, Layout(dp=world_size), cluster())
    found = _rehearse(worlds, "ddp", world_size)["time"]
    assert found["compute_s"] == pytest.approx(described.compute_s)
    assert found["communication_s"] == pytest.approx(described.communication_s)
    assert found["total_s"] == pytest.approx(described.total_s)


def test_fully_sharded_gathers_every_layer_for_both_passes(worlds: WorldPool) -> None:
    found = _rehearse(worlds, "3", 4)
    gathers = [num_bytes for kind, num_bytes, _ in found["operations"] if kind == "all_gather"]
    assert gathers == [LAYER_BYTES] * 2 * LAYERS
    sent = sum(num_bytes for kind, num_bytes, _ in found["operations"] if kind == "send")
    assert sent == LAYERS * LAYER_BYTES * 3 // 4  # home-made reduce-scatters
    described = step_time(WORK, Layout(dp=4, stage="3"), cluster())
    assert found["time"]["communication_s"] == pytest.approx(described.communication_s)
    assert found["time"]["total_s"] == pytest.approx(described.total_s, rel=0.05)  # its scatters wait, one layer's hide
