"""Trained for several steps, the ranks stay together and where a single process would be (loop.step)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Subject, claim, optional
from conformance.loop import programs, single
from conformance.loop.judging import judge_all
from conformance.loop.programs import Batches, Values

SEED = 5
PRINTED_BOUND = 1e-3  # the cheatsheet's, for the spread over ranks
BY_FAR = 20  # how many times the control without synchronisation must exceed it
RATES = [0.1, 0.1, 0.1, 0.1]
CHANGED_RATES = [0.1, 0.02, 0.2, 0.05]
WRAPPED = ["DataParallel|average_gradients"]


def _data(world_size: int, *, micro: int = 1) -> Batches:
    return single.batches(17, world_size, steps=len(RATES), rows=4, micro=micro, real=True)


def _spread(parameters: Sequence[Mapping[str, Tensor | None]]) -> float:
    return max(single.apart(values, parameters[0]) for values in parameters)


def _assert_control_drifts(model: str, data: Batches, rates: list[float], momentum: float) -> float:
    """Precondition: the same ranks without synchronisation end far apart, or their agreement would say nothing."""
    controls = [
        single.alone(model, data, rank, rates=rates, seed=SEED, momentum=momentum).parameters
        for rank in range(len(data[0]))
    ]
    drift = _spread(controls)
    assert drift > BY_FAR * PRINTED_BOUND, f"without synchronisation the ranks end only {drift:g} apart"
    return drift


def _judge_together(judge: Judge, parameters: list[Values], drift: float) -> None:
    found = [
        (name, expect.ranks_agree([values[name] for values in parameters], what=name))  # type: ignore[misc]
        for name in parameters[0]
    ]
    judge_all(judge, found, "the parameters after training are the same bits on every rank")
    judge.at_most(
        _spread(parameters),
        PRINTED_BOUND,
        message=f"the spread over ranks, which is {drift:.3g} without synchronisation",
    )


def _judge_as_single(judge: Judge, parameters: list[Values], wanted: single.Run, bound: float) -> None:
    assert wanted.moved > 100 * bound, f"the parameters moved by {wanted.moved:g} only, the bound is {bound:g}"
    found = [
        (f"rank {rank}", expect.within(value, expected, bound, what=name))
        for rank, values in enumerate(parameters)
        for name, expected in wanted.parameters.items()
        if (value := values[name]) is not None
    ]
    judge_all(judge, found, "the parameters after training against a single process on the global batch")


def _train(
    subject: Subject,
    judge: Judge,
    world_size: int,
    model: str,
    *,
    rates: list[float] = RATES,
    momentum: float = 0.0,
    save_after: int = -1,
    micro: int = 1,
) -> None:
    data = _data(world_size, micro=micro)
    drift = _assert_control_drifts(model, data, rates, momentum) if micro == 1 else float("nan")
    reports = subject.run(
        programs.train,
        world_size,
        model,
        single.own(data, world_size),
        seed=single.own_seeds(SEED, world_size),
        loss="squared",
        rates=rates,
        momentum=momentum,
        real=True,
        save_after=save_after,
    ).values
    parameters = [report["parameters"] for report in reports]
    _judge_together(judge, parameters, drift)
    bound = single.rounding_bound(model, data, rates=rates, seed=SEED, momentum=momentum)
    _judge_as_single(
        judge, parameters, single.train(model, data, rates=rates, seed=SEED, optimizer=single.Sgd(momentum)), bound
    )


@claim("loop.step", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("momentum", [0.0, 0.9], ids=["sgd", "momentum"])
@pytest.mark.parametrize("model", ["mlp", "tied", "shared", "uneven"])
def test_ranks_stay_together_and_with_a_single_process(
    subject: Subject, judge: Judge, model: str, momentum: float, world_size: int
) -> None:
    _train(subject, judge, world_size, model, momentum=momentum)


@claim("loop.step", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_learning_rate_that_changes_is_seen(subject: Subject, judge: Judge, world_size: int) -> None:
    _train(subject, judge, world_size, "mlp", rates=CHANGED_RATES, momentum=0.9)


@claim("loop.step", tier="contract", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_training_goes_on_from_a_saved_state(subject: Subject, judge: Judge, world_size: int) -> None:
    _train(subject, judge, world_size, "mlp", momentum=0.9, save_after=1)


@claim("loop.step", tier="contract", provides=WRAPPED)
@optional("DataParallel.no_sync")
@pytest.mark.parametrize("world_size", [2, 3])
def test_accumulating_ranks_stay_with_a_single_process(subject: Subject, judge: Judge, world_size: int) -> None:
    _train(subject, judge, world_size, "mlp", momentum=0.9, micro=2)


@claim("loop.step", tier="exotic", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [1, 5, 8])
def test_unusual_numbers_of_ranks_stay_with_a_single_process(subject: Subject, judge: Judge, world_size: int) -> None:
    data = _data(world_size)
    reports = subject.run(
        programs.train,
        world_size,
        "mlp",
        single.own(data, world_size),
        seed=single.own_seeds(SEED, world_size),
        loss="squared",
        rates=RATES,
        momentum=0.9,
        real=True,
    ).values
    parameters = [report["parameters"] for report in reports]
    bound = single.rounding_bound("mlp", data, rates=RATES, seed=SEED, momentum=0.9)
    _judge_as_single(
        judge, parameters, single.train("mlp", data, rates=RATES, seed=SEED, optimizer=single.Sgd(0.9)), bound
    )
