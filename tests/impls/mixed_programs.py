"""Programs for mixed precision: on ranks, and in the test's own process. Imports no pytest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fixtures.witness import living
from fixtures.world.context import RankContext
from impls.reference import MixedPrecision, fully_shard

FEATURES = 6
ROWS = 4


class Net(nn.Module):
    """16-bit layers around an FP32 norm, one that is frozen and one that nobody uses."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.hidden = nn.Linear(FEATURES, FEATURES, dtype=dtype)
        self.norm = nn.LayerNorm(FEATURES)
        self.frozen = nn.Linear(FEATURES, FEATURES, dtype=dtype).requires_grad_(False)
        self.head = nn.Linear(FEATURES, 1, dtype=dtype)
        self.unused = nn.Linear(FEATURES, 1, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, FEATURES] to [rows, 1] in FP32."""
        half = self.hidden.weight.dtype
        x = self.norm(self.hidden(x.to(half)).float()).to(half)
        out: Tensor = self.head(self.frozen(x)).float()
        return out


def net(dtype: torch.dtype) -> Net:
    torch.manual_seed(3)
    return Net(dtype)


def loss_of(module: nn.Module, step: int) -> Tensor:
    x = torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(step))
    loss: Tensor = (module(x) - 1).square().mean()
    return loss


def groups_of(module: nn.Module) -> list[dict[str, Any]]:
    """Weights, and the rest with options of its own."""
    parameters = list(module.parameters())
    return [
        {"params": [p for p in parameters if p.dim() == 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() != 2], "lr": 2.0**-7},
    ]


def values(module: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


def train(
    module: nn.Module, optimizer: MixedPrecision, steps: Sequence[int], max_norm: float | None = None
) -> MixedPrecision:
    """The learning rate falls in each step."""
    for step in steps:
        optimizer.zero_grad()
        for group in optimizer.param_groups:
            group["lr"] *= 0.75
        optimizer.backward(loss_of(module, step))
        if max_norm is not None:
            optimizer.clip_grad_norm_(max_norm)
        optimizer.step()
    return optimizer


def train_by_hand(
    module: nn.Module,
    optimizer_cls: type[torch.optim.Optimizer],
    steps: Sequence[int],
    scale: float,
    max_norm: float | None = None,
    **options: Any,
) -> None:
    """The same with FP32 copies of everything under an optimizer of torch, copied to and fro."""
    twins = {parameter: parameter.detach().float().clone() for parameter in module.parameters()}
    groups = [{**group, "params": [twins[p] for p in group["params"]]} for group in groups_of(module)]
    optimizer = optimizer_cls(groups, **options)
    for step in steps:
        for group in optimizer.param_groups:
            group["lr"] *= 0.75
        (loss_of(module, step) * scale).backward()
        for parameter, twin in twins.items():
            twin.grad = None if parameter.grad is None else parameter.grad.float() / scale
        if max_norm is not None:
            nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], max_norm)
        optimizer.step()
        for parameter, twin in twins.items():
            parameter.data.copy_(twin)
            parameter.grad = None


# -- one parameter whose gradients are given ---------------------------------------------------------------------------


def one(value: float | Sequence[float], dtype: torch.dtype = torch.float16) -> nn.Parameter:
    return nn.Parameter(torch.tensor(value, dtype=dtype))


def step_with(optimizer: MixedPrecision, parameter: nn.Parameter, true_gradient: float) -> None:
    """As if backward() had found `true_gradient`."""
    parameter.grad = torch.full_like(parameter, true_gradient * optimizer.loss_scale)
    optimizer.step()


# -- on ranks ----------------------------------------------------------------------------------------------------------


def overflow_on_rank_1(ctx: RankContext, bad: float) -> list[tuple[float, int, float, int]]:
    """(loss scale, good steps, parameter, Adam's step) after a good step, one that overflows on rank 1, a good one.

    Every rank has a parameter of its own, as with ZeRO-3: no gradient tells one rank of the other's.
    """
    parameter = one([float(ctx.rank)])
    optimizer = MixedPrecision([parameter], torch.optim.Adam, lr=0.125, init_scale=8.0)
    seen = []
    for gradient in (1.0, bad if ctx.rank == 1 else 1.0, 1.0):
        step_with(optimizer, parameter, gradient)
        [state] = optimizer.state_dict()["state"].values()
        seen.append((optimizer.loss_scale, optimizer.good_steps, float(parameter), int(state["step"])))
    return seen


def train_as_shards(ctx: RankContext, dtype: torch.dtype) -> float:
    """One step with this rank's own parameter; the operations are in the trace."""
    parameter = one([1.0], dtype)
    optimizer = MixedPrecision([parameter], torch.optim.SGD, lr=0.5, init_scale=16.0)
    step_with(optimizer, parameter, 1.0)
    return float(parameter)


def clip_shards(ctx: RankContext) -> tuple[float, float]:
    """Ranks 0, 1 with gradients of 3 and 4: the whole one has norm 5. The norm, and what is left of the gradient."""
    parameter = one([0.0])
    optimizer = MixedPrecision([parameter], torch.optim.SGD, lr=1.0, init_scale=16.0)
    parameter.grad = torch.full_like(parameter, (3.0 + ctx.rank) * optimizer.loss_scale)
    norm = optimizer.clip_grad_norm_(1.0, sharded=True)
    optimizer.step()
    return float(norm), -float(parameter)


def fully_sharded(ctx: RankContext, steps: int, rate: float) -> tuple[Tensor, Tensor, int]:
    """A bfloat16 layer under ZeRO-3: its whole weight before and after, and the bytes of this rank's optimizer.

    Each rank's gradient is 2 * rank everywhere.
    """
    layer = nn.Linear(FEATURES, 1, bias=False, dtype=torch.bfloat16)
    nn.init.ones_(layer.weight)
    before = layer.weight.detach().clone()
    sharded = fully_shard(layer)
    optimizer = MixedPrecision(sharded.parameters(), torch.optim.SGD, lr=rate, momentum=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        optimizer.backward(sharded(torch.full((1, FEATURES), 2.0 * ctx.rank, dtype=torch.bfloat16)).float().sum())
        optimizer.step()
    held = sum(tensor.nbytes for tensor in optimizer.state_held()["optimizer"])
    return before, sharded.full_parameters()["weight"].detach().clone(), held


def weigh(ctx: RankContext, numel: int, layers: int, master: bool) -> int:
    """Readings between steps, found by walking and as the optimizer tells; the peak of a second step over them."""
    module = nn.ParameterList(nn.Parameter(torch.ones(numel, dtype=torch.bfloat16)) for _ in range(layers))
    optimizer = MixedPrecision(module.parameters(), torch.optim.Adam, master=master, lr=2.0**-7)

    def backward() -> None:
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)

    backward()
    optimizer.step()
    ctx.weigh("walked", module=module, optimizer=optimizer)
    ctx.weigh("told", **optimizer.state_held())
    with living.peak() as peak:
        optimizer.step()
    return peak.peak_bytes
