"""What a step of DDP, ZeRO-1 and ZeRO-2 moves: an all-reduce, or its two halves (zero.comm.*)."""

from __future__ import annotations

import pytest
import torch

from conformance.checks import Judge, Subject, claim
from conformance.collectives.traffic import logical_bytes
from conformance.strategies import programs as ddp_programs
from conformance.strategies.ddp_traffic import fault_in, inside_no_sync, is_note
from conformance.strategies.ddp_traffic import steps_of as ddp_steps_of
from conformance.verdict import Tier, Witness
from conformance.zero import traffic_programs as programs
from conformance.zero.stage_traffic import (
    Sizes,
    data,
    num_reductions,
    sizes_of,
    steps_of,
    told,
    update_fault,
    way_back_fault,
)
from conformance.zero.wire import judge_wire
from fixtures.world.outcome import Outcome, Outcomes
from impls.words import number_of

STEPS = 3
LAYERS = 12  # equal ones, so that 2, 3 and 4 owners of whole parameters have as much each
WIDE = 132  # a weight of 68 KiB: from 64 KiB on, what gloo adds to each message does not count
ODD = 37  # divisible by no number of ranks

core_sizes = pytest.mark.parametrize("world_size", [2, 3, 4])


# -- DDP ---------------------------------------------------------------------------------------------------------------


def _judge_all_reduces(judge: Judge, outcomes: Outcomes, world_size: int, what: str) -> None:
    for outcome in outcomes:
        wanted = outcome.value["gradient_bytes"]
        for index, step in enumerate(ddp_steps_of(outcome)):
            if fault := fault_in(step, wanted, world_size, outcome.value["num_parameters"]):
                judge.violated(
                    f"rank {outcome.rank}, step {index}: {fault}",
                    expected=f"each of {wanted:,} bytes of gradients in one all-reduce",
                    observed=told(step.gradients),
                    witness=Witness.TRACE,
                    outcomes=outcomes,
                )
    last = ddp_steps_of(outcomes[0])[-1]
    count = len(last.gradients)
    judge.holds(
        expected=f"each of {outcomes[0].value['gradient_bytes']:,} bytes of gradients in one all-reduce",
        observed=told(last.gradients),
        witness=Witness.TRACE,
        message=f"{what}: " + ("one flat buffer" if count == 1 else f"{count} operations, one for each bucket"),
        examples=world_size * len(ddp_steps_of(outcomes[0])),
    )


@claim("zero.comm.ddp", provides=["DataParallel|average_gradients"])
@core_sizes
def test_each_gradient_is_in_one_all_reduce(subject: Subject, judge: Judge, world_size: int) -> None:
    outcomes = subject.run(ddp_programs.step, world_size, num_layers=LAYERS, width=WIDE, steps=STEPS)
    formula = 2 * outcomes[0].value["gradient_bytes"] * (world_size - 1) // world_size
    judge_wire(judge, outcomes, ddp_programs.window(STEPS - 1), formula, "2T(N-1)/N")
    _judge_all_reduces(judge, outcomes, world_size, "equal layers")


@claim("zero.comm.ddp", provides=["DataParallel|average_gradients"])
@pytest.mark.parametrize("model", ["tied", "frozen", "shared"])
def test_each_gradient_is_in_one_all_reduce_whatever_uses_its_parameter(
    subject: Subject, judge: Judge, model: str
) -> None:
    outcomes = subject.run(ddp_programs.step, 2, num_layers=0, width=0, steps=STEPS, model=model)
    _judge_all_reduces(judge, outcomes, 2, f"model {model}")


@claim("zero.comm.ddp", tier=Tier.CONTRACT, provides=["DataParallel"])
def test_gradients_that_pile_up_in_no_sync_are_in_one_all_reduce(subject: Subject, judge: Judge) -> None:
    outcomes = subject.run(ddp_programs.step, 2, num_layers=4, width=WIDE, steps=STEPS, micro=3)
    for outcome in outcomes:
        early = [op for op in inside_no_sync(outcome) if not is_note(op, outcome)]
        if early:
            judge.violated(
                f"rank {outcome.rank} reduces inside no_sync(), at {early[0].where}, and again after it",
                expected="one reduction for all microbatches",
                observed=told(early),
                witness=Witness.TRACE,
            )
    _judge_all_reduces(judge, outcomes, 2, "3 microbatches")


# -- ZeRO-1 and ZeRO-2 -------------------------------------------------------------------------------------------------


def _observe(
    subject: Subject,
    world_size: int,
    stage: str,
    *,
    width: int = WIDE,
    dtype: torch.dtype = torch.float32,
    micro: int = 1,
) -> Outcomes:
    return subject.run(
        programs.train, world_size, stage, num_layers=LAYERS, width=width, steps=STEPS, dtype=dtype, micro=micro
    )


def _judge_updates(judge: Judge, outcomes: Outcomes, world_size: int, *, micro: int = 1, wire: bool = False) -> None:
    """One reduce-scatter for each microbatch at most, and one gathering, on every rank in every step."""
    sizes = sizes_of(outcomes[0], world_size)
    if outcomes[0].value["wants_mean"]:
        _judge_way_back(judge, outcomes, sizes)
    formula = float(sizes.share(2))
    for outcome in outcomes:
        for index, step in enumerate(steps_of(outcome)):
            if fault := update_fault(step, sizes, micro):
                judge.violated(
                    f"rank {outcome.rank}, step {index}: {fault}",
                    expected=f"a reduce-scatter and an all-gather of T: 2T(N-1)/N = {formula:,.0f} bytes",
                    observed=told(data(step.own, sizes)) + _on_the_wire(outcome, index),
                    witness=Witness.TRACE,
                    outcomes=outcomes,
                )
    if wire:
        judge_wire(judge, outcomes, programs.window(STEPS - 1), int(sizes.share(2)), "2T(N-1)/N")
    last = steps_of(outcomes[0])[-1]
    times = num_reductions(last, sizes)
    as_ddp = "as DDP" if times == 1 else f"{times} reductions and a gathering"
    judge.holds(
        expected=f"{times + 1}T(N-1)/N = {float(sizes.share(times + 1)):,.0f} bytes per rank and step, {as_ddp}",
        observed=told(data(last.own, sizes)),
        witness=Witness.TRACE,
        message=f"T = {sizes.parameter_bytes:,} bytes: reduced {_often(times, micro)}, parameters gathered once",
        examples=STEPS * world_size,
    )


def _on_the_wire(outcome: Outcome, step: int) -> str:
    sent = outcome.sent_bytes(programs.window(step))
    return "" if sent is None else f"; {sent:,} bytes sent on the wire"


def _often(times: int, micro: int) -> str:
    if micro == 1:
        return "once"
    kept = ", so that full gradients are kept between them" if times < micro else ""
    return f"{times} times for {number_of(micro, 'microbatch')}{kept}"


def _judge_way_back(judge: Judge, outcomes: Outcomes, sizes: Sizes) -> None:
    """Of an optimizer on top of data parallelism only the way back is its own; that may not be more than a gather."""
    for outcome in outcomes:
        for index, step in enumerate(steps_of(outcome)):
            if fault := way_back_fault(step, sizes):
                judge.violated(
                    f"rank {outcome.rank}, step {index}: {fault}",
                    expected=f"one gathering of the parameters: T(N-1)/N = {float(sizes.share()):,.0f} bytes",
                    observed=told(data(step.own, sizes)),
                    witness=Witness.TRACE,
                    outcomes=outcomes,
                )
    own = data(steps_of(outcomes[0])[-1].own, sizes)
    judge.not_provided(
        f"it expects gradients that are averaged already, so that their reduction is not its own; its way back is "
        f"{told(own)}: {float(logical_bytes(own)):,.0f} bytes per rank and step, T(N-1)/N = {float(sizes.share()):,.0f}"
    )


@claim("zero.comm.1", provides=["ShardedOptimizer"])
@core_sizes
def test_zero_1_reduces_to_shards_and_gathers_them(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_updates(judge, _observe(subject, world_size, "1"), world_size, wire=True)


@claim("zero.comm.1", tier=Tier.CONTRACT, provides=["ShardedOptimizer"])
def test_zero_1_moves_16_bit_parameters_in_16_bits(subject: Subject, judge: Judge) -> None:
    _judge_updates(judge, _observe(subject, 2, "1", dtype=torch.bfloat16), 2)


@claim("zero.comm.1", tier=Tier.CONTRACT, provides=["ShardedOptimizer"])
def test_zero_1_pads_what_does_not_divide_and_no_more(subject: Subject, judge: Judge) -> None:
    _judge_updates(judge, _observe(subject, 3, "1", width=ODD), 3)


@claim("zero.comm.2", provides=["Zero2Optimizer"])
@core_sizes
def test_zero_2_reduces_to_shards_and_gathers_them(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_updates(judge, _observe(subject, world_size, "2"), world_size, wire=True)


@claim("zero.comm.2", provides=["Zero2Optimizer"])
def test_zero_2_reduces_each_microbatch_and_gathers_once(subject: Subject, judge: Judge) -> None:
    _judge_updates(judge, _observe(subject, 2, "2", micro=3), 2, micro=3)


@claim("zero.comm.2", tier=Tier.CONTRACT, provides=["Zero2Optimizer"])
def test_zero_2_moves_16_bit_parameters_in_16_bits(subject: Subject, judge: Judge) -> None:
    _judge_updates(judge, _observe(subject, 2, "2", dtype=torch.bfloat16), 2)


@claim("zero.comm.2", tier=Tier.CONTRACT, provides=["Zero2Optimizer"])
def test_zero_2_pads_what_does_not_divide_and_no_more(subject: Subject, judge: Judge) -> None:
    _judge_updates(judge, _observe(subject, 3, "2", width=ODD), 3)
