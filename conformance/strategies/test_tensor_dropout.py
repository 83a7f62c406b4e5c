"""Inside a parallel region each rank drops other elements, outside all drop the same (strategies.tensor.dropout)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.strategies import tensor_small_programs as programs
from conformance.strategies.tensor_judging import by_way
from conformance.verdict import Tier


def ways(*names: str, tier: Tier = Tier.CORE) -> list[Any]:
    """Parameters for a check of these ways to provide a layer."""

    def mark(**how: Any) -> pytest.MarkDecorator:
        return claim("strategies.tensor.dropout", **how)

    return by_way(mark, names, tier)


@pytest.mark.parametrize("way", ways("attention", "whole-attention"))
@pytest.mark.parametrize("world_size", [2, 3])
def test_heads_of_different_ranks_drop_different_elements(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    num_heads, per_rank = 2 * world_size, 2
    outcomes = subject.run(programs.dropped, world_size, way, num_heads, 4, 12)
    heads = outcomes[0].value["heads"]  # [batch, sequence, heads, head_dim]
    if bool((heads[..., 0, :2] == outcomes[0].value["quiet"].unflatten(-1, (num_heads, 4))[..., 0, :2]).all()):
        judge.violated("in training mode nothing is dropped", expected="half of the probabilities", observed="none")
    for rank in range(1, world_size):
        own, other = heads[..., :per_rank, :], heads[..., rank * per_rank : (rank + 1) * per_rank, :]
        if torch.equal(own, other):
            judge.violated(
                f"the heads of rank {rank} drop exactly what those of rank 0 do: N independent draws have become one",
                expected="other elements on each rank, from generators in the same state",
                observed="the same elements",
                outcomes=outcomes,
            )
    after = [value["after"] for value in outcomes.values]
    judge.that(expect.ranks_agree(after, "what torch draws after the layer"), outcomes=outcomes)
    judge.that(expect.ranks_agree([value["heads"] for value in outcomes.values], "the output"), outcomes=outcomes)


@pytest.mark.parametrize("way", ways("block"))
def test_dropout_outside_the_regions_agrees(subject: Subject, judge: Judge, way: str) -> None:
    outcomes = subject.run(programs.dropped_outside, 2, 24, 48)
    judge.that(expect.ranks_agree(outcomes.values, "the output of the block"), outcomes=outcomes)
