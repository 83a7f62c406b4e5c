"""Judging results: against the computation in one process, on every rank, and what became of the input's memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from conformance import expect
from conformance.checks import Judge
from conformance.collectives.layouts import lay_out
from conformance.expect import Comparison
from conformance.hints.patterns import pattern
from conformance.verdict import Witness
from fixtures import tolerances
from fixtures.draws import Case, total_of
from fixtures.world.outcome import Outcomes
from impls.words import number_of


def judge_sums(
    judge: Judge, case: Case, results: Sequence[Tensor], outcomes: Outcomes, *, more_roundings: int = 0
) -> None:
    """Every rank's result is the sum over ranks: bit for bit for exact values, else within the any-order bound."""
    case = dataclasses.replace(case, src=0)  # a sum has no root to be told
    inputs = case.inputs()
    found = [
        sum_comparison(result, inputs, exact=case.is_exact, what=f"rank {rank}, {case}", more_roundings=more_roundings)
        for rank, result in enumerate(results)
    ]
    for result, comparison in zip(results, found, strict=True):
        if not comparison.matches:
            told = MEAN_SEEN.format(size=case.world_size) if _is_mean(result, inputs) else ""
            judge.that(comparison, message=f"the sum over ranks{told}", outcomes=outcomes, data=by_rank(found))
    comparison = found[-1]
    tier = "exact values, bit for bit" if case.is_exact else "rounded values, within the bound of any order of addition"
    judge.that(comparison, message=f"the sum on every rank: {tier}")


MEAN_SEEN = (
    ": what came is the mean, the sum divided by {size}. Where that is meant, the table of adapters says so with "
    'op = "mean"'
)


def _is_mean(result: Tensor, inputs: Sequence[Tensor]) -> bool:
    """Whether a result that is no sum is the mean, up to rounding, and the sum is not all zeros."""
    if len(inputs) < 2 or not result.is_floating_point() or result.shape != inputs[0].shape:
        return False
    total = total_in_double(inputs)
    mean = total / len(inputs)
    return bool(total.any()) and torch.allclose(result.double(), mean, rtol=1e-2, atol=0.0)


def sum_comparison(
    result: Tensor, inputs: Sequence[Tensor], *, exact: bool, what: str, more_roundings: int = 0
) -> Comparison:
    """``result`` against the sum of ``inputs``, in the same dtype and shape."""
    expected = total_of(inputs)
    if exact or result.dtype != expected.dtype or result.shape != expected.shape:
        return expect.same_bits(result, expected, what)
    if result.is_complex():
        result, inputs = torch.view_as_real(result), [torch.view_as_real(tensor) for tensor in inputs]
    return _within_each(result, total_in_double(inputs), tolerances.any_order_sum(inputs, more_roundings), what)


def total_in_double(inputs: Sequence[Tensor]) -> Tensor:
    """The sum of real tensors in float64."""
    return total_of([tensor.to(torch.float64) for tensor in inputs])


def _within_each(result: Tensor, expected: Tensor, bound: Tensor, what: str) -> Comparison:
    """Each element within its own bound; shown is the element that comes closest to it, or exceeds it most."""
    if result.numel() == 0:
        return Comparison(matches=True, expected="no elements", observed="no elements", error=0.0)
    error = (result.to(torch.float64) - expected).abs()
    excess = torch.where(error.isnan(), torch.inf, error - bound)
    worst = int(excess.argmax())
    got, wanted = result.flatten()[worst].item(), expected.flatten()[worst].item()
    off, room = error.flatten()[worst].item(), bound.flatten()[worst].item()
    count = int((excess > 0).sum())
    return Comparison(
        matches=count == 0,
        pattern=pattern(result, expected) if count else {},
        expected=f"{wanted!r} within {room:.3g}",
        observed=f"{got!r}, off by {off:.3g}",
        message="" if count == 0 else f"{what}: {count} of {result.numel()} elements are outside the bound",
        error=off,
    )


def judge_copies(
    judge: Judge, expected: Tensor, results: Sequence[Tensor], outcomes: Outcomes, *, what: str, case: object
) -> None:
    """Every rank's result is ``expected``, bit for bit."""
    found = [expect.same_bits(result, expected, f"rank {rank}, {case}") for rank, result in enumerate(results)]
    for comparison in found:
        if not comparison.matches:
            judge.that(comparison, message=what, outcomes=outcomes, data=by_rank(found))
    judge.that(found[-1], message=f"{what} on every rank, bit for bit")


def by_rank(found: Sequence[Comparison]) -> dict[str, Any]:
    """Which ranks are right and which wrong, where there are several."""
    right = [rank for rank, comparison in enumerate(found) if comparison.matches]
    wrong = [rank for rank in range(len(found)) if rank not in right]
    return {"ranks": {"right": right, "wrong": wrong}} if len(found) > 1 else {}


def judge_parts(
    judge: Judge, case: Case, parts: Sequence[Tensor], outcomes: Outcomes, *, more_roundings: int = 0
) -> None:
    """The ranks' parts joined in rank order are the flat sum, padding at its end, and none is larger than its share."""
    case = dataclasses.replace(case, src=0)  # a sum has no root to be told
    numel = case.numel
    padding = sum(part.numel() for part in parts) - numel
    sizes = [part.numel() for part in parts]
    if not 0 <= padding < max(case.world_size, 1):
        judge.violated(
            f"{case}: the parts do not add up to the tensor: {number_of(numel, 'element')}, parts of {sizes}",
            expected=f"{number_of(numel, 'element')}, or up to {case.world_size - 1} more as padding",
            observed=f"{number_of(sum(sizes), 'element')}",
            outcomes=outcomes,
        )
    share = largest_share(case)
    if max(sizes) > share:
        judge.violated(
            f"{case}: a rank holds more than its part of the sum: parts of {sizes}",
            expected=f"at most {number_of(share, 'element')} on a rank",
            observed=f"{number_of(max(sizes), 'element')}",
            outcomes=outcomes,
        )
    inputs = [tensor.flatten() for tensor in case.inputs()]
    joined = torch.cat(list(parts))[:numel]
    what = f"parts of {sizes} in rank order, {case}"
    comparison = sum_comparison(joined, inputs, exact=case.is_exact, what=what, more_roundings=more_roundings)
    judge.that(comparison, message="rank r's part is chunk r of the sum", outcomes=outcomes)


def largest_share(case: Case) -> int:
    """Elements of the largest part: the flat tensor cut in N, or, where that gives more, its rows."""
    by_element = -(-case.numel // case.world_size)
    if not case.shape or case.numel == 0:
        return by_element
    rows = case.shape[0]
    return max(by_element, -(-rows // case.world_size) * (case.numel // rows))


def judge_memory(
    judge: Judge,
    case: Case,
    values: Sequence[tuple[Tensor, Tensor]],
    outcomes: Outcomes,
    *,
    in_place: bool,
    untouched_rank: int = -1,
) -> None:
    """Memory under and around the input, ``(memory, result)`` of each rank: as it was, or the result wholly in place.

    ``untouched_rank`` must be as it was in any case (a broadcast's root).
    """
    case = dataclasses.replace(case, src=max(untouched_rank, 0))
    for rank, (memory, result) in enumerate(values):
        given = case.inputs()[rank]
        before, _ = lay_out(given, case.layout)
        comparison = expect.same_bits(memory, before, f"rank {rank}, {case}")
        overwritten = in_place and result.shape == given.shape and result.dtype == given.dtype
        if not comparison.matches and overwritten and rank != untouched_rank:
            after, _ = lay_out(result, case.layout)
            comparison = expect.same_bits(memory, after, f"rank {rank}, {case}: neither the input nor the result")
        if not comparison.matches:
            judge.that(comparison, message="the memory of the input after the call", outcomes=outcomes)
    allowed = "as it was, or wholly the result" if in_place else "as it was"
    judge.holds(
        expected=allowed,
        observed=allowed,
        witness=Witness.VALUE,
        message=f"the input's memory, and what lies around it, is {allowed}",
    )
