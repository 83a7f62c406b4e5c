"""Modules that ZeRO-3 is tried on, and what a single process computes of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls.reference.fsdp import FullySharded
from tests.impls.programs import FEATURES, rows_of

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "SGD": (torch.optim.SGD, {"lr": 0.05}),
    "momentum": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "nesterov": True}),
    "Adam": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.01}),  # has its state from the beginning
    "NAdam": (torch.optim.NAdam, {"lr": 0.01}),  # has two scalars in its state
}


# -- modules -----------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    """A unit with several layers, one of them used twice; and several outputs, in a dict."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.inner = nn.Linear(FEATURES, FEATURES, bias=bias)
        self.outer = nn.Linear(FEATURES, FEATURES, bias=bias)

    def forward(self, x: Tensor) -> dict[str, Any]:
        hidden = torch.tanh(self.inner(x))
        return {"x": x + self.outer(self.inner(hidden)), "more": [hidden, x]}


class Menagerie(nn.Module):
    """All that ZeRO-3 has to keep apart: every rank calls the same units of it, in the same order."""

    counter: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, FEATURES)
        self.blocks = nn.ModuleList([Block(), nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.ReLU(inplace=True))])
        self.frozen = nn.Linear(FEATURES, FEATURES).requires_grad_(False)
        self.half_frozen = nn.Linear(FEATURES, FEATURES)
        self.half_frozen.bias.requires_grad_(False)
        self.twice = nn.Linear(FEATURES, FEATURES)
        self.same = self.twice  # under two names
        self.recurrent = nn.GRU(FEATURES, FEATURES, batch_first=True)
        self.wide = nn.Linear(FEATURES, 3).double()
        self.on_even = nn.Linear(3, 3).double()
        self.never = nn.Linear(FEATURES, FEATURES)
        self.head = nn.Linear(FEATURES, 7, bias=False)
        self.head.weight = self.embedding.weight
        self.scale = nn.Parameter(torch.tensor(1.5))  # no dimension
        self.nothing = nn.Parameter(torch.empty(0, 2))
        self.unused = nn.Parameter(torch.ones(5))
        self.listed = nn.ParameterList([nn.Parameter(torch.ones(FEATURES))])
        self.register_buffer("counter", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, with_even: bool) -> Tensor:
        """[rows, FEATURES] to [rows, 3]."""
        self.counter += 1
        x = x + self.embedding(torch.arange(len(x)) % 7) * self.scale
        x = self.blocks[1](self.blocks[0](x)["x"])
        x = self.frozen(self.half_frozen(x)) * self.listed[0]
        x = self.same(torch.tanh(self.twice(x)))
        x = self.recurrent(x[None])[0][0]
        x = x + self.head(x)[:, :FEATURES]
        out = self.wide(x.double())
        extra = self.on_even(out)
        return (out + extra if with_even else out) + self.nothing.sum()


def menagerie() -> Menagerie:
    torch.manual_seed(0)
    return Menagerie()


def loss_of(model: Callable[..., Tensor], rank: int, microbatch: int = 0) -> Tensor:
    return model(rows_of(rank, microbatch), with_even=rank % 2 == 0).square().mean()


def two_groups(module: nn.Module) -> list[dict[str, Any]]:
    """Weights decay; the others do not, and have a rate of their own."""
    named = list(module.named_parameters())
    return [
        {"params": [p for name, p in named if name.endswith("weight")], "weight_decay": 0.1},
        {"params": [p for name, p in named if not name.endswith("weight")], "lr": 0.02},
    ]


def optimizer_of(module: nn.Module, name: str) -> torch.optim.Optimizer:
    optimizer_cls, options = OPTIMIZERS[name]
    return optimizer_cls(two_groups(module), **options)


def layers(num_layers: int = 4, width: int = 8) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(num_layers)))


# -- what one process computes -----------------------------------------------------------------------------------------


def mean_gradients(module: nn.Module, world_size: int, microbatches: int = 1) -> dict[str, Tensor | None]:
    """The ranks' gradients, computed one after the other; None where no rank has one."""
    found: dict[str, list[Tensor]] = {name: [] for name, _ in module.named_parameters()}
    for rank in range(world_size):
        replica = copy.deepcopy(module)
        for microbatch in range(microbatches):
            loss_of(replica, rank, microbatch).backward()
        for name, parameter in replica.named_parameters():
            found[name] += [] if parameter.grad is None else [parameter.grad]
    return {name: sum(grads) / world_size if grads else None for name, grads in found.items()}


def train_alone(module: nn.Module, optimizer: torch.optim.Optimizer, world_size: int, steps: range) -> None:
    for step in steps:
        means = mean_gradients(module, world_size, microbatches=1 + step % 2)
        for name, parameter in module.named_parameters():
            parameter.grad = means[name]
        optimizer.step()


def train(model: FullySharded, optimizer: torch.optim.Optimizer, rank: int, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        for microbatch in range(1 + step % 2):
            loss_of(model, rank, microbatch).backward()
        optimizer.step()


def difference(got: Mapping[str, Tensor], module: nn.Module) -> float:
    """The largest between whole parameters and those of `module`, tied ones under each name; inf for another shape."""
    worst = 0.0
    expected = dict(module.named_parameters(remove_duplicate=False))
    assert got.keys() == expected.keys()
    for name, parameter in expected.items():
        if got[name].shape != parameter.shape or got[name].dtype != parameter.dtype:
            return float("inf")
        if parameter.numel():
            worst = max(worst, float((got[name] - parameter.detach()).abs().max()))
    return worst


def whole_gradients(model: FullySharded, group: dist.ProcessGroup | None = None) -> dict[str, Tensor | None]:
    """Put together from the pieces of all ranks; None where no rank has any."""
    own = {name.removeprefix("module."): p.grad for name, p in model.named_parameters()}
    everyone: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyone, own, group=group)
    parts = {name: [rank[name] for rank in everyone if rank[name] is not None] for name in own}
    return {name: torch.cat(grads) if grads else None for name, grads in parts.items()}


def gradient_error(model: FullySharded, expected: Mapping[str, Tensor | None]) -> float:
    """The largest difference; infinite when one is there and the other is not."""
    worst = 0.0
    for name, got in whole_gradients(model).items():
        mean = expected[name]
        if mean is not None and not mean.numel():
            continue
        if (got is None) != (mean is None):
            return float("inf")
        if got is not None and mean is not None:
            worst = max(worst, float((got - mean.flatten()).abs().max()))
    return worst
