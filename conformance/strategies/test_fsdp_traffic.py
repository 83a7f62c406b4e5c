"""FSDP gathers unit by unit and reduce-scatters (traffic), half as much again as DDP (link), in every pass (cost)."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from conformance.checks import Broken, Judge, Subject, claim
from conformance.collectives.traffic import logical_bytes
from conformance.verdict import Tier, Witness
from conformance.zero import traffic_programs as programs
from conformance.zero.stage_traffic import (
    Pass,
    Sizes,
    data,
    kept_fault,
    passes_of,
    sizes_of,
    steps_of,
    told,
    traffic_fault,
)
from conformance.zero.wire import judge_wire
from fixtures.world.outcome import Outcomes

STEPS = 3
LAYERS = 5
WIDE = 132  # a weight of 68 KiB, which 2, 3 and 4 ranks share evenly
ODD = 37  # divisible by no number of ranks


def _observe(
    subject: Subject,
    world_size: int,
    stage: str = "3",
    *,
    num_layers: int = LAYERS,
    width: int = WIDE,
    dtype: torch.dtype = torch.float32,
    micro: int = 1,
    keep: bool = False,
    headed: bool = False,
) -> Outcomes:
    return subject.run(
        programs.train,
        world_size,
        stage,
        num_layers=num_layers,
        width=width,
        steps=STEPS,
        dtype=dtype,
        micro=micro,
        keep=keep,
        headed=headed,
    )


# -- traffic -----------------------------------------------------------------------------------------------------------


def _judge_traffic(judge: Judge, outcomes: Outcomes, world_size: int, *, wire: bool = False) -> None:
    """A gathering in forward, at most another one in backward, and one reduce-scatter: all ranks, steps and passes."""
    sizes = sizes_of(outcomes[0], world_size)
    for outcome in outcomes:
        for index, step in enumerate(steps_of(outcome)):
            if fault := traffic_fault(step, sizes, outcome.value["root_bytes"]):
                judge.violated(
                    f"rank {outcome.rank}, step {index}: {fault}",
                    expected=f"T = {sizes.parameter_bytes:,} gathered unit by unit in forward, at most once more in "
                    f"backward, and T reduce-scattered",
                    observed=told(data(step.own, sizes)),
                    witness=Witness.TRACE,
                    outcomes=outcomes,
                )
    last = steps_of(outcomes[0])[-1]
    found = passes_of(last, sizes)[-1]
    if wire:
        moved = logical_bytes(data(last.own, sizes))
        judge_wire(judge, outcomes, programs.window(STEPS - 1), int(moved), "logical bytes of the trace")
        judge.timeline(outcomes)
    judge.holds(
        expected=f"T = {sizes.parameter_bytes:,} gathered in forward, again in backward unless kept, and reduced once",
        observed=_counted(found, sizes),
        witness=Witness.TRACE,
        message=told(data(last.own, sizes)),
        examples=STEPS * world_size,
    )


def _counted(found: Pass, sizes: Sizes) -> str:
    """What one pass did, in numbers of operations where these can be told."""
    kept = found.kept(sizes) - sizes.replicated_bytes
    rest = f"; {float(kept):,.0f} bytes kept from forward to backward" if kept > 0 else ""
    if found.num_gathers is None:
        both = (found.gathered_forward, found.gathered_backward, found.reduced)
        return "{:,.0f} in forward, {:,.0f} in backward, {:,.0f} reduced".format(*map(float, both)) + rest
    there, back = found.num_gathers
    by_sends = "reduced by sends" if found.reduced else "no reduce-scatter"
    scatters = by_sends if found.num_reductions is None else f"{found.num_reductions} reduce-scatters"
    return f"{sizes.num_parameters} parameters: {there} + {back} = {there + back} gathers, {scatters}{rest}"


@claim("strategies.fsdp.traffic", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_units_are_gathered_for_both_passes_and_reduce_scattered(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    _judge_traffic(judge, _observe(subject, world_size), world_size, wire=True)


@claim("strategies.fsdp.traffic", provides=["fully_shard"])
def test_each_microbatch_is_gathered_and_reduce_scattered(subject: Subject, judge: Judge) -> None:
    _judge_traffic(judge, _observe(subject, 2, micro=2), 2)


@claim("strategies.fsdp.traffic", tier=Tier.CONTRACT, provides=["fully_shard"])
def test_a_parameter_in_no_layer_is_a_unit_of_the_root(subject: Subject, judge: Judge) -> None:
    _judge_traffic(judge, _observe(subject, 2, num_layers=LAYERS - 1, headed=True), 2)


@claim("strategies.fsdp.traffic", tier=Tier.CONTRACT, provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_what_does_not_divide_is_padded_and_no_more(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_traffic(judge, _observe(subject, world_size, width=ODD), world_size)


@claim("strategies.fsdp.traffic", tier=Tier.CONTRACT, provides=["fully_shard"])
def test_16_bit_parameters_travel_in_16_bits(subject: Subject, judge: Judge) -> None:
    _judge_traffic(judge, _observe(subject, 2, dtype=torch.bfloat16), 2)


# -- link --------------------------------------------------------------------------------------------------------------


def _per_step(outcomes: Outcomes, sizes: Sizes) -> Fraction:
    """Logical bytes of the last step, the mean over ranks."""
    moved = [logical_bytes(data(steps_of(outcome)[-1].own, sizes)) for outcome in outcomes]
    return sum(moved, Fraction(0)) / len(moved)


def _judge_kept(judge: Judge, outcomes: Outcomes, sizes: Sizes, *, resharded: bool | None) -> None:
    for outcome in outcomes:
        for index, step in enumerate(steps_of(outcome)):
            for found in passes_of(step, sizes):
                if fault := kept_fault(found, sizes, resharded=resharded):
                    judge.violated(
                        f"rank {outcome.rank}, step {index}: {fault}",
                        expected="2T gathered where units are resharded after forward, T where they are kept",
                        observed=told(data(step.own, sizes)),
                        witness=Witness.TRACE,
                        outcomes=outcomes,
                    )


def _judge_moved(judge: Judge, outcomes: Outcomes, sizes: Sizes, ddp: Fraction, *, resharded: bool | None) -> None:
    """3T(N-1)/N less what was kept, 2T(N-1)/N where that is all; both beside what DDP moves."""
    _judge_kept(judge, outcomes, sizes, resharded=resharded)
    moved = _per_step(outcomes, sizes)
    kept = passes_of(steps_of(outcomes[0])[-1], sizes)[-1].kept(sizes)
    formula = sizes.share(3) - kept * (sizes.world_size - 1) / sizes.world_size
    told_kept = f", {float(kept):,.0f} bytes of {sizes.parameter_bytes:,} kept for the backward pass" if kept else ""
    ratio = f"{float(moved / ddp):.2f} times the {float(ddp):,.0f} of DDP"
    figures = {"moved_bytes": float(moved), "ddp_bytes": float(ddp), "kept_bytes": float(kept)}
    if abs(moved - formula) > 3 * sizes.padding_bytes:
        judge.violated(
            f"a step moves {float(moved):,.0f} bytes per rank{told_kept}",
            expected=f"{float(formula):,.0f}; 3T(N-1)/N = {float(sizes.share(3)):,.0f} with nothing kept",
            observed=f"{float(moved):,.0f}, {ratio}",
            witness=Witness.TRACE,
            unit="bytes",
            outcomes=outcomes,
        )
    judge.holds(
        expected=f"3T(N-1)/N = {float(sizes.share(3)):,.0f}, 2T(N-1)/N = {float(sizes.share(2)):,.0f} where units stay",
        observed=f"{float(moved):,.0f}, {ratio}",
        witness=Witness.TRACE,
        unit="bytes",
        message=f"{float(moved):,.0f} bytes per rank and step{told_kept}, {ratio}",
        examples=STEPS * sizes.world_size,
        data={f"{name}_when_kept" if resharded is False else name: value for name, value in figures.items()},
    )


def _ddp_bytes(subject: Subject, sizes: Sizes) -> Fraction:
    """Logical bytes of a step of the same model under the same implementation's DDP; 2T(N-1)/N without a sound one."""
    if not subject.has("DataParallel"):
        return sizes.share(2)
    try:
        return _per_step(_observe(subject, sizes.world_size, "ddp"), sizes) or sizes.share(2)
    except Broken:  # which is for the claims about DDP to tell
        return sizes.share(2)


@claim("strategies.fsdp.link", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [2, 4])
def test_a_step_moves_half_as_much_again_as_ddp_and_the_same_where_units_are_kept(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    outcomes = _observe(subject, world_size)
    sizes = sizes_of(outcomes[0], world_size)
    ddp = _ddp_bytes(subject, sizes)
    chooses = outcomes[0].value["chooses_reshard"]
    if chooses:
        _judge_moved(judge, _observe(subject, world_size, keep=True), sizes, ddp, resharded=False)
    _judge_moved(judge, outcomes, sizes, ddp, resharded=True if chooses else None)


# -- cost --------------------------------------------------------------------------------------------------------------


@claim("strategies.fsdp.cost", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_every_forward_pass_gathers_everything_again(subject: Subject, judge: Judge, world_size: int) -> None:
    micro = 2
    outcomes = _observe(subject, world_size, micro=micro)
    sizes = sizes_of(outcomes[0], world_size)
    for outcome in outcomes:
        for index, step in enumerate(steps_of(outcome)):
            for number, found in enumerate(passes_of(step, sizes)):
                if found.gathered_forward < sizes.parameter_bytes - sizes.padding_bytes:
                    judge.violated(
                        f"rank {outcome.rank}, step {index}, microbatch {number}: the forward pass gathers "
                        f"{float(found.gathered_forward):,.0f} bytes; what it did not gather is stale, or never freed",
                        expected=f"T = {sizes.parameter_bytes:,} in each forward pass",
                        observed=f"{float(found.gathered_forward):,.0f}",
                        witness=Witness.TRACE,
                        unit="bytes",
                        outcomes=outcomes,
                    )
    _judge_kept(judge, outcomes, sizes, resharded=True if outcomes[0].value["chooses_reshard"] else None)
    found = passes_of(steps_of(outcomes[0])[-1], sizes)[-1]
    judge.holds(
        expected=f"T = {sizes.parameter_bytes:,} in each forward pass, and in each backward pass what is not kept",
        observed=_counted(found, sizes),
        witness=Witness.TRACE,
        message=f"gathered in each of {STEPS * micro} forward passes: {STEPS} steps of {micro} microbatches",
        examples=STEPS * micro * world_size,
    )
