"""A learning rate tuned on one rank works on four, because gradients are averaged (faq.mean-not-sum)."""

from __future__ import annotations

import pytest

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.expect import Comparison
from conformance.loop import programs, single
from conformance.loop.judging import judge_all
from conformance.loop.programs import Batches
from conformance.verdict import Witness

SEED = 6
GLOBAL_ROWS = 12  # split over 2, 3 or 4 ranks
RATES = [0.05] * 4  # tuned on one rank, let us say
FAR = 1000  # how many times the bound another learning rate ends away
ADAM_HIDES = 1e-3  # share of a rate's effect that Adam lets through: its eps against the gradient


def _whole() -> Batches:
    """The global batch of every step, on one rank."""
    return single.batches(23, 1, steps=len(RATES), rows=GLOBAL_ROWS, real=True)


def _split(whole: Batches, world_size: int) -> Batches:
    """The same rows over several ranks."""
    return [
        [[pair] for pair in zip(*(tensor.chunk(world_size) for tensor in by_rank[0][0]), strict=True)]
        for by_rank in whole
    ]


@claim("faq.mean-not-sum", provides=["DataParallel|average_gradients"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_a_learning_rate_tuned_on_one_rank_works_on_several(subject: Subject, judge: Judge, world_size: int) -> None:
    whole = _whole()
    one = single.train("mlp", whole, rates=RATES, seed=SEED)
    bound = single.rounding_bound("mlp", whole, rates=RATES, seed=SEED)
    summed = single.train("mlp", whole, rates=[world_size * rate for rate in RATES], seed=SEED)
    assert single.apart(summed.parameters, one.parameters) > FAR * bound

    reports = subject.run(
        programs.train,
        world_size,
        "mlp",
        single.own(_split(whole, world_size), world_size),
        seed=single.own_seeds(SEED, world_size),
        loss="squared",
        rates=RATES,
        real=True,
    ).values
    found = [
        (f"rank {rank}", expect.within(report["parameters"][name], value, bound, what=name))
        for rank, report in enumerate(reports)
        for name, value in one.parameters.items()
    ]
    judge_all(judge, found, f"SGD with one learning rate on one rank and on {world_size}, same global batch")
    judge_all(judge, _losses(reports, one, bound), "the losses of every step")
    _show_conditions(judge, whole, one, summed, world_size)


def _losses(reports: list[dict[str, list[float]]], one: single.Run, bound: float) -> list[tuple[str, Comparison]]:
    """The mean of the ranks' losses is the loss of the global batch."""
    means = [sum(report["losses"][step] for report in reports) / len(reports) for step in range(len(RATES))]
    return [
        (f"step {step}", expect.at_most(abs(mean - loss), bound * (1 + loss)))
        for step, (mean, loss) in enumerate(zip(means, one.losses, strict=True))
    ]


def _show_conditions(judge: Judge, whole: Batches, one: single.Run, summed: single.Run, world_size: int) -> None:
    """What the claim rests on: SGD, and the same global batch."""
    effect = single.apart(summed.parameters, one.parameters)
    judge.holds(
        expected="the sum is the mean with N times the learning rate",
        observed=f"parameters {effect:.3g} apart",
        witness=Witness.MODEL,
        message=f"with the sum each step is {world_size} times as long",
    )
    adam, adam_summed = (
        single.train("mlp", whole, rates=RATES, seed=SEED, optimizer=single.Adam(), scale=scale)
        for scale in (1.0, float(world_size))
    )
    hidden = single.apart(adam.parameters, adam_summed.parameters)
    assert hidden < ADAM_HIDES * effect, f"Adam shows the factor: {hidden:g} against {effect:g}"
    judge.holds(
        expected="Adam divides by the size of the gradient",
        observed=f"parameters {hidden:.3g} apart",
        witness=Witness.MODEL,
        message="Adam hides the factor, so SGD is used here",
    )
    larger = single.batches(23, world_size, steps=len(RATES), rows=GLOBAL_ROWS, real=True)
    grown = single.apart(single.train("mlp", larger, rates=RATES, seed=SEED).parameters, one.parameters)
    assert grown > 0
    judge.holds(
        expected="another batch, other steps",
        observed=f"parameters {grown:.3g} apart",
        witness=Witness.MODEL,
        message=f"with {GLOBAL_ROWS} rows on every rank the global batch has {world_size * GLOBAL_ROWS}, "
        "and the mean alone does not keep the tuned rate right",
    )
