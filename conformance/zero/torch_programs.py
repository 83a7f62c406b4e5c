"""Rank programs that set PyTorch's own stages beside the implementation's: what is held, and what moves when.

Both are driven through the same steps on the same model, and watched from outside. Imports no pytest.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.loop.programs import OwnBatches, Values
from fixtures import models
from fixtures.world.context import RankContext
from impls.stages import stage

LAYERS = 12  # equal ones, so that 2, 3 and 4 ranks share elements, rows and whole parameters evenly
WIDTH = 48
WHOLE = LAYERS * WIDTH * WIDTH * 4  # bytes of the parameters
STEPS = 3  # torch lays things out anew in the first ones
LOOKS = 3
BEFORE, REST, REDUCED = "before", "rest", "reduced"  # memory readings
COMPUTES = "computes"  # mark: the layer named in the detail begins to compute, its parameters are there
FORWARD, BACKWARD, STEP = "forward", "backward", "step"  # marks at the beginning of each phase of the last step
END = "end"

_told: list[Callable[[str, str], None]] = []  # a layer holds no context: an implementation may copy it


class Layer(nn.Linear):
    """A square layer without bias that says when it computes."""

    def __init__(self, number: int) -> None:
        super().__init__(WIDTH, WIDTH, bias=False)
        self.number = number

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        for tell in _told:
            tell(COMPUTES, str(self.number))
        return super().forward(x)


class Rooted(nn.Module):
    """Layers in front of a parameter that is in none of them, so that the root has one of its own."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*map(Layer, range(num_layers)))
        self.gain = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        out: Tensor = self.layers(x) * self.gain
        return out


class Training(Protocol):
    """What a stage offers; `impls.stages.Trainer` for the implementation's."""

    def __call__(self, x: Tensor) -> Tensor:
        """The forward pass."""

    def backward(self, loss: Tensor) -> None:
        """The backward pass."""

    def finish(self) -> None:
        """End the reduction."""

    def average(self) -> None:
        """Average the gradients, where that is left to the user."""

    def step(self) -> None:
        """Update."""

    def zero_grad(self) -> None:
        """Forget the gradients."""

    def held(self) -> dict[str, Any]:
        """Keywords for the memory witness."""


class Peer:
    """One of PyTorch's own, used as its documentation says."""

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.module, self.optimizer = module, optimizer
        self.step, self.zero_grad = optimizer.step, optimizer.zero_grad

    def __call__(self, x: Tensor) -> Tensor:
        """The forward pass."""
        out: Tensor = self.module(x)
        return out

    def backward(self, loss: Tensor) -> None:
        """The backward pass."""
        loss.backward()  # type: ignore[no-untyped-call]

    def finish(self) -> None:
        """Nothing is left to do after backward()."""

    def average(self) -> None:
        """Nothing is left to the user."""

    def held(self) -> dict[str, Any]:
        """The module and the optimizer."""
        return {"module": self.module, "optimizer": self.optimizer}


Optimizer = type[torch.optim.Optimizer]


def peer(name: str, module: nn.Module, optimizer_cls: Optimizer, group: Any = None, **options: Any) -> Peer:
    """`module` under one of PyTorch's own: a ShardingStrategy of FSDP1, fully_shard, or ZeroRedundancyOptimizer."""
    # Here, so that only ranks import them: that takes a second.
    from impls.torch_native import ShardedOptimizer, fully_shard
    from impls.torch_native.fsdp1 import fsdp1

    if name == "ZeroRedundancyOptimizer":
        return Peer(module, ShardedOptimizer(module.parameters(), optimizer_cls, **options))
    wrapped = fully_shard(module) if name == "fully_shard" else fsdp1(module, name, group)
    return Peer(wrapped, optimizer_cls(wrapped.parameters(), **options))


@contextlib.contextmanager
def hybrid_groups(name: str) -> Iterator[Any]:
    """For a hybrid strategy, which shards over one group and replicates over another: pairs of ranks; else None."""
    if "HYBRID" not in name:
        yield None
        return
    half = dist.get_world_size() // 2
    inside = [dist.new_group(list(range(begin, begin + half))) for begin in (0, half)]
    across = [dist.new_group([place, place + half]) for place in range(half)]
    yield inside[dist.get_rank() // half], across[dist.get_rank() % half]
    gc.collect()
    for group in (*inside, *across):
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)


def strategies(ctx: RankContext) -> list[str]:
    """The names in PyTorch's list."""
    from torch.distributed.fsdp import ShardingStrategy

    return [strategy.name for strategy in ShardingStrategy]


def pattern(ctx: RankContext, name: str, *, own: bool) -> None:
    """Some steps with Adam; the last between marks, with memory readings. ``own``: a stage of the implementation."""
    gc.collect()
    ctx.weigh(BEFORE, others=True)
    with hybrid_groups(name) as group:
        _train(ctx, _training(ctx, name, own, group))


def _training(ctx: RankContext, name: str, own: bool, group: Any) -> Training:
    module = models.fill(nn.Sequential(*map(Layer, range(LAYERS))), 1, real=True)
    if not own:
        return peer(name, module, torch.optim.Adam, group, lr=0.01)
    assert ctx.impl is not None
    return stage(ctx.impl, name, module, optimizer_cls=torch.optim.Adam, lr=0.01)


def _train(ctx: RankContext, training: Training) -> None:
    for step in range(STEPS - 1):
        _step(training, step, ctx)
    _told.append(ctx.mark)
    try:
        _step(training, STEPS - 1, ctx, watched=True)
    finally:
        _told.clear()
    _weigh(ctx, REST, training)


def _weigh(ctx: RankContext, name: str, training: Training) -> None:
    """Several looks, of which the least counts: gloo's threads let go of an operation's tensors only after its end."""
    for _ in range(LOOKS):
        dist.barrier()
        gc.collect()
        ctx.weigh(name, **training.held(), others=True)


def _step(training: Training, step: int, ctx: RankContext, *, watched: bool = False) -> None:
    mark = ctx.mark if watched else _unmarked
    x = models.rows(1, 10 * step + ctx.rank, real=True, width=WIDTH)
    mark(FORWARD)
    loss = training(x).square().mean()
    mark(BACKWARD)
    training.backward(loss)
    del loss
    training.finish()
    mark(END)
    if watched:
        _weigh(ctx, REDUCED, training)
    training.average()
    mark(STEP)
    training.step()
    mark(END)
    training.zero_grad()


def _unmarked(name: str) -> None:
    """A step that nobody watches."""


def rooted(ctx: RankContext, name: str, *, num_layers: int) -> None:
    """Two steps of one of PyTorch's own on a model whose root has a parameter; the last between marks."""
    training = peer(name, models.fill(Rooted(num_layers), 1, real=True), torch.optim.SGD, lr=0.01)
    _step(training, 0, ctx)
    _step(training, 1, ctx, watched=True)


def trained(
    ctx: RankContext, model: str, batches: OwnBatches, *, seed: int, rates: list[float], momentum: float
) -> tuple[Values, Values]:
    """The parameters after the same steps with the implementation's fully_shard, and with PyTorch's."""
    assert ctx.impl is not None
    found: list[Values] = []
    for own in (True, False):
        module = models.build(model, seed, real=True)
        options: dict[str, Any] = {"optimizer_cls": torch.optim.SGD, "lr": rates[0], "momentum": momentum}
        training: Any = stage(ctx.impl, "3", module, **options) if own else peer("fully_shard", module, **options)
        for rate, ((x, target),) in zip(rates, batches, strict=True):
            for group in training.optimizer.param_groups:
                group["lr"] = rate
            training.backward(models.squared(training(x), target, 1.0))
            training.finish()
            training.step()
            training.zero_grad()
        x = batches[0][0][0]
        found.append(training.full_parameters(x) if own else training.module.full_parameters())
    return found[0], found[1]
