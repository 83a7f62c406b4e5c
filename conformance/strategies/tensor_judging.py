"""How tensor-parallel layers are compared with the unsharded module: every rank, output, gradient and parameter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import expect
from conformance.checks import Judge, Subject, failure_text, says_not_provided, verdict_of
from conformance.expect import Comparison
from conformance.judge import Broken
from conformance.loop.judging import Named, judge_all
from conformance.strategies import tensor_programs as programs
from conformance.strategies.tensor_case import WAYS, Case, Yardstick, bounds, compute
from conformance.strategies.tensor_shards import Shard, held, locate
from conformance.verdict import Tier, Witness
from fixtures import blocks
from fixtures.world.outcome import Ending, Outcomes

Report = Mapping[str, Any]
Mark = Callable[..., pytest.MarkDecorator]
SUITE_COULD_NOT = "UnusableResult"  # what the suite itself raises in a rank about a result that fits no contract
LINEAR = {"width": 10, "inner": 24}  # 2, 3 and 4 divide 24, and no part of it is 10
ROWS = {"width": 36, "inner": 24}  # of an embedding, which some cut by its width
HEADS = {"width": 24, "inner": 48, "num_heads": 12}


def case_of(way: str, **options: Any) -> Case:
    """A case of the usual size; attention's numbers are exact over a sequence of one."""
    has_heads = WAYS[way][0] in ("attention", "block")
    usual: dict[str, Any] = dict(HEADS if has_heads else ROWS if way == "embedding" else LINEAR)
    wanted = usual | options
    if has_heads and wanted.get("exact", True):
        wanted |= {"shape": (3, 1)}
    return Case(way=way, **wanted)


def by_way(mark: Mark, names: Iterable[str], tier: Tier = Tier.CORE) -> list[Any]:
    """Parameters for a check of these ways, each with what it needs; `mark` makes the claim's marker."""
    return [pytest.param(name, marks=mark(tier=tier, provides=WAYS[name][1]), id=name) for name in names]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The ranks of one group beside the yardstick, and how far they may be from it."""

    case: Case
    ranks: Sequence[Report]
    yardstick: Yardstick
    limits: Mapping[str, float]


def judge_case(subject: Subject, judge: Judge, case: Case, world_size: int, *, may_refuse: str = "") -> None:
    """Run a case and compare. With `may_refuse`, an exception on every rank is an answer, too."""
    outcomes = subject.observe(programs.values, world_size, case.fields())
    first = outcomes[0].raised
    if may_refuse and first is not None and _refused(outcomes):
        judge.holds(
            expected=f"{may_refuse}: refused, or computed right",
            observed="refused on every rank",
            witness=Witness.VALUE,
            message=f"{may_refuse}: {first.type}: {first.text}",
            examples=world_size,
        )
        return
    if (verdict := verdict_of(outcomes)) is not None:
        raise Broken(verdict, failure_text(outcomes), outcomes=outcomes)
    judge_reports(judge, case, outcomes.values)


def judge_reports(judge: Judge, case: Case, reports: Sequence[Report]) -> None:
    """Compare the reports of all ranks, group by group."""
    middle = len(reports) // 2
    groups = [reports[:middle], reports[middle:]] if case.halves else [reports]
    how = "bit for bit" if case.exact else "within the bound of rounding"
    for half, ranks in enumerate(groups):
        compared = _beside(case, half, ranks)
        judge_all(judge, findings(compared), f"outputs, gradients and parameters against the unsharded module, {how}")


def _refused(outcomes: Outcomes) -> bool:
    raised = [outcome.raised for outcome in outcomes if outcome.ending is Ending.RAISED and outcome.raised]
    known = any(says_not_provided(outcome) for outcome in outcomes)
    return len(raised) == len(outcomes) and not known and all(SUITE_COULD_NOT not in error.type for error in raised)


def _beside(case: Case, half: int, ranks: Sequence[Report]) -> Compared:
    """The yardstick; of those with the activations that people use, where an implementation does not say which."""
    candidates: list[Callable[[Tensor], Tensor] | None] = [None]
    if not ranks[0]["knows_activation"]:
        candidates = [None, *(f for name, f in blocks.activations().items() if name != "relu")]
    for candidate in candidates:
        yardstick = compute(case, half, activation=candidate)
        bits = case.exact and candidate is None
        limits = bounds(case, yardstick, half, bits=bits, activation=candidate)
        found = Compared(case=case, ranks=ranks, yardstick=yardstick, limits=limits)
        if len(candidates) == 1 or all(comparison.matches for _, comparison in _outputs(found)):
            return found
    first = compute(case, half)
    return Compared(case=case, ranks=ranks, yardstick=first, limits=bounds(case, first, half, bits=case.exact))


# -- comparisons -------------------------------------------------------------------------------------------------------


def findings(compared: Compared) -> Iterator[Named]:
    """Outputs first, since all else follows from them; then what the input and the parameters get."""
    yield from _outputs(compared)
    for index, whole in enumerate(compared.yardstick.input_gradients):
        parts = [rank["input_gradients"][index] for rank in compared.ranks]
        yield from _whole_or_parts(parts, whole, compared.limits[f"input gradient {index}"], f"input gradient {index}")
    yield from _of_parameters(compared)


def _outputs(compared: Compared) -> Iterator[Named]:
    for index, whole in enumerate(compared.yardstick.outputs):
        parts = [rank["outputs"][index] for rank in compared.ranks]
        yield from _whole_or_parts(parts, whole, compared.limits[f"output {index}"], f"output {index}")


def _whole_or_parts(parts: Sequence[Tensor | None], whole: Tensor, bound: float, what: str) -> Iterator[Named]:
    """Each rank has all of it, or the ranks' parts side by side are all of it (and padding at the end)."""
    present = [part for part in parts if part is not None]
    if len(present) < len(parts):
        nothing = Comparison(matches=False, expected=expect.show(whole), observed="None", message="there is none")
        yield f"{what} on rank {[part is None for part in parts].index(True)}", nothing
        return
    if all(part.shape == whole.shape for part in present):
        for rank, part in enumerate(present):
            yield f"{what} on rank {rank}", expect.within(part, whole, bound)
        return
    first = present[0].shape
    dims = [dim for dim in range(min(len(first), whole.dim())) if first[dim] != whole.shape[dim]]
    joined = torch.cat(present, dims[0]) if len(dims) == 1 and len(first) == whole.dim() else present[0]
    if dims and joined.dim() == whole.dim() and joined.shape[dims[0]] > whole.shape[dims[0]]:
        joined = joined.narrow(dims[0], 0, whole.shape[dims[0]])
    yield f"{what}, the parts of all ranks", expect.within(joined, whole, bound)


def located(ranks: Sequence[Report], wholes: Mapping[str, Tensor]) -> list[dict[str, Shard | None]]:
    """For each rank, what each of its parameters is."""
    return [{key: locate(key, value, wholes) for key, value in rank["start"].items()} for rank in ranks]


def _of_parameters(compared: Compared) -> Iterator[Named]:
    yardstick = compared.yardstick
    right: list[Shard] = []  # what some rank has the right gradient of
    for number, (rank, shards) in enumerate(zip(compared.ranks, located(compared.ranks, yardstick.start), strict=True)):
        for key, shard in shards.items():
            where = f"of {key} on rank {number}"
            if shard is None:
                yield f"the values {where}", _no_part(rank["start"][key])
                continue
            gradient = _gradient_of(compared, rank, key, shard)
            if gradient is not None:
                yield f"gradient {where}", gradient
                right += [shard] if gradient.matches else []
            yield f"values {where} after {compared.case.steps} steps", _values_of(compared, rank, key, shard)
    for name, whole in yardstick.gradients.items():
        lines = held(right).get(name, {})
        covered = any(set(lines.get(dim, ())) >= set(range(whole.shape[dim])) for dim in range(whole.dim()))
        if not covered:
            yield (
                f"gradient of {name}",
                Comparison(
                    matches=False,
                    expected=f"{expect.show(whole)}, on one rank at least",
                    observed="right for some lines, others are on no rank" if lines else "no rank has a right one",
                ),
            )


def _no_part(value: Tensor) -> Comparison:
    return Comparison(
        matches=False,
        expected="rows or columns of the module's parameters",
        observed=expect.show(value),
        message="it is no part of any parameter of the module",
    )


def _gradient_of(compared: Compared, rank: Report, key: str, shard: Shard) -> Comparison | None:
    """The gradient of a shard; None where there is none to be judged: frozen, or used by another rank instead."""
    observed, wholes = rank["gradients"][key], compared.yardstick.gradients
    learning = [name for name in shard.names if name in wholes]
    if not learning:
        if observed is None or not bool(observed.any()):
            return None
        return Comparison(
            matches=False, expected="none: it is frozen", observed=expect.show(observed), message="it does not learn"
        )
    if observed is None:
        return None
    known = {name: wholes.get(name, torch.zeros_like(compared.yardstick.start[name])) for name in shard.names}
    comparison = expect.within(
        observed, shard.expected(known, observed), max(compared.limits[f"gradient of {name}"] for name in learning)
    )
    is_elsewhere = not bool(observed.any()) and not comparison.matches and _is_vector(compared, shard)
    return None if is_elsewhere else comparison


def _is_vector(compared: Compared, shard: Shard) -> bool:
    """A bias that one rank adds for all may have no gradient on the others."""
    return all(compared.yardstick.start[name].dim() == 1 for name in shard.names)


def _values_of(compared: Compared, rank: Report, key: str, shard: Shard) -> Comparison:
    """After the steps; a vector whose gradient is on another rank stays as it was, and is used by nobody here."""
    observed = rank["parameters"][key]
    bound = max((compared.limits[f"parameter {name}"] for name in shard.names), default=0.0)
    comparison = expect.within(observed, shard.expected(compared.yardstick.parameters, observed), bound)
    if comparison.matches or not _is_vector(compared, shard):
        return comparison
    stayed = expect.within(observed, shard.expected(compared.yardstick.start, observed), 0.0)
    return stayed if stayed.matches and not _learned(rank, key) else comparison


def _learned(rank: Report, key: str) -> bool:
    gradient = rank["gradients"][key]
    return gradient is not None and bool(gradient.any())
