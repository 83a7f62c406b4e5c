"""Correct: models that take steps of their own and are averaged now and then, in functions that keep nothing."""

import torch
import torch.distributed as dist
from torch import nn


def average(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter.data)
        parameter.data /= dist.get_world_size()


def train(period: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(dist.get_rank())
    for step in range(9):
        optimizer.zero_grad()
        model(torch.randn(4, 6)).square().mean().backward()
        optimizer.step()
        if step % period == period - 1:
            average(model)


def ensemble() -> None:
    """Every rank trains a model of its own, from weights of its own; what is summed is a table of counts."""
    torch.manual_seed(dist.get_rank())
    model = nn.Linear(6, 3, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        dist.all_reduce(torch.ones(3, 6, 1))
        optimizer.zero_grad()
        model(torch.randn(4, 6)).square().mean().backward()
        optimizer.step()


dist.init_process_group("gloo")
train(period=1)
train(period=4)
ensemble()
dist.destroy_process_group()
