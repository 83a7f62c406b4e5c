"""How many times less memory a rank needs under each ZeRO stage than under data parallelism, measured and in the limit.

Weighed on 2, 3 and 4 ranks in the accounting of mixed precision: 2 bytes for a parameter, 2 for its gradient, 12 for
its FP32 master copy and Adam's moments. All of them divide every tensor of the model, so that shares are exact.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from conformance.checks import Broken, Judge, Subject, claim
from conformance.verdict import Verdict, Witness
from conformance.zero import memory_programs as programs
from conformance.zero.expected_memory import SIXTEEN_BYTES, Widths, fit
from conformance.zero.held_memory import OTHER, Finding, Held, released_early
from conformance.zero.scales import MOMENT, PROVIDES, Case, Layers, Scales

MODEL: Layers = (((48, 48), (48,)), ((24, 48), (96,)))
SIZES = (2, 3, 4)
MANY = (8, 64)

sharded = pytest.mark.parametrize(
    "stage",
    [
        pytest.param("1", marks=claim("zero.saving.1", provides=[PROVIDES["1"]])),
        pytest.param("2", marks=claim("zero.saving.2", provides=[PROVIDES["2"]])),
        pytest.param("3", marks=claim("zero.saving.3", provides=[PROVIDES["3"]])),
    ],
)


@sharded
def test_the_factor_follows_the_formula(subject: Subject, judge: Judge, stage: str) -> None:
    scales, rule = _scales(subject, judge, stage)
    widths, numel = scales.widths(rule), scales.model(MODEL).numel
    means = {1: Fraction(widths.total * numel)} | {size: _mean_bytes(scales, rule, size) for size in SIZES}
    judge.holds(
        expected=_factors({size: widths.saving(stage, size) for size in SIZES}),
        observed=_factors({size: means[1] / means[size] for size in SIZES}),
        witness=Witness.MEMORY,
        message=(
            f"bytes per parameter: {_replica_bytes(subject, scales, rule) / numel:.2f} on a replica, "
            f"{_fitted(means, numel)} on a rank of N, on average. {_condition(stage, widths)}"
        ),
        examples=sum(SIZES),
    )


def _mean_bytes(scales: Scales, rule: str, world_size: int) -> Fraction:
    """What a rank holds on average; ends the check where it is not what the formula says."""
    case = Case(world_size=world_size, layers=MODEL, rule=rule)
    (ranks,) = scales.weigh(case, MOMENT[scales.stage])
    widths, model = scales.widths(rule), scales.model(MODEL)
    early = sum(released_early(scales.stage, model, widths, rank) for rank in ranks)
    mean = Fraction(sum(rank.states for rank in ranks) + early, world_size)
    factor = widths.saving(scales.stage, world_size)
    share = widths.total * model.numel / factor
    if not share <= mean <= share + model.counter_bytes * widths.has_counters:
        observed = float(widths.total * model.numel / mean)
        finding = Finding(
            wrong=f"a rank needs {observed:.2f} times less than a replica, not {float(factor):.2f} times",
            expected=f"{float(share):,.0f} bytes on a rank, on average ({widths.formula(scales.stage)})",
            observed=f"{float(mean):,.0f} bytes",
        )
        scales.broken(finding, ranks, case)
    return mean


def _scales(subject: Subject, judge: Judge, stage: str) -> tuple[Scales, str]:
    """In 16 bits with FP32 masters; in FP32, which has another factor, for those that take nothing else."""
    scales = Scales(subject, judge, stage, torch.bfloat16)
    try:
        (rule,) = scales.rules("master adam")
    except Broken as broken:
        if broken.verdict is not Verdict.NOT_PROVIDED:
            raise
        return Scales(subject, judge, stage), "adam"
    return scales, rule


def _replica_bytes(subject: Subject, scales: Scales, rule: str) -> int:
    """What an unsharded replica is weighed with, no implementation being asked."""
    (report,) = subject.run(programs.unsharded, 1, MODEL, rule=rule, dtype=scales.dtype).values
    return Held(by_category=report[programs.AFTER_STEP]["bytes"]).states


def _fitted(means: dict[int, Fraction], numel: int) -> str:
    """The bytes that were measured as a formula, and the factors that it gives for more ranks."""
    found = fit(means, numel)
    if found is None:  # step counters are not shared
        return "less"
    whole, shared = found
    factors = _factors({size: (whole + shared) / (whole + shared / size) for size in MANY})
    return f"{float(whole):.2f} + {float(shared):.2f}/N (so {factors})"


def _condition(stage: str, widths: Widths) -> str:
    limit = SIXTEEN_BYTES.saving_limit(stage)
    told = "The factor is N, for the states at rest" if limit is None else f"{limit} is the limit for many ranks"
    if widths.total == SIXTEEN_BYTES.total:
        return f"{told}, with 16 bytes per parameter"
    return f"{told}, with 16 bytes per parameter; this one has {widths.total}, and another factor"


def _factors(by_size: dict[int, Fraction]) -> str:
    return ", ".join(f"{float(factor):.2f} at N={size}" for size, factor in by_size.items())


@claim("zero.saving.ddp", provides=["DataParallel"])
def test_data_parallelism_saves_nothing(subject: Subject, judge: Judge) -> None:
    scales, rule = _scales(subject, judge, "ddp")
    widths, model = scales.widths(rule), scales.model(MODEL)
    held: dict[int, int] = {}
    for world_size in (1, *SIZES):
        case = Case(world_size=world_size, layers=MODEL, rule=rule)
        (ranks,) = scales.weigh(case, MOMENT["ddp"])
        held[world_size] = max(rank.states for rank in ranks)
        padding = model.whole_padding_bytes(widths.total, world_size)
        if not held[1] <= min(rank.states for rank in ranks) <= held[world_size] <= held[1] + padding:
            scales.broken(
                Finding(
                    wrong="what a rank holds depends on the number of ranks",
                    expected=f"{held[1]:,} bytes, as on one rank alone",
                    observed=", ".join(f"{rank.states:,}" for rank in ranks),
                ),
                ranks,
                case,
            )
    judge.holds(
        expected=f"{held[1]:,} whatever N",
        observed=", ".join(f"{value:,} (N={size})" for size, value in held.items()),
        witness=Witness.MEMORY,
        unit="bytes",
        message=f"parameters, gradients, optimizer state and buckets ({ranks[0].of(OTHER):,})",
        examples=sum(held),
    )
