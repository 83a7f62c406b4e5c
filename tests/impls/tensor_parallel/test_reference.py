"""The reference's regions, layers and blocks on real ranks: what the conformance checks do not look at."""

from __future__ import annotations

import pytest
import torch

from fixtures.world.pool import WorldPool
from tests.impls.tensor_parallel import programs

# Operator: what comes out, and the gradient, on rank r of 2, whose input and output gradient are r + 1.
EXPECTED = {
    "copy_to_region": (None, 3.0),
    "reduce_from_region": (3.0, None),
    "reduce_scatter_sequence": (3.0, None),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_sums_are_formed_in_one_direction(worlds: WorldPool, name: str) -> None:
    for rank, value in enumerate(worlds.world(2).run(programs.region, name).values):
        out, gradient = EXPECTED[name]
        assert set(value["out"].unique().tolist()) == {out or rank + 1.0}
        if name != "reduce_scatter_sequence":
            assert set(value["gradient"].unique().tolist()) == {gradient or rank + 1.0}


@pytest.mark.parametrize("name", ["scatter_to_region", "reduce_scatter_sequence"])
def test_what_leaves_in_parts_has_the_parts_of_all_ranks_for_its_gradient(worlds: WorldPool, name: str) -> None:
    for value in worlds.world(2).run(programs.region, name).values:
        assert set(value["gradient"].unique().tolist()) == {1.0, 2.0}


def test_a_gather_along_the_width_takes_its_part_of_the_gradient(worlds: WorldPool) -> None:
    for rank, value in enumerate(worlds.world(2).run(programs.region, "gather_from_region").values):
        assert value["out"].shape == (2, 6, 12)
        assert set(value["gradient"].unique().tolist()) == {rank + 1.0}


def test_a_gather_along_the_sequence_sums_the_gradient(worlds: WorldPool) -> None:
    for value in worlds.world(3).run(programs.region, "gather_sequence").values:
        assert value["out"].shape == (2, 6, 12)
        assert set(value["gradient"].unique().tolist()) == {6.0}


def test_shards_and_sums_have_memory_of_their_own(worlds: WorldPool) -> None:
    assert all(all(value.values()) for value in worlds.world(2).run(programs.own_memory).values)


def test_what_the_ranks_cannot_share_is_refused_with_the_numbers(worlds: WorldPool) -> None:
    for said in worlds.world(2).run(programs.refused).values:
        assert said.pop("heads") == "2 ranks cannot share 3 heads equally"
        assert said.pop("sequence") == ""  # gathered, it divides again: a part of 3 tokens becomes 6
        assert all("7 elements, which 2 ranks cannot share equally" in text for text in said.values())


def test_randomness_differs_inside_and_agrees_around(worlds: WorldPool) -> None:
    first, second = worlds.world(2).run(programs.numbers).values
    assert torch.equal(first["before"], second["before"])
    assert not torch.equal(first["inside"], second["inside"])
    assert torch.equal(first["after"], second["after"])


def test_a_block_is_made_parallel_in_place_and_frozen_stays_frozen(worlds: WorldPool) -> None:
    expected = {"same": True, "norm": True, "attention": False, "frozen": True}
    assert worlds.world(2).run(programs.in_place).values == [expected, expected]
