"""Every rank ends a step with the mean of the ranks' gradients (loop.mean), and with nothing of the step before."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch

from conformance.checks import Judge, Subject, claim, optional
from conformance.loop import programs, single
from conformance.loop.judging import gradients_as, judge_all
from conformance.loop.programs import Batches, Values
from conformance.verdict import Witness
from fixtures.world.per_rank import PerRank

SEED = 1  # of rank 0's weights; the others begin with others, so that a missing broadcast shows here too
WRAPPED = ["DataParallel|average_gradients"]


def _train(subject: Subject, world_size: int, model: str, data: Batches, **options: Any) -> list[Any]:
    """What the ranks report, each of which has its own rows and its own seed."""
    own, seeds = single.own(data, world_size), single.own_seeds(SEED, world_size)
    return subject.run(programs.train, world_size, model, own, seed=seeds, **options).values


def _judge_gradients(
    judge: Judge,
    reports: Sequence[Any],
    expected: Sequence[Values],
    what: str,
    faults: Callable[[], Mapping[str, Sequence[Values]]] = dict,
) -> None:
    """Every rank has the expected gradients after every step; `faults` are, by name, what others make of step 0."""
    found = [
        (f"rank {rank}, step {step}", gradients_as(report["gradients"][step], values))
        for rank, report in enumerate(reports)
        for step, values in enumerate(expected)
    ]

    def explain() -> str | None:
        seen = [report["gradients"][0] for report in reports]
        fitting = [
            name
            for name, by_rank in faults().items()
            if all(gradients_as(values, wrong).matches for values, wrong in zip(seen, by_rank, strict=True))
        ]
        return fitting[0] if len(fitting) == 1 else None

    judge_all(judge, found, what, explain=explain)


def _assert_tells_faults_apart(by_rank: Sequence[Values], mean: Values) -> None:
    """Precondition: every gradient is there, differs between ranks, and the mean is none of what faults would give."""
    for name, value in mean.items():
        if value is None or value.numel() == 0:
            continue
        assert value.any(), f"the mean gradient of {name} is zero"
        if len(by_rank) > 1:
            locals_ = [by[name] for by in by_rank]
            assert not any(local is not None and torch.equal(local, value) for local in locals_), (
                f"{name} agrees anyhow"
            )


def _mean_of_ranks(model: str, by_rank: Sequence[Sequence[programs.Rows]], **options: Any) -> Values:
    values = [single.of_rank(model, micro, seed=SEED, **options) for micro in by_rank]
    mean = single.mean(values)
    _assert_tells_faults_apart(values, mean)
    return mean


def _one_step(subject: Subject, judge: Judge, world_size: int, model: str) -> None:
    data = single.batches(3, world_size)
    expected = _mean_of_ranks(model, data[0], scale=float(world_size))
    whole = single.of_global_batch(model, data[0], seed=SEED, scale=float(world_size))
    assert all(value is None or torch.equal(value, whole[name]) for name, value in expected.items())  # type: ignore[arg-type]
    reports = _train(subject, world_size, model, data, scale=float(world_size))
    what = f"the gradients of the {model} model, against those of the global batch"
    _judge_gradients(judge, reports, [expected], what, lambda: _faults(model, data[0], float(world_size)))


def _faults(model: str, by_rank: Sequence[Sequence[programs.Rows]], scale: float) -> dict[str, list[Values]]:
    """What each rank has after a step in which nothing was summed, or in which ranks began with their own weights."""
    size = len(by_rank)
    own = [single.of_rank(model, micro, seed=SEED, scale=scale) for micro in by_rank]
    begun = zip(by_rank, single.own_seeds(SEED, size).values, strict=True)
    apart = [single.of_rank(model, micro, seed=seed, scale=scale) for micro, seed in begun]
    divided = [{name: None if value is None else value / size for name, value in values.items()} for values in own]
    return {"own_gradient": own, "own_gradient_divided": divided, "own_weights": [single.mean(apart)] * size}


@claim("loop.mean", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("model", ["mlp", "tied", "frozen", "shared", "uneven"])
def test_gradients_are_those_of_the_global_batch(subject: Subject, judge: Judge, model: str, world_size: int) -> None:
    _one_step(subject, judge, world_size, model)


@claim("loop.mean", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
def test_unequal_batches_give_the_mean_of_means_which_is_not_the_global_gradient(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    sizes = [rank + 1 for rank in range(world_size)]
    data = single.batches(5, world_size, rows=sizes)
    scale = float(world_size * math.lcm(*sizes, sum(sizes)))
    expected = _mean_of_ranks("mlp", data[0], scale=scale)
    whole = single.of_global_batch("mlp", data[0], seed=SEED, scale=scale)
    apart = single.apart(expected, whole)
    assert apart > 0, "the condition says nothing: with these rows both are equal"
    reports = _train(subject, world_size, "mlp", data, scale=scale)
    _judge_gradients(judge, reports, [expected], f"the mean over ranks of {sizes} rows")
    judge.holds(
        expected="the mean of the ranks' gradients",
        observed=f"the mean, up to {apart:g} away from the gradient of all {sum(sizes)} rows",
        witness=Witness.MODEL,
        message=f"with {sizes} rows per rank the mean of means is not the gradient of the global batch",
    )


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("accumulate", [pytest.param("no_sync", marks=optional("DataParallel.no_sync")), "each"])
def test_accumulated_gradients_are_those_of_all_microbatches(
    subject: Subject, judge: Judge, accumulate: str, world_size: int
) -> None:
    data = single.batches(7, world_size, micro=3, steps=2)
    _several_steps(subject, judge, world_size, data, model="mlp", accumulate=accumulate)


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
def test_backward_passes_that_come_before_one_finish_are_all_counted_once(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    data = single.batches(17, world_size, micro=2, steps=1)
    _several_steps(subject, judge, world_size, data, model="mlp", accumulate="late-finish")


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("model", ["mlp", "shared"])
def test_several_forward_passes_before_one_backward_are_reduced_together(
    subject: Subject, judge: Judge, model: str, world_size: int
) -> None:
    data = single.batches(8, world_size, micro=2, steps=2)
    _several_steps(subject, judge, world_size, data, model=model, accumulate="one-backward")


def _several_steps(
    subject: Subject, judge: Judge, world_size: int, data: Batches, *, model: str, accumulate: str, **options: Any
) -> None:
    scale = float(world_size ** len(data[0][0]))  # a reduction for each microbatch divides as often
    expected = [_mean_of_ranks(model, by_rank, scale=scale) for by_rank in data]
    reports = _train(subject, world_size, model, data, scale=scale, accumulate=accumulate, **options)
    what = f"the gradients of {len(data[0][0])} microbatches ({accumulate})"
    _judge_gradients(judge, reports, expected, what)


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("active", [[True, False], [False, True], [True, False, True], [False, True, False]], ids=str)
def test_a_rank_that_did_not_use_a_parameter_counts_as_zero(subject: Subject, judge: Judge, active: list[bool]) -> None:
    world_size = len(active)
    data = single.batches(9, world_size, steps=2)
    scale = float(world_size)
    reports = _train(subject, world_size, "optional", data, scale=scale, active=PerRank(active))
    expected = [
        single.mean(
            [
                single.of_rank("optional", micro, seed=SEED, scale=scale, active=used)
                for micro, used in zip(by_rank, active, strict=True)
            ]
        )
        for by_rank in data
    ]
    _judge_gradients(judge, reports, expected, f"the gradients with a layer that ranks use as {active}")


@claim("loop.mean", tier="exotic", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [1, 5, 8])
@pytest.mark.parametrize("model", ["mlp", "uneven"])
def test_gradients_are_the_mean_on_unusual_numbers_of_ranks(
    subject: Subject, judge: Judge, model: str, world_size: int
) -> None:
    _one_step(subject, judge, world_size, model)


@claim("loop.mean", tier="exotic", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("model", ["scalar", "mixed"])
def test_gradients_of_unusual_parameters_are_the_mean(
    subject: Subject, judge: Judge, model: str, world_size: int
) -> None:
    _one_step(subject, judge, world_size, model)


@claim("loop.mean", tier="exotic", provides=WRAPPED)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=["float64", "bfloat16"])
def test_gradients_of_other_dtypes_are_the_mean(subject: Subject, judge: Judge, dtype: torch.dtype) -> None:
    data = single.batches(4, 2, rows=1)  # one row per rank: bfloat16 carries integers up to 256
    expected = _mean_of_ranks("mlp", data[0], scale=2.0, dtype=dtype)
    largest = max(float(value.abs().max()) for value in expected.values() if value is not None)
    assert largest * 2 * 2 <= 256, f"bfloat16 does not carry {largest}"
    reports = _train(subject, 2, "mlp", data, scale=2.0, dtype=dtype)
    _judge_gradients(judge, reports, [expected], f"the gradients in {dtype}")


# -- nothing is carried over -------------------------------------------------------------------------------------------


@claim("loop.zero-grad", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("model", ["mlp", "frozen", "unused"])
def test_each_step_has_its_own_gradients_and_none_where_nothing_was_used(
    subject: Subject, judge: Judge, model: str, world_size: int
) -> None:
    _fresh_gradients(subject, judge, world_size, model, set_to_none=True)


@claim("loop.zero-grad", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
def test_gradients_zeroed_in_place_carry_nothing_over(subject: Subject, judge: Judge, world_size: int) -> None:
    _fresh_gradients(subject, judge, world_size, "mlp", set_to_none=False)


@claim("loop.zero-grad", tier="exotic", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [1, 5, 8])
def test_gradients_are_fresh_on_unusual_numbers_of_ranks(subject: Subject, judge: Judge, world_size: int) -> None:
    _fresh_gradients(subject, judge, world_size, "unused", set_to_none=True)


def _fresh_gradients(subject: Subject, judge: Judge, world_size: int, model: str, *, set_to_none: bool) -> None:
    """Three steps on other rows each, from weights that stay: what is carried over would be seen in the second."""
    data = single.batches(13, world_size, steps=3)
    scale = float(world_size)
    expected = [_mean_of_ranks(model, by_rank, scale=scale) for by_rank in data]
    assert single.apart(expected[0], expected[1]) > 0
    reports = _train(subject, world_size, model, data, scale=scale, set_to_none=set_to_none)
    _judge_gradients(judge, reports, expected, f"the gradients of the {model} model, step by step")
