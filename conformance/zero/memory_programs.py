"""Rank programs that weigh what a ZeRO stage holds, at the moments that its formula is about. Imports no pytest."""

from __future__ import annotations

import dataclasses
import gc
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from conformance.zero.expected_memory import KINDS
from conformance.zero.held_memory import BUFFERS, COPIES, NOTES, OTHER
from fixtures.witness import memory
from fixtures.witness.living import Living
from fixtures.world.context import RankContext
from impls.stages import stage

AFTER_BACKWARD = "after backward"  # and the end of its reduction, before step()
AFTER_STEP = "after step"  # before zero_grad()
AT_REST = "at rest"  # after zero_grad()
SETTLE_TRIES = 20
COUNTER = "counter"  # the buffer that every layer has

Shapes = Sequence[Sequence[Sequence[int]]]  # layer, parameter, its dimensions
Report = dict[str, Any]


class MasterAdam(torch.optim.Optimizer):
    """Adam with FP32 moments, and an FP32 master copy of every 16-bit parameter: 12 bytes per parameter, all told.

    With it any stage that takes an optimizer class holds what the 16-byte accounting is about; one that makes masters
    of its own hands over FP32 parameters, and gets none from here.
    """

    def __init__(self, params: Any, lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update; a closure, which nobody here has, would be called first."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad.float(), group["lr"])
        return loss

    def _update(self, parameter: Tensor, gradient: Tensor, lr: float) -> None:
        state = self.state[parameter]
        if not state:
            state["steps"] = 0  # a plain number: it weighs nothing
            state["mean"] = torch.zeros_like(parameter, dtype=torch.float32)
            state["square"] = torch.zeros_like(parameter, dtype=torch.float32)
            if parameter.dtype != torch.float32:
                state["master"] = parameter.detach().float()
        state["steps"] += 1
        master = state.get("master", parameter)
        state["mean"].lerp_(gradient, 0.1)
        state["square"].lerp_(gradient * gradient, 0.001)
        scale = math.sqrt(1 - 0.999 ** state["steps"]) / (1 - 0.9 ** state["steps"])
        master.sub_(lr * scale * state["mean"] / (state["square"].sqrt() + 1e-8))
        if master is not parameter:
            parameter.copy_(master)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An update rule with the options that make it what its name says."""

    optimizer_cls: type[torch.optim.Optimizer]
    options: Mapping[str, Any]


RULES: Mapping[str, Rule] = {
    "sgd": Rule(optimizer_cls=torch.optim.SGD, options={"lr": 0.01}),
    "momentum": Rule(optimizer_cls=torch.optim.SGD, options={"lr": 0.01, "momentum": 0.9}),
    "adam": Rule(optimizer_cls=torch.optim.Adam, options={"lr": 0.01}),
    "adamw": Rule(optimizer_cls=torch.optim.AdamW, options={"lr": 0.01, "weight_decay": 0.1}),
    "master adam": Rule(optimizer_cls=MasterAdam, options={"lr": 0.01}),
}


class Layer(nn.Module):
    """Parameters of any shapes, all of which the forward pass uses, and a counter that no optimizer sees."""

    counter: Tensor

    def __init__(self, shapes: Sequence[Sequence[int]]) -> None:
        super().__init__()
        for position, shape in enumerate(shapes):
            self.register_parameter(f"value{position}", nn.Parameter(torch.full(tuple(shape), 2.0**-6)))
        self.register_buffer(COUNTER, torch.zeros(3, dtype=torch.int64))
        self._num_values = len(shapes)

    def forward(self, x: Tensor) -> Tensor:
        """A scalar to a scalar."""
        self.counter += 1
        for position in range(self._num_values):
            x = x + (getattr(self, f"value{position}") * x).sum()
        return x


class LinearLayer(Layer):
    """The same, each parameter the weight of a linear layer: for those who shard these and no other modules."""

    def __init__(self, shapes: Sequence[Sequence[int]]) -> None:
        super().__init__([])
        self._sizes = [weight_shape(shape) for shape in shapes]
        self.linears = nn.ModuleList(_linear(*size) for size in self._sizes)

    def forward(self, x: Tensor) -> Tensor:
        """A scalar to a scalar."""
        self.counter += 1
        for linear, (_, columns) in zip(self.linears, self._sizes, strict=True):
            x = x + linear(x.expand(1, columns)).sum()
        return x


def weight_shape(shape: Sequence[int]) -> tuple[int, int]:
    """The rows and columns of a weight with as many elements as a parameter of `shape`."""
    return (shape[0], math.prod(shape[1:])) if shape else (1, 1)


def _linear(rows: int, columns: int) -> nn.Linear:
    made = nn.Linear(columns, rows, bias=False, device="meta")  # values drawn for nothing would warn of empty ones
    made.weight = nn.Parameter(torch.full((rows, columns), 2.0**-6))
    return made


def chain(shapes: Shapes, dtype: torch.dtype, linear: bool = False) -> nn.Sequential:
    """Layers one after the other: each a unit for those that shard by units."""
    return nn.Sequential(*map(LinearLayer if linear else Layer, shapes)).to(dtype)


def held(
    ctx: RankContext,
    name: str,
    shapes: Shapes,
    *,
    rule: str,
    dtype: torch.dtype = torch.float32,
    linear: bool = False,
) -> Report:
    """What this rank holds in the second step of stage `name`, at each moment: bytes, and the largest storages.

    `linear`: of a model whose parameters are all weights of linear layers.
    """
    assert ctx.impl is not None
    options = {"optimizer_cls": RULES[rule].optimizer_cls, **RULES[rule].options}
    stage(ctx.impl, name, nn.Linear(2, 2, dtype=dtype), **options)  # what it does in a process for once is done now
    scales = _Scales()
    trainer = stage(ctx.impl, name, chain(shapes, dtype, linear), **options)
    report: Report = {"chooses_optimizer": trainer.chooses_optimizer}
    for step in range(2):
        trainer.backward(trainer(torch.tensor(1.0 + ctx.rank, dtype=dtype)))
        trainer.finish()
        if step:
            report[AFTER_BACKWARD] = scales.read(trainer.held(), trainer.module, (trainer.wrapper, trainer.optimizer))
        trainer.average()
        trainer.step()
        if step:
            report[AFTER_STEP] = scales.read(trainer.held(), trainer.module, (trainer.wrapper, trainer.optimizer))
        trainer.zero_grad()
    report[AT_REST] = scales.read(trainer.held(), trainer.module, (trainer.wrapper, trainer.optimizer))
    return report


def unsharded(ctx: RankContext, shapes: Shapes, *, rule: str, dtype: torch.dtype) -> Report:
    """The same without any implementation: one process that trains alone."""
    scales = _Scales()
    module = chain(shapes, dtype)
    optimizer = RULES[rule].optimizer_cls(module.parameters(), **RULES[rule].options)
    for _ in range(2):
        optimizer.zero_grad()
        module(torch.tensor(1.0, dtype=dtype)).backward()
        optimizer.step()
    return {AFTER_STEP: scales.read({"module": module, "optimizer": optimizer}, module)}


class _Scales:
    """Reads what has come since it was made. Of a module's buffers only its own counters are told apart as such."""

    def __init__(self) -> None:
        gc.collect()
        self._before = Living()
        self._before.look()
        self._lasting_bytes = 0  # of `OTHER`, in the reading before

    def read(self, held: Mapping[str, Any], module: nn.Module, holders: Sequence[Any] = ()) -> Report:
        """Bytes and largest storages by category. What `held` sorts into another than the three kinds is `OTHER`.

        A thread of the backend may still have a tensor of an operation that is over: what is new in `OTHER` has to be
        there for a little longer than it takes to let go.
        """
        known = {category: thing for category, thing in held.items() if category in (*KINDS, "module")}
        has_whole_parameters = known.get("module") in (None, module)
        counters = [thing.counter for thing in gc.get_objects() if issubclass(type(thing), Layer)]  # wherever they went
        for _ in range(SETTLE_TRIES):
            gc.collect()
            more = {
                BUFFERS: counters,
                COPIES: memory.copies_of_shards(module, self._before) if has_whole_parameters else [],
            }
            found = memory.survey(others=True, apart_from=self._before, holders=holders, **{**known, **more})
            others = [item for item in found[OTHER] if item.is_floating_point]
            others_bytes = sum(item.num_bytes for item in others)
            if others_bytes <= self._lasting_bytes:
                break
            time.sleep(0.001)
        self._lasting_bytes = others_bytes
        found[NOTES] = [item for item in found[OTHER] if not item.is_floating_point]
        found[OTHER] = others
        return {
            "bytes": {category: sum(item.num_bytes for item in items) for category, items in found.items()},
            "largest": {category: memory.largest(items) for category, items in found.items()},
        }
