"""What one rank holds under each ZeRO stage: to the byte the formula's share of a drawn model, and extras by name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.verdict import Tier, Witness
from conformance.zero import memory_programs as programs
from conformance.zero import peak_programs
from conformance.zero.held_memory import BUFFERS, NOTES, OTHER, Finding, Held, wrong_total
from conformance.zero.peaks import ROUNDING, Chain, run
from conformance.zero.scales import MOMENT, PROVIDES, Case, Scales, cases

MIB = 2**20
DEFAULT_CAP_MB = 25.0  # of those that cannot be told another
NUM_BUCKETS = 2  # one fills while one is on its way
NUM_ARRIVING = 2  # gradients of layers that have not been copied yet


def _stages(tier: Tier = Tier.CORE) -> pytest.MarkDecorator:
    marks = {
        "ddp": claim("zero.memory.ddp", tier=tier, provides=[PROVIDES["ddp"]]),
        "1": claim("zero.memory.1", tier=tier, provides=[PROVIDES["1"]]),
        "2": claim("zero.memory.2", tier=tier, provides=[PROVIDES["2"]]),
        "3": claim("zero.memory.3", tier=tier, provides=[PROVIDES["3"]]),
    }
    return pytest.mark.parametrize("stage", [pytest.param(stage, marks=mark) for stage, mark in marks.items()])


@_stages()
def test_a_rank_holds_the_formula_and_named_extras(subject: Subject, judge: Judge, stage: str) -> None:
    scales = Scales(subject, judge, stage)
    rules = scales.rules("adam", "momentum", "sgd", "adamw")
    judge.forall(cases(2, 3, 4, rules=rules), lambda case: _judge(judge, scales, case), max_examples=8)


@_stages()
def test_16_bit_parameters_with_an_fp32_optimizer(subject: Subject, judge: Judge, stage: str) -> None:
    scales = Scales(subject, judge, stage, torch.bfloat16)
    rules = scales.rules("master adam", "adam")
    judge.forall(cases(2, 3, 4, rules=rules), lambda case: _judge(judge, scales, case), max_examples=5)


@_stages(Tier.EXOTIC)
def test_odd_shapes_and_more_ranks(subject: Subject, judge: Judge, stage: str) -> None:
    scales = Scales(subject, judge, stage)
    rules = scales.rules("adam", "sgd")
    judge.forall(cases(5, 3, 8, rules=rules, odd=True), lambda case: _judge(judge, scales, case), max_examples=3)


@claim("zero.memory.2", provides=["Zero2Optimizer"])
def test_full_gradients_are_never_more_than_a_bucket(subject: Subject, judge: Judge) -> None:
    chain, bucket_cap_mb = _larger_than_its_buckets(subject)
    reports = run(subject, chain, "2", bucket_cap_mb=bucket_cap_mb)
    bucket_units = chain.units((bucket_cap_mb or DEFAULT_CAP_MB) * MIB)
    judge.that(
        expect.at_most(
            chain.units(max(report["peak"] for report in reports)),
            chain.share + NUM_BUCKETS * bucket_units + NUM_ARRIVING + ROUNDING,
        ),
        witness=Witness.MEMORY,
        unit=f"layers, of {chain.num_layers} in the model",
        message=(
            f"the peak of a backward pass on top of what was there: {chain.share:.1f} layers of gradient shards, "
            f"{NUM_ARRIVING} that arrive, and a bucket of {bucket_units:.0f} that fills while another is reduced"
        ),
        examples=chain.world_size,
    )


def _larger_than_its_buckets(subject: Subject) -> tuple[Chain, float | None]:
    """A chain that needs several buckets: small ones where their size can be told, else a large model."""
    if subject.run(peak_programs.takes_bucket_cap, 1).values[0]:
        return Chain(world_size=4, num_layers=32, width=256), 1.0
    return Chain(world_size=3, num_layers=24, width=1024), None


def _judge(judge: Judge, scales: Scales, case: Case) -> None:
    """Total bytes of every rank when the stage's formula holds, and no more once gradients are forgotten."""
    ranks, later = scales.weigh(case, MOMENT[scales.stage], programs.AT_REST)
    model, widths = scales.model(case.layers), scales.widths(case.rule)
    finding = wrong_total(scales.stage, model, widths, ranks)
    if finding.wrong:
        scales.broken(finding, ranks, case)
    _judge_forgotten(scales, case, ranks, later)
    share = widths.replicated(scales.stage) + widths.sharded(scales.stage) / case.world_size
    judge.holds(
        expected=f"{share * model.numel:,.0f}",
        observed=" to ".join(f"{value:,}" for value in sorted({min(_states(ranks)), max(_states(ranks))})),
        witness=Witness.MEMORY,
        unit="bytes",
        message=f"{widths.formula(scales.stage)} {MOMENT[scales.stage]}; extras: {_extras(finding, ranks)}",
    )


def _judge_forgotten(scales: Scales, case: Case, before: Sequence[Held], after: Sequence[Held]) -> None:
    for rank, (held, kept) in enumerate(zip(before, after, strict=True)):
        if kept.states > held.states:
            finding = Finding(
                wrong=f"rank {rank} holds more at rest than {MOMENT[scales.stage]}",
                expected=f"at most {held.states:,} bytes",
                observed=f"{kept.states:,} bytes",
            )
            scales.broken(finding, after, case)


def _states(ranks: Sequence[Held]) -> list[int]:
    return [rank.states for rank in ranks]


def _extras(finding: Finding, ranks: Sequence[Held]) -> str:
    named = {
        "padding, step counters and uneven shares": 0 if finding.shares is None else finding.shares.extra_bytes,
        "buckets": max(rank.of(OTHER) for rank in ranks) if finding.shares is None else 0,
        "notes in integers": max(rank.of(NOTES) for rank in ranks),
        "module buffers": max(rank.of(BUFFERS) for rank in ranks),
    }
    return ", ".join(f"{name} {value:,}" for name, value in named.items() if value)
