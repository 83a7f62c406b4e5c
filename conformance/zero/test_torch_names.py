"""What PyTorch calls the stages (zero.torch-name.*): its own stage and the implementation's, by what they do.

A name is right when the thing that bears it holds and moves what the stage does. Both sides are watched in the same
steps of the same model, and both have to show the pattern: PyTorch's because the claim is about it, the
implementation's because it is what the name is a name for.
"""

from __future__ import annotations

import pytest

from conformance.checks import Judge, Subject, claim
from conformance.verdict import Witness
from conformance.zero import torch_programs as programs
from conformance.zero.torch_judging import ROOTED_LAYERS, judge_fully_sharded, judge_kept_root, judge_pattern
from conformance.zero.torch_patterns import Seen, all_layers_computed, moved, seen

SIZES = [3, 4]  # on two ranks half a state with an FP32 copy is as large as a whole one
NAMES = {"ddp": "DataParallel", "1": "ShardedOptimizer", "2": "Zero2Optimizer", "3": "fully_shard"}


def _of_torch(subject: Subject, name: str, world_size: int) -> Seen:
    return _seen(subject, f"PyTorch's {name}", name, world_size, own=False)


def _of_subject(subject: Subject, stage: str, world_size: int) -> Seen:
    return _seen(subject, f"{subject.name}'s {NAMES[stage]}", stage, world_size, own=True)


def _seen(subject: Subject, told: str, name: str, world_size: int, *, own: bool) -> Seen:
    outcomes = subject.run(programs.pattern, world_size, name, own=own)
    assert all_layers_computed(outcomes) or own, "PyTorch's stage did not run the model"
    return seen(told, outcomes)


@claim("zero.torch-name.ddp", provides=["DataParallel"])
@pytest.mark.parametrize("world_size", SIZES)
def test_no_shard_does_what_data_parallelism_does(subject: Subject, judge: Judge, world_size: int) -> None:
    names = subject.run(programs.strategies, 1).values[0]
    if "DDP" in names or "NO_SHARD" not in names:
        judge.violated("the list has changed", expected="NO_SHARD and no DDP", observed=", ".join(names))
    judge.holds(expected="no entry called DDP", observed=", ".join(names), witness=Witness.VALUE)
    for found in (_of_torch(subject, "NO_SHARD", world_size), _of_subject(subject, "ddp", world_size)):
        _judge_replicas(judge, found)


def _judge_replicas(judge: Judge, found: Seen) -> None:
    judge_pattern(
        judge,
        found,
        "whole parameters, gradients and optimizer state (1), the gradients all-reduced in backward (2 passes)",
        {
            "the parameters are sharded": not found.is_whole(found.parameters),
            "the gradients are not whole": not found.is_whole(found.gradients),
            "the optimizer state is sharded": not found.is_whole(found.optimizer),
            "backward moves something else than an all-reduce of the gradients": not moved(found.backward, 2),
            "parameters move": not moved(found.forward + found.step, 0),
        },
        Witness.TRACE,
    )


@claim("zero.torch-name.1", provides=["ShardedOptimizer"])
@pytest.mark.parametrize("world_size", SIZES)
def test_zero_1_is_outside_of_the_list(subject: Subject, judge: Judge, world_size: int) -> None:
    for name in subject.run(programs.strategies, 1).values[0]:
        if "HYBRID" not in name or world_size % 2 == 0:  # those shard inside a group and replicate over others
            _judge_not_zero_1(judge, _of_torch(subject, name, world_size))
    for found in (
        _of_torch(subject, "ZeroRedundancyOptimizer", world_size),
        _of_subject(subject, "1", world_size),
    ):
        judge_pattern(
            judge,
            found,
            "whole parameters (1), 1/N of the optimizer state",
            {
                "the parameters are sharded": not found.is_whole(found.parameters),
                "the optimizer state is not sharded": not found.optimizer_is_sharded,
                "parameters move in forward, as if they were sharded": not moved(found.forward, 0),
            },
            Witness.MEMORY,
        )


def _judge_not_zero_1(judge: Judge, found: Seen) -> None:
    judge_pattern(
        judge,
        found,
        "the parameters are sharded wherever the optimizer state is",
        {
            "it shards the optimizer state and leaves the parameters whole: that is ZeRO-1": (
                found.is_whole(found.parameters) and not found.is_whole(found.optimizer)
            )
        },
        Witness.MEMORY,
    )


@claim("zero.torch-name.2", provides=["Zero2Optimizer"])
@pytest.mark.parametrize("world_size", SIZES)
def test_shard_grad_op_keeps_parameters_for_backward_as_zero_2_has_them(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    named, proper = _of_torch(subject, "SHARD_GRAD_OP", world_size), _of_subject(subject, "2", world_size)
    for found in (named, proper):
        judge_pattern(
            judge,
            found,
            "1/N of gradients and optimizer state; backward only reduce-scatters (1 pass), one gathering in a step",
            {
                "the gradients are not sharded": not found.is_sharded(found.gradients),
                "the optimizer state is not sharded": not found.optimizer_is_sharded,
                "backward gathers parameters, or moves more of the gradients than a reduce-scatter does": (
                    not moved(found.backward, 1)
                ),
                "parameters are not gathered once in a step": not moved(found.forward + found.step, 1),
            },
            Witness.TRACE,
        )
    judge_pattern(
        judge,
        named,
        "the condition: SHARD_GRAD_OP has 1/N of the parameters at rest, and gathers them in forward",
        {"its parameters are whole at rest": not named.is_sharded(named.parameters) or not moved(named.forward, 1)},
        Witness.MEMORY,
    )
    judge_pattern(
        judge,
        proper,
        "the condition: ZeRO-2 proper has whole parameters at rest, and gathers nothing in forward",
        {"its parameters are sharded at rest": not proper.is_whole(proper.parameters) or not moved(proper.forward, 0)},
        Witness.MEMORY,
    )


@claim("zero.torch-name.3", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", SIZES)
def test_full_shard_does_what_zero_3_does(subject: Subject, judge: Judge, world_size: int) -> None:
    judge_kept_root(judge, subject.run(programs.rooted, world_size, "FULL_SHARD", num_layers=ROOTED_LAYERS))
    for found in (_of_torch(subject, "FULL_SHARD", world_size), _of_subject(subject, "3", world_size)):
        judge_fully_sharded(judge, found)
