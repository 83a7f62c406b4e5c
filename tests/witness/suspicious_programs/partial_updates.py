"""Each step updates a part of the parameters only: another part on each rank, or one model of two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tests.witness.suspicious_programs.entering import on

NUM_STEPS = 6


def _average(parameters: Iterable[Tensor], world_size: int) -> None:
    for parameter in parameters:
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= world_size


def _spread(parameters: Sequence[Tensor], world_size: int) -> None:
    """Each parameter from the rank that has updated it."""
    for number, parameter in enumerate(parameters):
        dist.broadcast(parameter.data, src=number % world_size)


def _model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


@on(3)
def optimizer_of_every_third_parameter(rank: int, world_size: int, folder: Path) -> None:
    """ZeRO-1 by hand: all gradients are averaged, each rank updates its parameters and gives them to the others."""
    model = _model()
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters[rank::world_size], lr=0.1)
    torch.manual_seed(rank)
    for _ in range(NUM_STEPS):
        model.zero_grad()
        model(torch.randn(5, 4)).square().mean().backward()
        _average(parameters, world_size)
        optimizer.step()
        _spread(parameters, world_size)


@on(3)
def two_optimizers_that_share_out_their_parameters(rank: int, world_size: int, folder: Path) -> None:
    """Matrices and biases have an optimizer each, sharded; between their steps the ranks are apart."""
    model = _model()
    parameters = list(model.parameters())
    mine = parameters[rank::world_size]
    optimizers = [
        torch.optim.SGD([parameter for parameter in mine if parameter.dim() == dim], lr=0.1)
        for dim in (1, 2)
        if any(parameter.dim() == dim for parameter in mine)
    ]
    torch.manual_seed(rank)
    for _ in range(NUM_STEPS):
        model.zero_grad()
        model(torch.randn(5, 4)).square().mean().backward()
        _average(parameters, world_size)
        for optimizer in optimizers:
            optimizer.step()
        _spread(parameters, world_size)


@on(3)
def two_models_that_are_trained_in_turn(rank: int, world_size: int, folder: Path) -> None:
    """As a generator and a discriminator: one of both is updated in an iteration, with gradients left in the other."""
    torch.manual_seed(0)
    both = nn.ModuleDict({"generator": nn.Linear(4, 8), "discriminator": nn.Linear(8, 1)})
    generator, discriminator = both["generator"], both["discriminator"]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (generator, discriminator)]
    torch.manual_seed(rank)
    for step in range(NUM_STEPS):
        model = (generator, discriminator)[step % 2]
        both.zero_grad()
        discriminator(generator(torch.randn(5, 4))).mean().backward()
        _average(model.parameters(), world_size)
        optimizers[step % 2].step()
