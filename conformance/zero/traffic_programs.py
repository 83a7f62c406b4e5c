"""A rank program that trains under any ZeRO stage, each phase of a step between marks. Imports no pytest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from conformance.asks import asks_for
from fixtures import models
from fixtures.world.context import RankContext
from impls.stages import Trainer, stage

# Marks. What is issued before one of them belongs to the phase that it ends; a step begins with STEP_BEGIN.
STEP_BEGIN = "step-begin"
FORWARD_END = "forward-end"
BACKWARD_END = "backward-end"  # the reduction has ended, too
AVERAGING_END = "averaging-end"  # of gradients, for an optimizer that leaves it to data parallelism
STEP_END = "step-end"
COMPUTES = "computes"  # the layer named in the detail computes: its parameters are there

_tell: list[Callable[[str, str], None]] = []  # a layer holds no context, so that an implementation may copy it


def window(step: int) -> str:
    """The name of the wire window around a step."""
    return f"step {step}"


class Layer(nn.Linear):
    """A square layer without bias that says when it computes."""

    def __init__(self, width: int, number: int) -> None:
        super().__init__(width, width, bias=False)
        self.number = number

    def forward(self, x: Tensor) -> Tensor:
        """[rows, width] to [rows, width]."""
        for tell in _tell:
            tell(COMPUTES, str(self.number))
        return super().forward(x)


class Headed(nn.Module):
    """A chain of layers, and a weight as large as theirs that is in none of them."""

    def __init__(self, num_layers: int, width: int) -> None:
        super().__init__()
        for number in range(num_layers):  # children of the module itself: each is a unit, at the least
            self.add_module(f"layer{number}", Layer(width, number))
        self.head = nn.Parameter(torch.empty(width, width))

    def forward(self, x: Tensor) -> Tensor:
        """[rows, width] to [rows, width]."""
        for layer in self.children():
            x = layer(x)
        return functional.linear(x, self.head)


def train(
    ctx: RankContext,
    name: str,
    *,
    num_layers: int,
    width: int,
    steps: int = 3,
    micro: int = 1,
    dtype: torch.dtype = torch.float32,
    keep: bool = False,
    headed: bool = False,
) -> dict[str, Any]:
    """Steps with SGD under stage `name`, each inside a wire window, of `micro` microbatches each.

    Stage "3" gathers for the backward pass again where that can be chosen, unless `keep` asks for the opposite.
    """
    assert ctx.impl is not None
    chain = nn.Sequential(*(Layer(width, number) for number in range(num_layers)))
    module = models.fill(Headed(num_layers, width) if headed else chain, 1, real=True).to(dtype)
    report = {
        "parameter_bytes": sum(p.nbytes for p in module.parameters()),
        "padding_bytes": sum(_padding_bytes(p, ctx.world_size) for p in module.parameters()),
        "num_parameters": len(list(module.parameters())),
        "root_bytes": sum(p.nbytes for p in module.parameters(recurse=False)),
        "chooses_reshard": name == "3" and asks_for(ctx.impl, "fully_shard", "reshard_after_forward"),
    }
    reshard = not keep if keep or report["chooses_reshard"] else None
    trainer = stage(ctx.impl, name, module, optimizer_cls=torch.optim.SGD, lr=0.01, reshard_after_forward=reshard)
    _tell.append(ctx.mark)
    try:
        for step in range(steps):
            rows = [models.rows(2, 100 * step + 10 * ctx.rank + m, real=True, width=width) for m in range(micro)]
            with ctx.window(window(step)):
                _step(ctx, trainer, [x.to(dtype).requires_grad_() for x in rows], str(step))
    finally:
        _tell.clear()
    return report | {"wants_mean": trainer.wants_mean}


def _step(ctx: RankContext, trainer: Trainer, rows: list[Tensor], step: str) -> None:
    """Rows learn too, so that the backward pass needs every layer's weight, the first one's included."""
    ctx.mark(STEP_BEGIN, step)
    trainer.zero_grad()
    for x in rows:
        loss = trainer(x).float().square().mean()
        ctx.mark(FORWARD_END, step)
        trainer.backward(loss)
        trainer.finish()
        ctx.mark(BACKWARD_END, step)
    trainer.average()
    ctx.mark(AVERAGING_END, step)
    trainer.step()
    ctx.mark(STEP_END, step)


def _padding_bytes(parameter: Tensor, world_size: int) -> int:
    """The most that cutting a parameter into equal shards adds: fewer than N elements, or fewer than N rows."""
    elements, rows = world_size - 1, -len(parameter) % world_size * parameter[0].numel()
    return max(elements, rows) * parameter.element_size()
