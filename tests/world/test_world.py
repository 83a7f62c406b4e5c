"""Worlds: every size, warm, private, seen by the witnesses, and replaced when they must be."""

from __future__ import annotations

import math
import os
import sys

import pytest
import torch

from fixtures.world.outcome import Ending
from fixtures.world.pool import WorldPool
from fixtures.world.server import Server, WorldError
from fixtures.world.world import World
from tests.world import programs
from tests.world.waiting import until


@pytest.mark.parametrize("size", range(1, 9))
def test_worlds_of_one_to_eight_ranks_reduce(worlds: WorldPool, size: int) -> None:
    assert worlds.world(size).run(programs.sum_of_ranks).values == [sum(range(size))] * size


@pytest.mark.parametrize("size", [0, -1, 33])
def test_a_world_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="a world has 1 to 32 ranks"):
        World(size)


def test_a_warm_world_runs_many_programs_in_the_same_processes(worlds: WorldPool) -> None:
    world = worlds.world(2)
    for value in range(50):
        assert world.run(programs.echo, value).values == [value, value]
    assert worlds.world(2) is world
    assert [o.value["pid"] for o in world.run(programs.identity)] == world.pids


def test_arguments_arrive_by_position_and_by_name(worlds: WorldPool) -> None:
    value = {"tensor": torch.arange(3.0), "nest": [(1, 2.5), None, b"x"]}
    for arrived in worlds.world(2).run(programs.echo, value=value).values:
        assert arrived["tensor"].equal(value["tensor"])
        assert arrived["nest"] == value["nest"]


def test_a_rank_is_alone_in_a_private_folder(worlds: WorldPool) -> None:
    one, other = worlds.world(2).run(programs.identity).values
    assert one["folder"] == other["folder"]
    assert one["mode"] == 0o700
    assert one["session"] == one["pid"]
    assert (one["stdin"], one["threads"], one["hidden"]) == ("", 1, [])


def test_ranks_draw_different_random_numbers_the_same_in_every_run(worlds: WorldPool) -> None:
    first = [value["random"] for value in worlds.world(2).run(programs.identity).values]
    again = [value["random"] for value in worlds.world(2).run(programs.identity).values]
    assert first[0] != first[1]
    assert first == again


def test_ranks_walk_a_set_of_objects_in_different_orders(worlds: WorldPool) -> None:
    one, other = worlds.world(2).run(programs.order_of_a_set).values
    assert sorted(one) == sorted(other)
    assert one != other


def test_fresh_ranks_have_hash_seeds_of_their_own(worlds: WorldPool) -> None:
    assert len(set(worlds.world(2).run(programs.hash_of_a_text).values)) == 1
    with World(2, Server.shared(), fresh=True) as world:
        assert world.run(programs.sum_of_ranks).values == [1.0, 1.0]
        assert len(set(world.run(programs.hash_of_a_text).values)) == 2


def test_a_bare_world_has_no_group_until_the_program_makes_one(worlds: WorldPool) -> None:
    world = worlds.world(2, bare=True)
    for _ in range(2):
        outcomes = world.run(programs.make_own_group)
        assert outcomes.values == [1.0, 1.0]
        assert [operation.kind for operation in outcomes[0].operations][-1] == "all_reduce"
    assert world.healthy


def test_an_untraced_world_has_no_operations(worlds: WorldPool) -> None:
    outcomes = worlds.world(2, trace=False).run(programs.sum_of_ranks)
    assert outcomes.values == [1.0, 1.0]
    assert outcomes[0].operations == ()


def test_each_program_has_a_trace_of_its_own(worlds: WorldPool) -> None:
    world = worlds.world(2)
    for _ in range(2):
        for outcome in world.run(programs.sum_of_ranks):
            (operation,) = outcome.operations
            assert (operation.seq, operation.kind, operation.num_bytes) == (0, "all_reduce", 4)
            assert operation.where.startswith("world/programs.py:")


@pytest.mark.skipif(sys.platform != "linux", reason="the wire witness reads /proc")
def test_a_window_holds_the_bytes_that_left_the_rank_and_not_its_output(worlds: WorldPool) -> None:
    numel, world_size = 1 << 20, 4
    for outcome in worlds.world(world_size).run(programs.reduce_in_window, numel):
        assert outcome.sent_bytes("quiet") == 0
        assert outcome.sent_bytes("talk") == 0
        total = 4 * numel
        chunks = 2 * (world_size - 1) * max(2, math.ceil(total / world_size / (1 << 20)))
        assert outcome.sent_bytes("reduce") == 2 * total * (world_size - 1) // world_size + 144 * chunks
        assert outcome.sent_bytes("no such window") is None


def test_a_program_inside_a_function_is_refused() -> None:
    with Server.start() as server, World(1, server) as world, pytest.raises(ValueError, match="top of a module"):
        world.run(lambda ctx: None)


def test_a_program_that_cannot_be_imported_is_a_raised_outcome(worlds: WorldPool) -> None:
    def stranger() -> None: ...

    stranger.__module__, stranger.__qualname__ = "no_such_module", "program"
    (outcome,) = worlds.world(1).run(stranger)
    assert outcome.ending is Ending.RAISED
    assert outcome.raised.type == "ModuleNotFoundError"


def test_an_unhealthy_world_refuses_and_the_pool_replaces_it(worlds: WorldPool) -> None:
    world = worlds.world(2)
    world.run(programs.exit_at_once, 1)
    assert not world.healthy
    with pytest.raises(WorldError, match="ask the pool for another"):
        world.run(programs.nothing)
    fresh = worlds.world(2)
    assert fresh is not world
    assert fresh.run(programs.rank_of).values == [0, 1]


def test_a_world_whose_rank_died_between_programs_is_replaced(worlds: WorldPool) -> None:
    world = worlds.world(2)
    os.kill(world.pids[0], 9)
    until(lambda: not world.healthy, "the world notices")
    assert worlds.world(2).run(programs.rank_of).values == [0, 1]


def test_the_pool_keeps_to_its_number_of_ranks() -> None:
    with Server.start() as server, WorldPool(server, max_ranks=5) as pool:
        two, three = pool.world(2), pool.world(3)
        assert pool.world(2) is two
        pool.world(1)
        assert two.healthy
        assert not three.healthy


def test_a_pool_survives_the_death_of_its_server() -> None:
    with Server.start() as server, WorldPool(server) as pool:
        assert pool.world(2).run(programs.rank_of).values == [0, 1]
        server.close()
        assert pool.world(2).run(programs.rank_of).values == [0, 1]
