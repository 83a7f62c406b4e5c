"""What users of data parallelism rely on without saying so: any size and magnitude, any use of the wrapped module."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Subject, claim, optional
from conformance.loop import programs, relied_programs, single
from conformance.loop.judging import gradients_as, judge_all
from conformance.loop.programs import Values
from fixtures import models
from fixtures.world.per_rank import PerRank

WRAPPED = ["DataParallel|average_gradients"]
SHAPES = relied_programs.SHAPES
LARGE = [[70_001], [301, 299], [3]]  # the first two are larger than any other gradient here, and their sizes are odd
DETAIL = 2**26 + 1  # needs 27 bits: float32 has 24, float64 has 53
HUGE = 2.0**90


def _sum(shapes: Sequence[Sequence[int]], seed: int, ranks: Sequence[int]) -> list[Tensor]:
    weights = [models.coefficients(shapes, 100 * seed + rank) for rank in ranks]
    return [torch.stack(of_one).sum(0) for of_one in zip(*weights, strict=True)]


def _expected(shapes: Sequence[Sequence[int]], seed: int, ranks: Sequence[int]) -> Values:
    """Each rank sends as many times a small integer as there are ranks, so that the mean is the sum of the integers."""
    return {f"values.{index}": total for index, total in enumerate(_sum(shapes, seed, ranks))}


def _judge_steps(judge: Judge, reports: Sequence[Sequence[Values]], expected: Sequence[Values], what: str) -> None:
    found = [
        (f"rank {rank}, step {step}", gradients_as(observed, wanted))
        for rank, report in enumerate(reports)
        for step, (observed, wanted) in enumerate(zip(report, expected, strict=True))
    ]
    judge_all(judge, found, what)


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("bucket_cap_mb", [None, 0.3])
def test_large_gradients_are_the_mean_in_every_element(
    subject: Subject, judge: Judge, bucket_cap_mb: float | None
) -> None:
    plain = [[False] * len(LARGE), [True] * len(LARGE)]  # none frozen, all used
    weights = single.coefficients(LARGE, 3, range(2))
    reports = subject.run(programs.bag, 3, LARGE, *plain, weights, bucket_cap_mb=bucket_cap_mb).values
    _judge_steps(
        judge, reports, [_expected(LARGE, step, range(3)) for step in range(2)], "the gradients of large parameters"
    )


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize(
    ("dtype", "factor"), [(torch.float32, HUGE), (torch.float32, 1 / HUGE), (torch.float64, DETAIL)], ids=str
)
def test_gradients_of_any_magnitude_and_detail_are_the_mean(
    subject: Subject, judge: Judge, dtype: torch.dtype, factor: float
) -> None:
    world_size, scale = 3, 3.0 * factor
    data = single.batches(4, world_size)
    expected = single.mean([single.of_rank("mlp", micro, seed=1, scale=scale, dtype=dtype) for micro in data[0]])
    own, seeds = single.own(data, world_size), single.own_seeds(1, world_size)
    reports = subject.run(programs.train, world_size, "mlp", own, seed=seeds, scale=scale, dtype=dtype).values
    steps = [report["gradients"] for report in reports]
    _judge_steps(judge, steps, [expected], f"gradients in {dtype} that are multiples of {factor:g}")


@claim("loop.mean", tier="contract", provides=["DataParallel"])
@pytest.mark.parametrize("training", [True, False])
def test_wrapped_module_is_called_as_it_was(subject: Subject, judge: Judge, training: bool) -> None:
    seeds, rows = single.own_seeds(5, 2), PerRank([models.rows(2, 40 + rank) for rank in range(2)])
    reports = subject.run(relied_programs.called, 2, seeds, rows, training=training).values
    found = [
        comparison
        for rank, report in enumerate(reports)
        for comparison in (
            (f"rank {rank}, training mode", expect.same(report["training"], training)),
            (f"rank {rank}, which parameters learn", expect.same(report["learns"], [False, True, True])),
            (f"rank {rank}, a graph without gradients", expect.same(report["graph"], False)),
            (f"rank {rank}, results and the input's gradient", expect.same(report["wrapped"], report["bare"])),
        )
    ]
    judge_all(judge, found, "a wrapped module against the bare one, called with a keyword")


@claim("loop.mean", tier="contract", provides=WRAPPED)
def test_gradients_are_the_mean_in_evaluation_mode_too(subject: Subject, judge: Judge) -> None:
    reports = subject.run(relied_programs.evaluated, 2, single.coefficients(SHAPES, 2, [0, 7, 1])).values
    expected = [_expected(SHAPES, step, range(2)) for step in range(2)]
    _judge_steps(judge, reports, expected, "gradients in evaluation mode, and after a pass without gradients")


@claim("loop.mean", tier="contract", provides=WRAPPED)
def test_a_pass_without_gradients_before_backward_changes_none(subject: Subject, judge: Judge) -> None:
    reports = subject.run(relied_programs.looked_at, 2, single.coefficients(SHAPES, 2, [0, 7, 1, 8])).values
    expected = [_expected(SHAPES, step, range(2)) for step in range(2)]
    _judge_steps(judge, reports, expected, "gradients with a pass under no_grad between forward and backward")


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("world_size", [2, 3])
def test_two_replicas_share_a_backward_pass(subject: Subject, judge: Judge, world_size: int) -> None:
    shapes = [SHAPES, SHAPES[::-1]] * 2
    weights = [single.coefficients(of_one, world_size, [step]) for step, of_one in enumerate(shapes)]
    own = PerRank([[of_rank[0] for of_rank in ranks] for ranks in zip(*(w.values for w in weights), strict=True)])
    reports = subject.run(relied_programs.side_by_side, world_size, own).values
    expected = [_expected(of_one, step, range(world_size)) for step, of_one in enumerate(shapes)]
    _judge_steps(judge, reports, expected, "the gradients of two wrapped modules")


@claim("loop.mean", tier="exotic", provides=["DataParallel"])
def test_second_backward_through_one_graph_loses_nothing(subject: Subject, judge: Judge) -> None:
    """It is reduced like the first, or stays on its rank, as with torch's own DDP: one reduction for each forward."""
    weights = single.coefficients(SHAPES, 2, range(2))
    reports = subject.run(relied_programs.backward_twice, 2, weights).values
    mean = _expected(SHAPES, 0, range(2))
    reduced: Values = {name: 2 * value for name, value in mean.items() if value is not None}
    alone: list[Values] = [
        {name: value + own for (name, value), own in zip(mean.items(), of_rank[0], strict=True) if value is not None}
        for of_rank in weights.values
    ]
    is_local = all(gradients_as(each["both"], own).matches for each, own in zip(reports, alone, strict=True))
    wanted = alone if is_local else [reduced, reduced]
    what = f"gradients where one graph was gone through twice; the second pass is {'local' if is_local else 'reduced'}"
    found = [
        (f"rank {rank}, {when}", gradients_as(reports[rank][key], expected))
        for rank in range(2)
        for key, when, expected in (
            ("both", "after both", wanted[rank]),
            ("next", "the next step", _expected(SHAPES, 1, range(2))),
        )
    ]
    judge_all(judge, found, what)


@claim("loop.mean", tier="exotic", provides=WRAPPED)
def test_gradients_that_lie_column_by_column_are_the_mean(subject: Subject, judge: Judge) -> None:
    reports = subject.run(relied_programs.transposed, 2, single.coefficients(SHAPES, 2, [0])).values
    _judge_steps(judge, reports, [_expected(SHAPES, 0, range(2))], "gradients of parameters that are stored transposed")


@claim("loop.mean", tier="contract", provides=WRAPPED)
@optional("DataParallel.no_sync")
def test_step_after_an_exception_in_no_sync_is_reduced(subject: Subject, judge: Judge) -> None:
    reports = subject.run(relied_programs.interrupted, 2, single.coefficients(SHAPES, 2, [0])).values
    _judge_steps(judge, reports, [_expected(SHAPES, 0, range(2))], "gradients after an exception inside no_sync()")


@claim("loop.mean", tier="contract", provides=WRAPPED)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_gradient_that_is_not_finite_on_one_rank_is_not_finite_on_all(
    subject: Subject, judge: Judge, value: float
) -> None:
    weights = single.coefficients(SHAPES, 3, [0])
    weights.values[1][0][0][1] = value  # an element of rank 1's first gradient
    reports = subject.run(relied_programs.steps, 3, weights).values
    expected = _expected(SHAPES, 0, range(3))
    first = expected["values.0"]
    assert first is not None
    first[1] = value
    _judge_steps(judge, reports, [expected], f"gradients with {value} on one rank")


@claim("loop.mean", tier="contract", provides=["DataParallel"])
@optional("DataParallel.group")
def test_replicas_of_a_group_are_those_of_its_ranks_only(subject: Subject, judge: Judge) -> None:
    groups = [[0, 2], [1, 3]]
    seeds, weights = single.own_seeds(30, 4), single.coefficients(SHAPES, 4, [0])
    reports = subject.run(relied_programs.in_groups, 4, groups, seeds, weights).values
    if not all(report["takes_group"] for report in reports):
        judge.not_provided(f"{subject.name}'s DataParallel does not take a group")
    found = []
    for ranks in groups:
        for rank in ranks:
            # Four times an integer from each, in a mean over two.
            expected: Values = {f"values.{index}": 2 * total for index, total in enumerate(_sum(SHAPES, 0, ranks))}
            report = reports[rank]
            found.append((f"rank {rank}, parameters", expect.same(report["after"], reports[ranks[0]]["before"])))
            found.append((f"rank {rank}, gradients", gradients_as(report["step"], expected)))
    judge_all(judge, found, f"replicas in the groups {groups}")
