"""ZeRO-3 is FSDP (faq.zero3-is-fsdp): the implementation's fully_shard beside PyTorch's, in pattern and in values."""

from __future__ import annotations

import pytest

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.loop import single
from conformance.loop.judging import judge_all
from conformance.verdict import Witness
from conformance.zero import torch_programs as programs
from conformance.zero.torch_judging import ROOTED_LAYERS, judge_fully_sharded, judge_kept_root
from conformance.zero.torch_patterns import KEPT, seen

SEED = 7
RATES = [0.1, 0.05, 0.1]
MOMENTUM = 0.9


@claim("faq.zero3-is-fsdp", provides=["fully_shard"])
@pytest.mark.parametrize("world_size", [3, 4])
def test_they_move_and_hold_the_same(subject: Subject, judge: Judge, world_size: int) -> None:
    judge_kept_root(judge, subject.run(programs.rooted, world_size, "fully_shard", num_layers=ROOTED_LAYERS))
    found = [
        seen(name, subject.run(programs.pattern, world_size, stage, own=own))
        for name, stage, own in (
            ("PyTorch's fully_shard", "fully_shard", False),
            (f"{subject.name}'s fully_shard", "3", True),
        )
    ]
    theirs, mine = found
    for one in found:
        judge_fully_sharded(judge, one)
    judge.at_most(
        round(abs(mine.forward - theirs.forward) + abs(mine.backward - theirs.backward), 3),
        KEPT,
        witness=Witness.TRACE,
        message="passes that differ between the two: units that one of them keeps gathered",
    )


@claim("faq.zero3-is-fsdp", provides=["fully_shard"])
@pytest.mark.parametrize("model", ["mlp", "uneven"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_they_train_to_the_same_parameters(subject: Subject, judge: Judge, model: str, world_size: int) -> None:
    data = single.batches(31, world_size, steps=len(RATES), rows=4, real=True)
    own = single.own(data, world_size)
    outcomes = subject.run(programs.trained, world_size, model, own, seed=SEED, rates=RATES, momentum=MOMENTUM)
    bound = single.rounding_bound(model, data, rates=RATES, seed=SEED, momentum=MOMENTUM)
    exact = single.train(model, data, rates=RATES, seed=SEED, optimizer=single.Sgd(MOMENTUM))
    assert exact.moved > 100 * bound, f"the parameters moved by {exact.moved:g} only, the bound is {bound:g}"
    comparisons = [
        (f"rank {rank}", expect.within(mine[name], theirs[name], 2 * bound, what=name))
        for rank, (mine, theirs) in enumerate(outcomes.values)
        for name in exact.parameters
    ]
    judge_all(judge, comparisons, "the parameters after the same steps, against PyTorch's fully_shard")
