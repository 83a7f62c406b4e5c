"""The worker loop as a whole: equal starts (loop.same-init), own slices (loop.slices), its steps (loop.step)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Pool, Subject, claim
from conformance.loop import single, worker_programs
from conformance.loop.judging import gradients_as, judge_all
from conformance.loop.programs import Values
from conformance.verdict import Witness
from fixtures import models

BATCH = 2
STEPS = 3
DEADLINE_S = 20.0


def _data(world_size: int) -> tuple[Tensor, Tensor]:
    """Rows for all steps and some more; the first feature numbers them (scaled down where one trains on it)."""
    count = (STEPS + 1) * world_size * BATCH
    inputs, targets = models.rows(count, 31, real=True), models.rows(count, 32, real=True)
    return inputs, targets


def _numbered(world_size: int) -> tuple[Tensor, Tensor]:
    inputs, targets = _data(world_size)
    inputs[:, 0] = torch.arange(len(inputs))
    return inputs, targets


def _work(subject: Subject, world_size: int, model: str, data: tuple[Tensor, Tensor]) -> list[Any]:
    return subject.run(
        worker_programs.work,
        world_size,
        model,
        *data,
        steps=STEPS,
        batch_size=BATCH,
        bare=True,
        deadline_s=DEADLINE_S,
    ).values


def _rows_of(step: int, rank: int, world_size: int, batch_size: int) -> list[int]:
    """step*N*batch + rank*batch, and batch of them."""
    begin = step * world_size * batch_size + rank * batch_size
    return list(range(begin, begin + batch_size))


# -- the rendezvous ----------------------------------------------------------------------------------------------------


@claim("loop.rendezvous", provides=["train"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_the_worker_forms_the_group_through_the_file(subject: Subject, judge: Judge, world_size: int) -> None:
    reports = _work(subject, world_size, "mlp", _data(world_size))
    found = [
        (f"rank {rank}", expect.same(report["group"], (rank, world_size, "gloo", True)))
        for rank, report in enumerate(reports)
    ]
    judge_all(judge, found, "rank, size, backend of the worker's group, and whether the file was used")


# -- equal starts ------------------------------------------------------------------------------------------------------


@claim("loop.same-init", provides=["train"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_every_rank_builds_the_same_parameters(subject: Subject, judge: Judge, worlds: Pool, world_size: int) -> None:
    control = worlds.world(1)
    here, there = (control.run(worker_programs.seeded, "mlp", seed).values[0] for seed in (1, 2))
    assert single.apart(here, there) > 0, "the condition says nothing: two seeds give the same parameters"
    reports = _work(subject, world_size, "mlp", _data(world_size))
    found = [
        (name, expect.ranks_agree([report["start"][name] for report in reports], what=name))
        for name in reports[0]["start"]
    ]
    judge_all(judge, found, "the parameters that make_model built, before any broadcast")
    judge.holds(
        expected="another seed, other parameters",
        observed=f"up to {single.apart(here, there):.3g} apart for seed + rank",
        witness=Witness.VALUE,
        message="a seed that depends on the rank undoes it",
    )


# -- slices ------------------------------------------------------------------------------------------------------------

CASES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), min_size=1, max_size=6)  # step, batch size


@claim("loop.slices", provides=["batch_slice"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_each_rank_takes_its_own_slice(subject: Subject, judge: Judge, world_size: int) -> None:
    judge.forall(CASES, lambda cases: _slices(subject, judge, world_size, cases))


@claim("loop.slices", tier="exotic", provides=["batch_slice"])
@pytest.mark.parametrize("world_size", [1, 5, 8])
def test_each_of_an_unusual_number_of_ranks_takes_its_own_slice(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    judge.forall(CASES, lambda cases: _slices(subject, judge, world_size, cases), max_examples=5)


def _slices(subject: Subject, judge: Judge, world_size: int, cases: list[tuple[int, int]]) -> None:
    taken = subject.run(worker_programs.slices, world_size, cases).values
    found = [
        (f"rank {rank} in step {step} of {size} rows", expect.same(rows, _rows_of(step, rank, world_size, size)))
        for rank, by_case in enumerate(taken)
        for (step, size), rows in zip(cases, by_case, strict=True)
    ]
    judge_all(judge, found, "the rows that each rank takes")


@claim("loop.slices", provides=["train"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_the_worker_shows_its_model_the_rows_of_its_slices(subject: Subject, judge: Judge, world_size: int) -> None:
    reports = _work(subject, world_size, "recording", _numbered(world_size))
    found = [
        (
            f"rank {rank}",
            expect.same(
                report["seen"], [row for step in range(STEPS) for row in _rows_of(step, rank, world_size, BATCH)]
            ),
        )
        for rank, report in enumerate(reports)
    ]
    judge_all(judge, found, "the rows that reached the model's forward pass, in order")


# -- steps -------------------------------------------------------------------------------------------------------------


def _expected(start: Values, data: tuple[Tensor, Tensor], world_size: int) -> tuple[Values, float]:
    """SGD on the mean squared error of each global batch, in double precision; and how far that moved."""
    module = models.Mlp().double()
    module.load_state_dict({name: value.double() for name, value in start.items() if value is not None})
    inputs, targets = (tensor.double() for tensor in data)
    for step in range(STEPS):
        rows = slice(step * world_size * BATCH, (step + 1) * world_size * BATCH)
        module.zero_grad()
        models.squared(module(inputs[rows]), targets[rows], 1.0).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter in module.parameters():
                assert parameter.grad is not None
                parameter.sub_(worker_programs.RATE * parameter.grad)
    found: Values = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
    return found, single.apart(found, start)


BOUND = 1e-5  # float32 over 3 short steps: about 100 roundings of 6e-8, magnified by less than 2

FEWEST_MOVED = 1e-2  # what the slightest fault changes is of the order of what training changes


def _judge_worker(subject: Subject, judge: Judge, world_size: int) -> None:
    data = _data(world_size)
    reports = _work(subject, world_size, "mlp", data)
    wanted, moved = _expected(reports[0]["start"], data, world_size)
    assert moved > FEWEST_MOVED, f"training moved the parameters by {moved:g} only"
    agree = [
        (name, expect.ranks_agree([report["parameters"][name] for report in reports], what=name)) for name in wanted
    ]
    judge_all(judge, agree, "the worker's parameters are the same bits on every rank")
    found = [
        (f"rank {rank}", expect.within(report["parameters"][name], value, BOUND, what=name))
        for rank, report in enumerate(reports)
        for name, value in wanted.items()
        if value is not None
    ]
    judge_all(judge, found, "the worker's parameters against a single process on the global batch")


@claim("loop.step", provides=["train"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_the_workers_stay_together_and_with_a_single_process(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_worker(subject, judge, world_size)


@claim("loop.zero-grad", provides=["train"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_the_worker_clears_gradients_of_parameters_that_are_never_used(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    _judge_worker(subject, judge, world_size)
    reports = _work(subject, world_size, "unused", _data(world_size))
    found = [
        (f"rank {rank}", gradients_as(*({"extra": values["extra.weight"]} for values in (r["parameters"], r["start"]))))
        for rank, r in enumerate(reports)
    ]
    judge_all(judge, found, "a parameter whose gradient is None on all ranks stays as it was")
