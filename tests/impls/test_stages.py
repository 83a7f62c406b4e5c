"""The driver of ZeRO stages takes the forms in which sharded optimizers and modules are written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fixtures.world.pool import WorldPool
from tests.impls import stage_programs as programs

# Float32 rounding over three steps of a small model, in another order of addition.
ROUNDING = 1e-6
RANKS = 3

HEAD = """
import torch
import torch.distributed as dist

def mean_of(parameters):
    for p in parameters:
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()
"""
ON_THE_MEAN = """
class ShardedOptimizer:
    def __init__(self, params, optimizer_cls, **kwargs):
        self.params = list(params)
        mine = self.params[dist.get_rank() :: dist.get_world_size()]
        self.inner = optimizer_cls(mine, **kwargs) if mine else None
    def zero_grad(self):
        for p in self.params:
            p.grad = None
    def step(self):
        if self.inner:
            self.inner.step()
        for i, p in enumerate(self.params):
            dist.broadcast(p.data, src=i % dist.get_world_size())

class ZeRO2(ShardedOptimizer):
    pass
"""
ON_ITS_OWN = """
class ZeroOptimizer:
    def __init__(self, model, world_size, rank, lr):
        self.model = model
        self.inner = torch.optim.SGD(model.parameters(), lr=lr)
    def zero_grad(self):
        self.inner.zero_grad()
    def step(self):
        mean_of(self.model.parameters())
        self.inner.step()
"""
AROUND = """
class ShardedOptimizer:
    def __init__(self, optimizer):
        self.inner = optimizer
        self.zero_grad = optimizer.zero_grad
    def step(self):
        for group in self.inner.param_groups:
            mean_of(group["params"])
        self.inner.step()
"""


def _write(folder: Path, *parts: str) -> str:
    path = folder / "zero.py"
    path.write_text("".join((HEAD, *parts)))
    return str(path)


@pytest.mark.parametrize(
    ("name", "form", "wants_mean", "chooses"),
    [
        ("1", ON_THE_MEAN, True, False),
        ("2", ON_THE_MEAN, True, False),  # a class that inherits all it has is not empty
        ("1", ON_ITS_OWN, False, True),
        ("1", AROUND, False, False),
    ],
)
def test_each_form_trains_and_the_gradients_it_wants_are_found_out(
    worlds: WorldPool, tmp_path: Path, name: str, form: str, wants_mean: bool, chooses: bool
) -> None:
    world = worlds.world(RANKS, impl=_write(tmp_path, form))
    reports = world.run(programs.train, name, lr=0.1).values
    alone = worlds.world(1).run(programs.alone, RANKS, lr=0.1).values[0]
    for report in reports:
        assert (report["wants_mean"], report["chooses_optimizer"]) == (wants_mean, chooses)
        assert set(report["parameters"]) == set(alone)
        for key, expected in alone.items():
            assert (report["parameters"][key] - expected).abs().max() < ROUNDING


def test_options_reach_the_inner_optimizer(worlds: WorldPool, tmp_path: Path) -> None:
    options = {"lr": 0.01, "betas": (0.5, 0.75), "weight_decay": 0.25}
    world = worlds.world(RANKS, impl=_write(tmp_path, ON_THE_MEAN))
    found = world.run(programs.train, "1", "AdamW", **options).values[0]["parameters"]
    alone = worlds.world(1).run(programs.alone, RANKS, "AdamW", **options).values[0]
    assert all((found[key] - expected).abs().max() < ROUNDING for key, expected in alone.items())


@pytest.mark.parametrize(
    ("form", "name", "options", "told"),
    [
        (ON_ITS_OWN, "1", {"lr": 0.1, "momentum": 0.5}, "takes no momentum"),
        (ON_ITS_OWN, "2", {"lr": 0.1}, "has no Zero2Optimizer"),
        ("def FSDP(module):\n    return module\n", "3", {"reshard_after_forward": False}, "reshard_after_forward"),
    ],
)
def test_what_a_form_does_not_take_is_not_provided(
    worlds: WorldPool, tmp_path: Path, form: str, name: str, options: dict[str, object], told: str
) -> None:
    (why,) = worlds.world(1, impl=_write(tmp_path, form)).run(programs.why_not, name, **options).values
    assert told in why


def test_whole_parameters_are_heard_in_the_forward_pass(worlds: WorldPool) -> None:
    (report,) = worlds.world(1).run(programs.hear).values
    assert report["names"] == ["idle", "layer.weight"]
    # The idle one lies on the module itself, whose forward pass was heard too.
    assert set(report["heard"]) == {"idle", "layer.weight"}
    assert torch.equal(report["heard"]["layer.weight"], report["whole"])
