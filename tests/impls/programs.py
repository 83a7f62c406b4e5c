"""Programs that the tests of `impls` run on ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from fixtures.world.context import RankContext
from impls.mesh import GlooMesh
from impls.normalise import Wrapped, flat_tensor, one_tensor
from impls.reference import (
    DataParallel,
    average_gradients,
    batch_slice,
    gather_parameters,
    ring_allgather,
    ring_allreduce,
    ring_reduce_scatter,
    shard_gradients,
    sum_gradients,
    train,
    tree_allreduce,
    tree_broadcast,
)

FEATURES = 6
ROWS = 4


# -- mesh and collectives ----------------------------------------------------------------------------------------------


def all_collectives(ctx: RankContext, shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    """Every reference collective once over gloo, on a strided input; the last result is the input itself."""
    numel = torch.Size(shape).numel()
    whole = torch.arange(2 * numel).reshape(numel, 2) % 3 + ctx.rank
    tensor = whole.to(dtype)[:, 0].reshape(shape) if numel else torch.empty(shape, dtype=dtype)
    mesh, where = ctx.mesh(), (ctx.rank, ctx.world_size)
    return [
        ring_allreduce(mesh, *where, tensor),
        tree_allreduce(mesh, *where, tensor),
        ring_reduce_scatter(mesh, *where, tensor),
        ring_allgather(mesh, *where, tensor),
        tree_broadcast(mesh, *where, tensor, ctx.world_size - 1),
        tensor,
    ]


def send_first_then_change(ctx: RankContext) -> Tensor:
    """All ranks send before they receive, and spoil what they sent."""
    mesh = ctx.mesh()
    tensor = torch.full((3,), float(ctx.rank))
    mesh.send((ctx.rank + 1) % ctx.world_size, tensor)
    tensor.fill_(-1)
    received = mesh.recv((ctx.rank - 1) % ctx.world_size)
    mesh.flush()
    return received


def keep_order(ctx: RankContext) -> list[Tensor]:
    """Messages of several shapes and dtypes, some empty, from rank 0 to rank 1 by a mesh that is dropped at once."""
    messages = [torch.tensor(1.5), torch.empty(0, 2), torch.ones(2, 3, dtype=torch.int16), torch.tensor([True])]
    if ctx.rank == 0:
        mesh = GlooMesh()
        for message in messages:
            mesh.send(1, message)
        del mesh
        GlooMesh().flush()
        return messages
    return [GlooMesh().recv(0) for _ in messages]


def settle_with_what_was_taken(ctx: RankContext) -> list[bool]:
    """Rank 0 pushes two tensors and settles for the first, while rank 1 has taken that only; which are still held."""
    mesh = GlooMesh()
    if ctx.rank == 1:
        first = mesh.pull(0, torch.empty(3))
        dist.barrier()
        mesh.pull(0, torch.empty(3))
        return [bool((first == 1).all())]
    pushed = [torch.ones(3), torch.ones(3)]
    storages = [StorageWeakRef(tensor.untyped_storage()) for tensor in pushed]
    for tensor in pushed:
        mesh.push(1, tensor)
    del pushed, tensor
    mesh.settle(1, 1)
    held = [not storage.expired() for storage in storages]
    dist.barrier()
    mesh.flush()
    return held


def push_and_pull(ctx: RankContext, pushed: int, pulled: int) -> Tensor:
    """Rank 0 pushes so many floats, rank 1 pulls so many into every second place."""
    if ctx.rank == 0:
        ctx.mesh().push(1, torch.arange(float(pushed)))
        ctx.mesh().flush()
        return torch.empty(0)
    out = torch.zeros(2 * pulled)
    ctx.mesh().pull(0, out[::2])
    return out


def sub_group(ctx: RankContext) -> Tensor | None:
    """Ring among the odd ranks only."""
    odd = list(range(1, ctx.world_size, 2))
    group = dist.new_group(odd)
    if ctx.rank not in odd:
        return None
    mesh = GlooMesh(group)
    return ring_allreduce(mesh, mesh.rank, mesh.world_size, torch.tensor([float(ctx.rank)]))


# -- data parallel -----------------------------------------------------------------------------------------------------


class Zoo(nn.Module):
    """Tied, frozen, shared, double-precision and conditional parts in one module."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, FEATURES)
        self.frozen = nn.Linear(FEATURES, FEATURES).requires_grad_(False)
        self.tied = nn.Linear(FEATURES, FEATURES)
        self.tied.weight = self.first.weight
        self.shared = nn.Linear(FEATURES, FEATURES)
        self.wide = nn.Linear(FEATURES, 1).double()
        self.on_even = nn.Linear(FEATURES, FEATURES)
        self.never = nn.Linear(FEATURES, FEATURES)
        self.scale = nn.Parameter(torch.tensor(1.0))  # no dimension
        self.nothing = nn.Parameter(torch.empty(0))
        self.norm = nn.BatchNorm1d(FEATURES)

    def forward(self, x: Tensor, with_even: bool) -> Tensor:
        x = self.frozen(self.first(x)) * self.scale
        x = self.norm(self.shared(self.shared(self.tied(x))))
        if with_even:
            x = self.on_even(x)
        return self.wide(x.double()) + self.nothing.sum()


def rows_of(rank: int, microbatch: int = 0) -> Tensor:
    return torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(100 * rank + microbatch))


def backward(model: Callable[..., Tensor], rank: int, microbatch: int = 0) -> None:
    model(rows_of(rank, microbatch), with_even=rank % 2 == 0).square().mean().backward()


def gradients(module: nn.Module) -> dict[str, Tensor | None]:
    return {name: p.grad.clone() if p.grad is not None else None for name, p in module.named_parameters()}


def mean_over_ranks(module: nn.Module, world_size: int, microbatches: int = 1) -> dict[str, Tensor | None]:
    """What data parallelism must give, computed by this process alone: the ranks' gradients, one after the other."""
    replicas = []
    for rank in range(world_size):
        replica = copy.deepcopy(module)
        for microbatch in range(microbatches):
            backward(replica, rank, microbatch)
        replicas.append(gradients(replica))
    means: dict[str, Tensor | None] = {}
    for name in replicas[0]:
        present = [grads[name] for grads in replicas if grads[name] is not None]
        means[name] = sum(present) / world_size if present else None
    return means


def largest_difference(got: dict[str, Tensor | None], expected: dict[str, Tensor | None]) -> float:
    """Over all gradients; infinite when one is there and the other is not."""
    worst = 0.0
    for name, tensor in expected.items():
        other = got[name]
        if (tensor is None) != (other is None):
            return float("inf")
        if tensor is not None and other is not None and tensor.numel():
            worst = max(worst, float((tensor - other).abs().max()))
    return worst


def same_model(seed: int = 0) -> Zoo:
    torch.manual_seed(seed)
    return Zoo()


def replicas_after_construction(ctx: RankContext) -> list[Tensor]:
    model = DataParallel(same_model(seed=ctx.rank), ctx.world_size).module
    return [tensor.detach().float() for tensor in (*model.parameters(), *model.buffers())]


def one_step(ctx: RankContext, bucket_cap_mb: float) -> tuple[float, list[str]]:
    """Worst gradient error, and the parameters left without gradient."""
    module = same_model()
    expected = mean_over_ranks(module, ctx.world_size)
    ddp = DataParallel(module, ctx.world_size, bucket_cap_mb=bucket_cap_mb)
    backward(ddp, ctx.rank)
    got = gradients(module)
    ddp.sync_grads()  # a second reduction would be seen
    unchanged = largest_difference(got, gradients(module))
    return largest_difference(got, expected) + unchanged, [name for name, grad in got.items() if grad is None]


def accumulation(ctx: RankContext) -> tuple[float, int]:
    """Three microbatches, two of them inside no_sync; worst error and number of all-reduces up to the last."""
    module = same_model()
    expected = mean_over_ranks(module, ctx.world_size, microbatches=3)
    ddp = DataParallel(module, ctx.world_size)
    with ddp.no_sync():
        backward(ddp, ctx.rank, 0)
        backward(ddp, ctx.rank, 1)
        ddp.sync_grads()
    ctx.mark("last")
    backward(ddp, ctx.rank, 2)
    return largest_difference(gradients(module), expected), len(ddp._buckets)


def two_forwards_one_backward(ctx: RankContext) -> float:
    module = same_model().eval()  # no batch statistics: two forwards are independent
    expected = mean_over_ranks(module, ctx.world_size, microbatches=2)
    ddp = DataParallel(module, ctx.world_size)
    losses = [ddp(rows_of(ctx.rank, m), with_even=ctx.rank % 2 == 0).square().mean() for m in range(2)]
    sum(losses).backward()
    return largest_difference(gradients(module), expected)


def rank_without_backward(ctx: RankContext) -> float:
    """Rank 0 has nothing to differentiate and calls sync_grads; the others' gradients count."""
    module = nn.Linear(2, 1, bias=False)
    ddp = DataParallel(module, ctx.world_size)
    output = ddp(torch.ones(1, 2))
    if ctx.rank:
        output.sum().backward()
    ddp.sync_grads()
    assert module.weight.grad is not None
    return float((module.weight.grad - (ctx.world_size - 1) / ctx.world_size).abs().max())


def backward_after_an_exception(ctx: RankContext) -> float:
    """A backward that dies half way on every rank must not spoil the next step."""
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    ddp = DataParallel(module, ctx.world_size, bucket_cap_mb=0)

    def fail(_: Tensor) -> None:
        raise ArithmeticError

    hidden = module[0](torch.ones(1, 2))
    hidden.register_hook(fail)
    ddp(torch.ones(1, 2))
    try:
        module[1](hidden).sum().backward()
    except ArithmeticError:
        module.zero_grad()
    (ddp(torch.full((1, 2), float(ctx.rank))).sum()).backward()
    assert module[1].bias.grad is not None
    return float((module[1].bias.grad - 1).abs().max())


def marked_backward(ctx: RankContext) -> None:
    """Three layers, a bucket for each parameter; marked is the moment at which backward comes to the first layer."""
    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 1))
    ddp = DataParallel(layers, ctx.world_size, bucket_cap_mb=0)

    def mark_gradient(_: nn.Module, __: Any, output: Tensor) -> None:
        output.register_hook(lambda _: ctx.mark("first layer"))

    layers[0].register_forward_hook(mark_gradient)
    ddp(torch.ones(1, 2)).sum().backward()


def steps_with_momentum(ctx: RankContext, steps: int) -> list[Tensor]:
    module = same_model(seed=ctx.rank)
    ddp = DataParallel(module, ctx.world_size, bucket_cap_mb=0.0001)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9, weight_decay=0.1)
    for step in range(steps):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        backward(ddp, ctx.rank, step)
        optimizer.step()
    return [parameter.detach().double() for parameter in module.parameters()]


# -- calls and loop ----------------------------------------------------------------------------------------------------


def strided_gradient(ctx: RankContext, average: bool) -> tuple[Tensor, Tensor]:
    """A gradient that is a view of columns: its sum or mean, and the memory it lies in."""
    layer = nn.Linear(3, 2, bias=False)
    memory = torch.full((2, 6), 9.0)
    memory[:, ::2] = ctx.rank + 1.0
    layer.weight.grad = memory[:, ::2]
    if average:
        average_gradients(layer, ctx.world_size)
    else:
        sum_gradients(layer)
    return layer.weight.grad, memory


def gradient_on_rank_0_only(ctx: RankContext) -> list[Tensor | None]:
    layer, unused = nn.Linear(2, 1, bias=False), nn.Linear(1, 1, bias=False)
    if ctx.rank == 0:
        layer.weight.grad = torch.ones(1, 2)
    sum_gradients(nn.Sequential(layer, unused))
    return [layer.weight.grad, unused.weight.grad]


def shard_and_gather(ctx: RankContext) -> tuple[Tensor, Tensor]:
    gradient = torch.arange(7.0) * (ctx.rank + 1)
    master = torch.full((3,), float(ctx.rank))
    return shard_gradients(gradient), gather_parameters(master, torch.bfloat16)


def make_linear() -> nn.Module:
    return nn.Linear(2, 1)


def train_linear(ctx: RankContext, steps: int, batch_size: int, bare: bool) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs, targets = torch.randn(64, 2, generator=generator), torch.randn(64, 1, generator=generator)
    model = train(
        rank=ctx.rank, world_size=ctx.world_size, init_file=str(ctx.rendezvous_file()), make_model=make_linear,
        inputs=inputs, targets=targets, steps=steps, batch_size=batch_size, learning_rate=0.1, seed=3,
    )  # fmt: skip
    if bare:
        dist.destroy_process_group()
    return [parameter.detach() for parameter in model.parameters()]


def train_alone(steps: int, batch_size: int) -> list[Tensor]:
    """The same training in one process on the global batches."""
    generator = torch.Generator().manual_seed(1)
    inputs, targets = torch.randn(64, 2, generator=generator), torch.randn(64, 1, generator=generator)
    torch.manual_seed(3)
    model = make_linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        rows = batch_slice(step, 0, 1, batch_size)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs[rows]), targets[rows]).backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


# -- an implementation under check -------------------------------------------------------------------------------------


def call(ctx: RankContext, name: str, tensor: Tensor, **values: Any) -> Tensor:
    """Any collective of the world's implementation, every value on offer; the result as one flat tensor."""
    assert ctx.impl is not None
    mine = tensor * (ctx.rank + 1)
    offered = {"mesh": ctx.mesh(), "rank": ctx.rank, "world_size": ctx.world_size, "group": None, "src": 0, **values}
    return flat_tensor(ctx.impl.call(name, tensor=mine, **offered), given=mine)


def wrapped_step(ctx: RankContext) -> float:
    """One step through any data-parallel wrapper; worst gradient error."""
    assert ctx.impl is not None
    torch.manual_seed(0)
    module = nn.Linear(FEATURES, 2)
    inputs = [rows_of(rank) for rank in range(ctx.world_size)]
    alone = copy.deepcopy(module)
    (alone(torch.cat(inputs)).square().mean()).backward()
    ddp = Wrapped(ctx.impl, module, ctx.world_size)
    ddp(inputs[ctx.rank]).square().mean().backward()
    ddp.finish()
    difference = largest_difference(gradients(ddp.module), gradients(alone))
    del ddp
    return difference


def reduced_in_place(ctx: RankContext) -> Tensor:
    assert ctx.impl is not None
    tensor = torch.ones(3)
    return one_tensor(ctx.impl.call("all_reduce", tensor=tensor), given=tensor)
