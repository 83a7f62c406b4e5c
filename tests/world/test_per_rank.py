"""Each rank is given its own value of a PerRank, and nothing of the others'."""

from __future__ import annotations

import sys

import pytest
import torch

from fixtures.world.codec import CannotCross
from fixtures.world.per_rank import PerRank
from fixtures.world.pool import WorldPool
from tests.world import programs


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_each_rank_is_given_its_own_value(worlds: WorldPool, size: int) -> None:
    own = PerRank([{"rank": rank, "tensor": torch.full((2,), float(rank))} for rank in range(size)])
    for rank, value in enumerate(worlds.world(size).run(programs.echo, own).values):
        assert value["rank"] == rank
        assert value["tensor"].tolist() == [rank, rank]


def test_own_and_common_arguments_mix_by_position_and_by_name(worlds: WorldPool) -> None:
    values = (
        worlds.world(2).run(programs.arguments, 7, PerRank(["a", "b"]), common=None, own=PerRank([1.5, None])).values
    )
    assert values == [[[7, "a"], {"common": None, "own": 1.5}], [[7, "b"], {"common": None, "own": None}]]


def test_values_of_steps_are_dealt_to_ranks() -> None:
    assert PerRank.of_steps([["a0", "b0"], ["a1", "b1"]], 2).values == [["a0", "a1"], ["b0", "b1"]]
    assert PerRank.of_steps([], 3).values == [[], [], []]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc has the memory of a process on Linux only")
def test_messages_carry_nothing_of_other_ranks(worlds: WorldPool) -> None:
    own = PerRank([f"secret of rank {rank}" for rank in range(3)])
    for rank, found in enumerate(worlds.world(3).run(programs.what_lies_in_memory, own, "secret of rank ").values):
        assert found == [f"secret of rank {rank}"]


@pytest.mark.parametrize(
    ("args", "kwargs", "where"),
    [((0, PerRank([1, 2, 3])), {}, "argument 2"), ((), {"value": PerRank([1])}, "argument 'value'")],
    ids=["position", "name"],
)
def test_another_number_of_values_is_refused_and_the_world_goes_on(
    worlds: WorldPool, args: tuple[object, ...], kwargs: dict[str, object], where: str
) -> None:
    world = worlds.world(2)
    with pytest.raises(ValueError, match=rf"{where} is a PerRank of \d values, and the world has 2 ranks"):
        world.run(programs.echo, *args, **kwargs)
    assert world.run(programs.echo, "still here").values == ["still here"] * 2


def test_inside_another_value_it_is_refused(worlds: WorldPool) -> None:
    with pytest.raises(CannotCross, match="an argument of its own"):
        worlds.world(2).run(programs.echo, [PerRank([1, 2])])


def test_large_values_reach_ranks_that_read_at_different_times(worlds: WorldPool) -> None:
    own = PerRank([torch.full((2**20,), float(rank)) for rank in range(3)])
    values = worlds.world(3).run(programs.summed, own).values
    assert values == [rank * 2.0**20 for rank in range(3)]
