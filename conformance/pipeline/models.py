"""Stages of pipelines on which execution goes wrong in its own ways, and microbatches that floats carry exactly.

Weights, inputs and targets are small integers and activations are cut off at 3, so that with a power of two of rows in
each microbatch and in all of them gradients are exact in any order of summation. Imports no pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fixtures.models import fill, rows

WIDTH = 4
WORDS = 6  # numbers that an embedding knows


def small(x: Tensor) -> Tensor:
    """Integers stay integers, and small."""
    return functional.hardtanh(x, -3, 3)


class Plain(nn.Module):
    """A layer with its bias. In evaluation its result is twice as large: training is not to be done there."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        out = small(self.layer(x))
        return out if self.training else 2 * out


class Frozen(Plain):
    """The weight does not learn; the bias does, and what comes before."""

    def __init__(self) -> None:
        super().__init__()
        self.layer.weight.requires_grad_(False)


class Still(Plain):
    """Nothing of it learns."""

    def __init__(self) -> None:
        super().__init__()
        self.requires_grad_(False)


class Several(nn.Module):
    """Passes on two activations, whole numbers that say which rows to take, and a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.narrow = nn.Linear(WIDTH, 2, bias=False)

    def forward(self, x: Tensor, *others: Tensor) -> Any:
        """[rows, WIDTH], [rows, 2] of floats, [rows] of int64, [rows] of bool; only the first at the beginning."""
        side, places, mask = others or (x[:, :2], torch.arange(len(x)).flip(0), x[:, 0] > 0)
        out = small(self.layer(x))[places % len(x)]  # also where a trial run brings other numbers
        side = small(side + self.narrow(x)) + torch.where(mask[:, None], side, 0.0)
        return out, side, places.roll(1), ~mask


class Gathering(nn.Module):
    """`Several`, and of its outputs the two that learn."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Several()

    def forward(self, *inputs: Tensor) -> Tensor:
        """To [rows, WIDTH]."""
        out, side, _, _ = self.inner(*inputs)
        return torch.cat([out[:, :2] + side, out[:, 2:]], 1)


class Sometimes(Plain):
    """Looks at what comes in only where the first number of the microbatch is positive; its bias is always used."""

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]; the first column stays what it is, and does not learn."""
        first = x.detach()[:, :1]
        used = self.layer(x) if bool(first[0, 0] > 0) else self.layer.bias.expand(len(x), WIDTH)
        return torch.cat([first, small(used)[:, 1:]], 1)


class Keeping(Plain):
    """Leaves the first column as it is."""

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WIDTH]."""
        return torch.cat([x[:, :1], small(self.layer(x))[:, 1:]], 1)


class Linear(nn.Linear):
    """A layer and nothing else: smooth, for real numbers."""

    def __init__(self) -> None:
        super().__init__(WIDTH, WIDTH)


class Embedding(nn.Embedding):
    """A table of rows by number."""

    def __init__(self) -> None:
        super().__init__(WORDS, WIDTH)


class Unembedding(nn.Module):
    """The same table as the output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(WORDS, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """[rows, WIDTH] to [rows, WORDS]."""
        return x @ self.weight.t()


MODELS: Mapping[str, Callable[[int, int], nn.Module]] = {  # of stage and number of stages
    "plain": lambda stage, count: Plain(),
    "linear": lambda stage, count: Linear(),
    "frozen": lambda stage, count: (Still, Frozen, Plain)[stage % 3](),
    "several": lambda stage, count: Gathering() if stage == count - 1 else Several(),
    "sometimes": lambda stage, count: Sometimes() if stage == count - 1 else Keeping(),
    "nothing": lambda stage, count: nn.Hardtanh(-3, 3) if stage % 2 == count % 2 else Plain(),
    "tied": lambda stage, count: Embedding() if stage == 0 else Unembedding() if stage == count - 1 else Plain(),
}


def build(model: str, count: int, dtype: torch.dtype, *, real: bool = False, ones: bool = False) -> list[nn.Module]:
    """All `count` stages, with the same weights wherever they are built; what is tied has equal values.

    With `ones`, all weights are 1 or -1: so few bits stay exact in bfloat16.
    """
    stages = [fill(MODELS[model](stage, count), _seed(model, stage, count), real=real) for stage in range(count)]
    for parameter in (p for stage in stages for p in stage.parameters()):
        parameter.data = (parameter.data.sign() if ones else parameter.data).to(dtype)
    return stages


def one(model: str, stage: int, count: int, dtype: torch.dtype, state: Mapping[str, Tensor]) -> nn.Module:
    """One of the stages, with the weights that `build` gave it."""
    module = MODELS[model](stage, count).to(dtype)
    module.load_state_dict(dict(state))
    return module


def _seed(model: str, stage: int, count: int) -> int:
    """Seeds with which no stage is cut off from the loss."""
    if model == "tied" and stage == count - 1:
        return 0
    return stage + {"sometimes": 259}.get(model, 0)


def data(
    model: str, sizes: Sequence[int], dtype: torch.dtype, *, real: bool = False
) -> tuple[list[Tensor], list[Tensor]]:
    """Microbatches of these numbers of rows, and their targets."""
    total = sum(sizes)
    width = WORDS if model == "tied" else WIDTH
    targets = rows(total, 12, real=real, width=width).to(dtype)
    if model == "tied":
        inputs = torch.randint(WORDS, (total,), generator=torch.Generator().manual_seed(11))
    else:
        inputs = rows(total, 11, real=real, width=width).to(dtype)
    if model == "sometimes":  # every second microbatch goes through the last stage unseen
        marks = [torch.full((size,), 1.0 - 2.0 * (place % 2)) for place, size in enumerate(sizes)]
        inputs[:, 0] = torch.cat(marks).to(dtype)
    return _cut(inputs, sizes), _cut(targets, sizes)


def _cut(batch: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    return [part.clone() for part in torch.split(batch, list(sizes))]


def weighted(output: Tensor, target: Tensor) -> Tensor:
    """A mean over rows whose gradients are exact for integers and a power of two of rows."""
    return (output * target).sum() / len(output)


def squared(output: Tensor, target: Tensor) -> Tensor:
    """A mean over rows of squares, for real numbers."""
    return (output - target).square().sum() / len(output)
