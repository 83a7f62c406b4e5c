"""Cures that are right and written otherwise: no scenario holds it against them."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from fixtures.faults.gallery import find
from fixtures.faults.trying import runs_in
from fixtures.world.pool import WorldPool

OTHERWISE = '''
import random

import torch
import torch.distributed as dist


def cure_missing_broadcast(model):
    """All tensors in one flat broadcast."""
    tensors = [*model.parameters(), *model.buffers()]
    flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
    dist.broadcast(flat, src=0)
    with torch.no_grad():
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors])):
            tensor.copy_(part.view_as(tensor))


def cure_shared_shuffle_seed(num_samples, rank, world_size, seed):
    """Python's own generator, contiguous blocks, a tensor."""
    order = list(range(num_samples))
    random.Random(seed).shuffle(order)
    return torch.tensor(order).chunk(world_size)[rank]


def cure_unused_parameter_deadlock(module, world_size):
    """All gradients in one flat all-reduce; who used what is agreed on first, and what nobody used stays None."""
    parameters = list(module.parameters())
    used = torch.tensor([parameter.grad is not None for parameter in parameters], dtype=torch.int32)
    dist.all_reduce(used, op=dist.ReduceOp.MAX)
    parameters = [parameter for parameter, is_used in zip(parameters, used.tolist()) if is_used]
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([grad.flatten() for grad in grads]) / world_size
    dist.all_reduce(flat)
    dist.barrier()
    for parameter, part in zip(parameters, flat.split([grad.numel() for grad in grads])):
        parameter.grad = part.view_as(parameter)


def cure_slow_accumulation(module, microbatches, loss_fn):
    """All inside no_sync, and one all-reduce of its own making."""
    with module.no_sync():
        for rows in microbatches:
            loss_fn(module(rows)).backward()
    parameters = list(module.parameters())
    flat = torch.cat([parameter.grad.flatten() for parameter in parameters])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    for parameter, part in zip(parameters, flat.split([parameter.numel() for parameter in parameters])):
        parameter.grad.copy_(part.view_as(parameter))


def cure_sum_without_divide(module, world_size):
    """New gradients, by a product."""
    for parameter in module.parameters():
        parameter.grad = None if parameter.grad is None else parameter.grad * (1.0 / world_size)


def cure_pipeline_send_send(rank, world_size, tensor):
    """Both at once."""
    arrived = torch.empty_like(tensor)
    pair = [
        dist.P2POp(dist.isend, tensor, (rank + 1) % world_size),
        dist.P2POp(dist.irecv, arrived, (rank - 1) % world_size),
    ]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    return arrived
'''
NAMES = [name for name, scenario in find().items() if f"def {scenario.cure_name}(" in OTHERWISE]


@pytest.fixture(scope="module")
def otherwise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("impl") / "otherwise.py"
    path.write_text(OTHERWISE)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_right_cure_passes_however_it_is_written(worlds: WorldPool, otherwise: Path, name: str) -> None:
    run = functools.partial(runs_in(worlds), impl=str(otherwise))
    assert [(step.part, step.observed) for step in find()[name].reproduce(run) if not step.seen] == []


def test_all_that_a_cure_can_be_given_for_are_among_them() -> None:
    assert len(NAMES) == 6
