"""Programs with ZeRO-3 that the tests of `impls` run on ranks."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from fixtures.witness import memory
from fixtures.world.context import RankContext
from impls.mesh import GlooMesh
from impls.reference import fully_shard
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


# -- values ------------------------------------------------------------------------------------------------------------


def trained(ctx: RankContext, optimizer: str, options: dict[str, Any]) -> float:
    """Four steps, every other one of two microbatches."""
    alone, steps = menagerie(), range(4)
    train_alone(alone, optimizer_of(alone, optimizer), ctx.world_size, steps)
    model = fully_shard(menagerie(), **options)
    train(model, optimizer_of(model, optimizer), ctx.rank, steps)
    return difference(model.full_parameters(), alone)


def gradients(ctx: RankContext, options: dict[str, Any]) -> float:
    model = fully_shard(menagerie(), **options)
    loss_of(model, ctx.rank).backward()
    return gradient_error(model, mean_gradients(menagerie(), ctx.world_size))


def two_forwards(ctx: RankContext, options: dict[str, Any], together: bool) -> float:
    """Two forward passes before the first backward."""
    model = fully_shard(menagerie(), **options)
    losses = [loss_of(model, ctx.rank, microbatch) for microbatch in range(2)]
    if together:
        sum(losses).backward()
    else:
        losses[0].backward()
        losses[1].backward()
    return gradient_error(model, mean_gradients(menagerie(), ctx.world_size, microbatches=2))


def backward_twice(ctx: RankContext) -> float:
    """One graph, two backward passes."""
    model = fully_shard(menagerie())
    loss = loss_of(model, ctx.rank)
    loss.backward(retain_graph=True)
    loss.backward()
    means = mean_gradients(menagerie(), ctx.world_size)
    return gradient_error(model, {name: None if mean is None else 2 * mean for name, mean in means.items()})


def few_elements(ctx: RankContext, numel: int, dtype: torch.dtype) -> tuple[dict[str, Tensor], list[int]]:
    """Parameters of `numel` elements and of none; what they are after a step, and how much of them this rank held."""

    class Vector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vector = nn.Parameter(torch.arange(numel).to(dtype))
            self.nothing = nn.Parameter(torch.empty(0, 2, dtype=dtype))

        def forward(self) -> Tensor:
            return (self.vector[1:] * ctx.rank).sum().real + self.nothing.sum().real

    model = fully_shard(Vector())
    optimizer = torch.optim.SGD(model.parameters(), lr=2)
    model().backward()
    optimizer.step()
    return model.full_parameters(), [parameter.numel() for parameter in model.parameters()]


def sub_group(ctx: RankContext) -> float:
    """Sharded over the odd ranks only, whose mean it is."""
    odd = list(range(1, ctx.world_size, 2))
    group = dist.new_group(odd)
    if ctx.rank not in odd:
        return 0.0
    model = fully_shard(nn.Linear(1, 3, bias=False), group=group)
    model(torch.full((1, 1), float(ctx.rank))).sum().backward()
    gradient = whole_gradients(model, group)["weight"]
    assert gradient is not None
    return float((gradient - sum(odd) / len(odd)).abs().max())


def clipped(ctx: RankContext, max_norm: float) -> tuple[float, float, float]:
    """The norm that it had, that of a single process, and the error of the clipped gradient."""
    model, alone = fully_shard(menagerie()), menagerie()
    loss_of(model, ctx.rank).backward()
    means = mean_gradients(alone, ctx.world_size)
    for name, parameter in alone.named_parameters():
        parameter.grad = means[name]
    norms = float(model.clip_grad_norm_(max_norm)), float(nn.utils.clip_grad_norm_(alone.parameters(), max_norm))
    return *norms, gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


# -- units -------------------------------------------------------------------------------------------------------------


def left_out_of_the_loss(ctx: RankContext, everywhere: bool) -> tuple[list[Tensor | None], list[float]]:
    """The middle one of three units is called, but has no part in the loss of rank 0, or in that of any rank."""

    class Middle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.middle, self.last = (nn.Linear(1, 1, bias=False) for _ in range(3))
            for layer in self.children():
                nn.init.ones_(layer.weight)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            middle = self.middle(x)
            return self.last(x if everywhere or ctx.rank == 0 else middle)

    model = fully_shard(Middle())
    model(torch.full((1, 1), 2.0)).sum().backward()
    return list(whole_gradients(model).values()), [float(p.sum()) for p in model.full_parameters().values()]


def another_order(ctx: RankContext) -> float:
    """Later passes leave units out or call them in another order, so what is prefetched is not what is used."""
    torch.manual_seed(0)
    module = nn.ModuleDict({name: nn.Linear(3, 3) for name in "abcd"})

    class Path(nn.Module):
        def __init__(self, layers: nn.ModuleDict) -> None:
            super().__init__()
            self.layers = layers

        def forward(self, x: Tensor, path: str) -> Tensor:
            for name in path:
                x = self.layers[name](x)
            return x

    alone, model = Path(copy.deepcopy(module)), fully_shard(Path(module))
    x = torch.ones(2, 3)
    for path in ("abcd", "abd", "dcba", "aabb", "abcd", ""):
        (model(x, path).sum() + 0 * x.sum().requires_grad_()).backward()
        (alone(x, path).sum() + 0 * x.sum().requires_grad_()).backward()
    return gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


def nested_units(ctx: RankContext) -> None:
    """A unit that calls another one, which it was handed over behind PyTorch's back."""

    class Outer(nn.Module):
        def __init__(self, other: nn.Module) -> None:
            super().__init__()
            self.own, self.others = nn.Linear(2, 2), [other]

        def forward(self, x: Tensor) -> Tensor:
            return self.own(self.others[0](x))

    layer = nn.Linear(2, 2)
    fully_shard(nn.Sequential(layer, Outer(layer)))(torch.ones(1, 2))


def checkpointed(ctx: RankContext, where: str, options: dict[str, Any]) -> float:
    """Activations are computed again in backward: around a unit, inside it, around two units, around everything."""

    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return torch.tanh(self.second(torch.tanh(self.first(x))))

    class Outside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(Inside() for _ in range(3))
            self.tied = self.blocks[0].first.weight  # so it belongs to the root, and is needed in the blocks

        def forward(self, x: Tensor) -> Tensor:
            if where == "around two":
                x = checkpoint(nn.Sequential(*self.blocks[:2]), x, use_reentrant=False)
                return self.blocks[2](x)
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if where == "around" else block(x)
            return x

    torch.manual_seed(0)
    module = Outside()
    alone = copy.deepcopy(module)
    if where == "inside":
        for block in module.blocks:
            plain = block.forward
            block.forward = lambda x, plain=plain: checkpoint(plain, x, use_reentrant=False)  # type: ignore[method-assign]
    model = fully_shard(module, **options)
    x = torch.ones(2, 4, requires_grad=True)
    out = checkpoint(model, x, use_reentrant=False) if where == "everything" else model(x)
    out.square().sum().backward()
    alone(torch.ones(2, 4)).square().sum().backward()
    assert not any(unit.is_gathered for unit in model._units)
    return gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


def after_an_exception(ctx: RankContext, in_backward: bool) -> float:
    """A pass that dies half way on every rank must not spoil the next step, nor keep units whole."""
    model = fully_shard(layers(width=3))

    def fail(*_: Any) -> None:
        raise ArithmeticError

    def fail_later(_: nn.Module, args: tuple[Tensor]) -> None:
        args[0].register_hook(fail)

    hook = model.module[2].register_forward_pre_hook(fail_later if in_backward else fail)
    try:
        model(torch.ones(1, 3)).sum().backward()
    except ArithmeticError:
        hook.remove()
        model.zero_grad()
    model(torch.ones(1, 3)).sum().backward()
    alone = layers(width=3)
    alone(torch.ones(1, 3)).sum().backward()
    return gradient_error(model, {name: parameter.grad for name, parameter in alone.named_parameters()})


def cast_afterwards(ctx: RankContext) -> None:
    fully_shard(nn.Linear(2, 2)).double()(torch.ones(1, 2, dtype=torch.float64))


# -- memory and traffic ------------------------------------------------------------------------------------------------


def whole_bytes(model: FullySharded) -> list[int]:
    """Bytes of each unit that is here whole, or on its way."""
    sizes = [sum(flat.whole.untyped_storage().nbytes() for flat in unit.flats) for unit in model._units]
    return [size for size in sizes if size]


def most_whole(ctx: RankContext, options: dict[str, Any]) -> tuple[int, int, int]:
    """How many units are whole at one time: in the second step's forward, in its backward, and after it."""
    model = fully_shard(layers(), **options)
    counts: list[int] = []

    def count(*_: Any) -> None:
        counts.append(len(whole_bytes(model)))

    model(torch.ones(1, 8)).sum().backward()  # in which the order is learnt
    for layer in model.module:
        layer.register_forward_hook(count, prepend=True)
        layer.register_full_backward_hook(count)
    out = model(torch.ones(1, 8, requires_grad=True))
    in_forward = max(counts)
    counts.clear()
    out.sum().backward()
    return in_forward, max(counts), len(whole_bytes(model))


def at_rest(ctx: RankContext, train: bool) -> tuple[dict[str, int], int, int]:
    """Bytes by category after forward and backward, or after a forward without gradients; those whole; P's bytes."""
    module = menagerie()
    kept = list(module.parameters())  # as an optimizer that was built too early would
    total = sum(parameter.nbytes for parameter in kept)
    gc.collect()
    model = fully_shard(module)
    if train:
        loss = loss_of(model, ctx.rank)  # the graph is alive while we look
        loss.backward(retain_graph=True)
    else:
        with torch.no_grad():
            loss = loss_of(model, ctx.rank)
    reading = memory.weigh("at rest", module=model, kept=kept)
    return dict(reading.categories), sum(whole_bytes(model)), total


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Bytes that this rank's all-gathers bring to it from others, and that it pushes."""
    count = {"gathered": 0, "num_gathers": 0, "pushed": 0}
    gather, push = dist.all_gather, GlooMesh.push

    def counting_gather(parts: list[Tensor], shard: Tensor, **kwargs: Any) -> Any:
        count["gathered"] += (len(parts) - 1) * shard.nbytes
        count["num_gathers"] += 1
        return gather(parts, shard, **kwargs)

    def counting_push(mesh: GlooMesh, dst: int, tensor: Tensor) -> None:
        count["pushed"] += tensor.nbytes
        push(mesh, dst, tensor)

    dist.all_gather, GlooMesh.push = counting_gather, counting_push  # type: ignore[method-assign]
    try:
        yield count
    finally:
        dist.all_gather, GlooMesh.push = gather, push  # type: ignore[method-assign]


def traffic(ctx: RankContext, options: dict[str, Any], steps: int) -> tuple[dict[str, int], int]:
    """Of so many steps; and the bytes T of the parameters, none of which is padding on two or four ranks."""
    model = fully_shard(layers(), **options)
    with counted() as count:
        for _ in range(steps):
            model(torch.ones(1, 8)).sum().backward()
    return count, ctx.world_size * sum(parameter.nbytes for parameter in model.parameters())


# -- state -------------------------------------------------------------------------------------------------------------


def saved(ctx: RankContext, optimizer: str) -> dict[str, Any]:
    """The whole state after two steps."""
    model = fully_shard(menagerie())
    inner = optimizer_of(model, optimizer)
    train(model, inner, ctx.rank, range(2))
    inner.param_groups[1]["lr"] = 0.03  # as a scheduler would
    return model.full_state(inner)


def resumed(ctx: RankContext, optimizer: str, state: dict[str, Any], data_ranks: int) -> float:
    """Two more steps of what `data_ranks` ranks began, here on another number, which all compute the same mean."""
    alone = menagerie()
    inner = optimizer_of(alone, optimizer)
    train_alone(alone, inner, data_ranks, range(2))
    inner.param_groups[1]["lr"] = 0.03
    train_alone(alone, inner, data_ranks, range(2, 4))

    torch.manual_seed(9)
    model = fully_shard(Menagerie())
    inner = optimizer_of(model, optimizer)
    model.load_full_state(state, inner)
    assert model.module.counter == state["buffers"]["counter"]
    for step in range(2, 4):
        inner.zero_grad()
        for rank in range(data_ranks):
            for microbatch in range(1 + step % 2):
                (loss_of(model, rank, microbatch) / data_ranks).backward()
        inner.step()
    return difference(model.full_parameters(), alone)


def loaded_into_one_group(ctx: RankContext, state: dict[str, Any]) -> None:
    model = fully_shard(menagerie())
    model.load_full_state(state, torch.optim.SGD(model.parameters(), lr=0.1))
