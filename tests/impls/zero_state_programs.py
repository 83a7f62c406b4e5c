"""Programs about the state dicts of ZeRO-1 and ZeRO-2, run on ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fixtures.world.context import RankContext
from impls.reference import ShardedOptimizer
from tests.impls.programs import Zoo
from tests.impls.zero_programs import STAGES, plain, sharded, take_means, train, two_groups, zoo


def whole_state(ctx: RankContext, stage: str, optimizer: str) -> list[str]:
    """What differs between the state dict after two steps and that of a single process."""
    module, single = zoo(), zoo()
    ours, theirs = sharded(stage, optimizer, module), plain(optimizer, single)
    train(module, ours, ctx, 2)
    train(single, theirs, ctx, 2)
    got, expected = ours.state_dict(), theirs.state_dict()
    wrong = [] if got["param_groups"] == expected["param_groups"] else ["param_groups"]
    empty = [number for number, p in enumerate(p for g in two_groups(module) for p in g["params"]) if not p.numel()]
    states = {number: state for number, state in expected["state"].items() if number not in empty}
    if set(got["state"]) != set(states):
        return [f"states of {sorted(got['state'])}, not of {sorted(states)}"]
    for number, state in states.items():
        for name, value in state.items():
            mine = got["state"][number][name]
            if not torch.allclose(torch.as_tensor(mine), torch.as_tensor(value), atol=1e-6) or (
                isinstance(value, Tensor) and (mine.shape, mine.dtype) != (value.shape, value.dtype)
            ):
                wrong.append(f"{name} of {number}")
    return wrong


def resumed(
    ctx: RankContext, stage: str, optimizer: str, before: tuple[dict[str, Any], dict[str, Tensor]] | None
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Two steps on from the state and the weights `before`, or from the beginning; state and weights then."""
    module = zoo()
    ours = sharded(stage, optimizer, module)
    if before is not None:
        module.load_state_dict(before[1])
        ours.load_state_dict(before[0])
    return two_steps(module, ours)


def two_steps(module: Zoo, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """With the same gradients on any number of ranks."""
    for _ in range(2):
        take_means(module, world_size=2)
        optimizer.step()
        optimizer.zero_grad()
    return optimizer.state_dict(), {name: value.clone() for name, value in module.state_dict().items()}


def masters_travel(ctx: RankContext, stage: str) -> tuple[Tensor, Tensor, Tensor]:
    """A bfloat16 parameter after steps without and with a state dict in between; and what the dict says it is."""
    through, across = (nn.Parameter(torch.ones(5, dtype=torch.bfloat16)) for _ in range(2))
    first = STAGES[stage]([through], torch.optim.SGD, lr=1e-3)
    take_ones(through, first)
    state = first.state_dict()
    second = STAGES[stage]([across], torch.optim.SGD, lr=1.0)
    second.load_state_dict(state)
    for _ in range(3):
        take_ones(through, first)
        take_ones(across, second)
    return through.detach(), across.detach(), state["master"][0]


def take_ones(parameter: nn.Parameter, optimizer: torch.optim.Optimizer) -> None:
    """A step with a gradient of 1."""
    parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    optimizer.zero_grad()


def other_groups(ctx: RankContext) -> None:
    """A state dict of other groups."""
    module = zoo()
    state = sharded("1", "SGD", module).state_dict()
    ShardedOptimizer(zoo().parameters(), torch.optim.SGD, lr=1.0).load_state_dict(state)
