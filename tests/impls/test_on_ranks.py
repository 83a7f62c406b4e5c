"""Implementations loaded by ranks: PyTorch's own, and hand-ins in lesson and course spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fixtures.world.outcome import Ending
from fixtures.world.pool import WorldPool
from tests.impls import programs

LESSON = """
def ring_allreduce(mesh, rank, world_size, tensor):
    total = piece = tensor
    for _ in range(world_size - 1):
        mesh.send((rank + 1) % world_size, piece)
        piece = mesh.recv((rank - 1) % world_size)
        total = total + piece
    return total
"""
COURSE = """
import torch.distributed as dist

def allreduce(x):
    dist.all_reduce(x)

class DDP:
    def __init__(self, module):
        self.module = module
        for p in module.parameters():
            dist.broadcast(p.data, src=0)
    def __call__(self, *args):
        return self.module(*args)
    def finish_gradient_synchronization(self):
        for p in self.module.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
"""
# A few float32 gradients of order one, summed in another order.
ROUNDING = 1e-6


@pytest.fixture
def lesson(tmp_path: Path) -> str:
    path = tmp_path / "collectives.py"
    path.write_text(LESSON)
    return str(path)


@pytest.fixture
def course(tmp_path: Path) -> str:
    path = tmp_path / "collectives.py"
    path.write_text(COURSE)
    return str(path)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64], ids=str)
def test_torch_reduces_and_gathers(worlds: WorldPool, dtype: torch.dtype) -> None:
    world = worlds.world(3, impl="torch")
    tensor = torch.tensor([0, 1, 0, 2, 1]).to(dtype)
    total = tensor * 1 + tensor * 2 + tensor * 3
    for name in ("all_reduce", "broadcast", "all_gather"):
        expected = {
            "all_reduce": total,
            "broadcast": tensor * 1,
            "all_gather": torch.cat([tensor * 1, tensor * 2, tensor * 3]),
        }
        results = world.run(programs.call, name, tensor).values
        assert all(torch.equal(result, expected[name].to(result.dtype)) for result in results)
    assert torch.equal(torch.cat(world.run(programs.call, "reduce_scatter", tensor).values).to(total.dtype), total)


@pytest.mark.parametrize("impl", ["reference", "torch"])
def test_wrappers_average(worlds: WorldPool, impl: str) -> None:
    assert max(worlds.world(3, impl=impl).run(programs.wrapped_step).values) < ROUNDING


def test_a_lesson_s_function_over_a_mesh(worlds: WorldPool, lesson: str) -> None:
    results = worlds.world(3, impl=lesson).run(programs.call, "ring_allreduce", torch.ones(2)).values
    assert all(torch.equal(result, torch.full((2,), 6.0)) for result in results)


def test_a_course_s_functions_and_classes_over_torch_distributed(worlds: WorldPool, course: str) -> None:
    world = worlds.world(2, impl=course)
    assert all(torch.equal(result, torch.full((3,), 2.0)) for result in world.run(programs.reduced_in_place).values)
    assert max(world.run(programs.wrapped_step).values) < ROUNDING


def test_an_import_that_exits_is_that_rank_s_end_and_nobody_else_s(worlds: WorldPool, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def all_reduce(tensor): return tensor\nimport sys\nsys.exit(3)\n")
    outcomes = worlds.world(2, impl=str(path)).run(programs.reduced_in_place)
    assert {outcome.ending for outcome in outcomes} <= {Ending.RAISED, Ending.EXITED, Ending.HUNG}
    assert "SystemExit" in outcomes.describe() or "exited" in outcomes.describe()
