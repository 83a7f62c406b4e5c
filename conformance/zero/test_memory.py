"""What one rank holds under each ZeRO stage: to the byte the formula's share of a drawn model, and extras by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.verdict import Tier, Witness
from conformance.zero import memory_programs as programs
from conformance.zero import peak_programs
from conformance.zero.expected_memory import Cut, Widths
from conformance.zero.held_memory import BUFFERS, NOTES, OTHER, Finding, Held, wrong_total
from conformance.zero.peaks import ROUNDING, Chain, run
from conformance.zero.scales import MOMENT, PROVIDES, Case, Scales, cases

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

MIB = 2**20
DEFAULT_CAP_MB = 25.0  # of those that cannot be told another
NUM_BUCKETS = 2  # one fills while one is on its way
NUM_ARRIVING = 2  # gradients of layers that have not been copied yet
NAMES = {  # of what a rank has beyond 1/N
    Cut.ELEMENTS: "padding and step counters",
    Cut.PARAMETERS: "larger shares of whole parameters",
    Cut.ROWS: "larger shares of whole rows",
}


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
    _examine(judge, scales, cases(2, 3, 4, rules=rules), max_examples=8)


@_stages()
def test_16_bit_parameters_with_an_fp32_optimizer(subject: Subject, judge: Judge, stage: str) -> None:
    scales = Scales(subject, judge, stage, torch.bfloat16)
    rules = scales.rules("master adam", "adam")
    _examine(judge, scales, cases(2, 3, 4, rules=rules), max_examples=5)


@_stages(Tier.EXOTIC)
def test_odd_shapes_and_more_ranks(subject: Subject, judge: Judge, stage: str) -> None:
    scales = Scales(subject, judge, stage)
    rules = scales.rules("adam", "sgd")
    _examine(judge, scales, cases(5, 3, 8, rules=rules, odd=True), max_examples=3)


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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A drawn model whose bytes are explained."""

    stage: str
    world_size: int
    rule: str
    widths: Widths
    numel: int
    share_bytes: float  # of the formula
    held_bytes: Sequence[int]  # on each rank
    extras: Mapping[str, int]  # by name, the most on any rank

    @property
    def formula(self) -> str:
        """Bytes per parameter on one of N ranks, as a text."""
        return self.widths.formula(self.stage)

    def bar(self) -> dict[str, object]:
        """Bytes per parameter for a picture: the mean of the ranks, beside the formula's."""
        parts = (self.widths.parameters, self.widths.gradients, self.widths.optimizer)
        return {
            "group": "DDP" if self.stage == "ddp" else f"ZeRO-{self.stage}",
            "x": str(self.world_size),
            "label": " + ".join(map(str, parts)),
            "observed": sum(self.held_bytes) / len(self.held_bytes) / self.numel,
            "formula": self.share_bytes / self.numel,
        }


def _examine(judge: Judge, scales: Scales, drawn: SearchStrategy[Case], *, max_examples: int) -> None:
    weighed: list[Weighed] = []
    judge.forall(drawn, lambda case: weighed.append(_weigh(scales, case)), max_examples=max_examples)
    largest = max(weighed, key=lambda found: found.share_bytes)
    names = dict.fromkeys(name for found in weighed for name in found.extras)
    extras = {name: max(found.extras.get(name, 0) for found in weighed) for name in names}
    named = ", ".join(f"{name} up to {value:,} bytes" for name, value in extras.items() if value)
    judge.holds(
        expected=f"{largest.share_bytes:,.0f} ({largest.formula})",
        observed=" to ".join(f"{value:,}" for value in sorted({min(largest.held_bytes), max(largest.held_bytes)})),
        witness=Witness.MEMORY,
        unit="bytes",
        message=f"states {MOMENT[scales.stage]}, {str(scales.dtype).removeprefix('torch.')}; extras: {named}",
        data={"bars": _bars(weighed)},
    )


def _bars(weighed: Sequence[Weighed]) -> list[dict[str, object]]:
    """Under Adam, one for each number of ranks and convention: of the largest model, where padding shows least."""
    largest: dict[tuple[int, Widths], Weighed] = {}
    for found in sorted(weighed, key=lambda found: found.numel):
        if found.rule.endswith(("adam", "adamw")):
            largest[found.world_size, found.widths] = found
    return [found.bar() for found in largest.values()]


def _weigh(scales: Scales, case: Case) -> Weighed:
    """Total bytes of every rank when the stage's formula holds, and no more once gradients are forgotten."""
    ranks, later = scales.weigh(case, MOMENT[scales.stage], programs.AT_REST)
    model, widths = scales.model(case.layers), scales.widths(case.rule)
    finding = wrong_total(scales.stage, model, widths, ranks)
    if finding.wrong:
        scales.broken(finding, ranks, case)
    _judge_forgotten(scales, case, ranks, later)
    share = widths.replicated(scales.stage) + widths.sharded(scales.stage) / case.world_size
    return Weighed(
        stage=scales.stage,
        world_size=case.world_size,
        rule=case.rule,
        widths=widths,
        numel=model.numel,
        share_bytes=share * model.numel,
        held_bytes=[rank.states for rank in ranks],
        extras=_extras(finding, ranks),
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


def _extras(finding: Finding, ranks: Sequence[Held]) -> dict[str, int]:
    """Bytes beyond the formula, by name: the most on any rank."""
    shares = finding.shares
    beyond = {"buckets": max(rank.of(OTHER) for rank in ranks)}  # of data parallelism, which has no shares
    return {
        **(beyond if shares is None else {NAMES[shares.cut]: shares.extra_bytes}),
        "module buffers": max(rank.of(BUFFERS) for rank in ranks),
        "notes": max(rank.of(NOTES) for rank in ranks),
    }
