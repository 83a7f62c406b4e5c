"""Tensor parallelism computes what the unsharded module computes: outputs, gradients, and parameters after steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance import expect
from conformance.checks import Judge, Subject, claim
from conformance.loop.judging import judge_all
from conformance.strategies import tensor_small_programs as operators
from conformance.strategies.tensor_case import WAYS
from conformance.strategies.tensor_judging import by_way, case_of, judge_case
from conformance.verdict import Tier, Witness
from fixtures.world.per_rank import PerRank

EXACT = ("column", "row", "embedding", "mlp", "attention", "pair", "heads", "whole-mlp", "whole-attention")
HIDDEN = ("mlp", "pair", "whole-mlp")
WITH_SEQUENCES = ("column", "row", "mlp", "attention", "pair", "heads", "whole-mlp", "whole-attention", "block")
SIZES = pytest.mark.parametrize("world_size", [2, 3, 4])


def ways(*names: str, tier: Tier = Tier.CORE) -> list[Any]:
    """Parameters for a check of these ways to provide a layer."""

    def mark(**how: Any) -> pytest.MarkDecorator:
        return claim("strategies.tensor.equivalence", **how)

    return by_way(mark, names, tier)


@pytest.mark.parametrize("way", ways(*EXACT))
@SIZES
def test_integers_come_out_bit_for_bit(subject: Subject, judge: Judge, way: str, world_size: int) -> None:
    judge_case(subject, judge, case_of(way), world_size)


@pytest.mark.parametrize("way", ways(*WAYS))
@pytest.mark.parametrize("world_size", [2, 3])
def test_real_numbers_through_a_step_of_two_passes(subject: Subject, judge: Judge, way: str, world_size: int) -> None:
    judge_case(subject, judge, case_of(way, exact=False, passes=2, steps=1), world_size)


@pytest.mark.parametrize("way", ways(*(way for way in EXACT if way != "embedding"), "block"))
def test_without_biases(subject: Subject, judge: Judge, way: str) -> None:
    judge_case(subject, judge, case_of(way, bias=False, exact=way != "block"), 3)


@pytest.mark.parametrize("way", ways(*(way for way in WAYS if way != "heads")))  # whose heads the suite shares out
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_width_that_the_ranks_cannot_share_is_refused_or_handled(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    has_heads = WAYS[way][0] in ("attention", "block")
    sizes = {"width": 10, "inner": 25, "num_heads": 5} if has_heads else {"inner": 25}
    what = "5 heads" if has_heads else "25 features"
    case = case_of(way, exact=way != "block", **sizes)
    judge_case(subject, judge, case, world_size, may_refuse=f"{what} on {world_size} ranks")


@pytest.mark.parametrize("way", ways("attention", "whole-attention"))
def test_heads_that_the_ranks_cannot_share_though_they_could_the_width(
    subject: Subject, judge: Judge, way: str
) -> None:
    case = case_of(way, width=24, num_heads=3, exact=False)
    judge_case(subject, judge, case, 2, may_refuse="3 heads of 8 on 2 ranks")


@pytest.mark.parametrize("way", ways(*WAYS, tier=Tier.EXOTIC))
def test_one_rank_is_the_unsharded_module(subject: Subject, judge: Judge, way: str) -> None:
    judge_case(subject, judge, case_of(way, exact=way != "block"), 1)


# -- what users of a layer rely on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5,), (2, 3, 2), (1, 1)], ids=["vectors", "four-dimensions", "one-token"])
@pytest.mark.parametrize("way", ways("column", "row", "embedding", *HIDDEN, tier=Tier.CONTRACT))
def test_inputs_of_any_batch_shape(subject: Subject, judge: Judge, way: str, shape: tuple[int, ...]) -> None:
    judge_case(subject, judge, case_of(way, shape=shape), 2)


@pytest.mark.parametrize("way", ways(*HIDDEN, "attention", "heads", "block", tier=Tier.CONTRACT))
def test_a_layer_that_is_used_twice_in_one_pass(subject: Subject, judge: Judge, way: str) -> None:
    judge_case(subject, judge, case_of(way, exact=False, uses=2), 3)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("way", ways(*HIDDEN, tier=Tier.CONTRACT))
def test_a_frozen_weight_learns_nothing_and_hinders_nothing(
    subject: Subject, judge: Judge, way: str, when: str
) -> None:
    judge_case(subject, judge, case_of(way, frozen="up.weight", frozen_after=when == "after", steps=1, exact=False), 2)


@pytest.mark.parametrize("way", ways("column", *HIDDEN, "attention", tier=Tier.CONTRACT))
def test_an_input_that_needs_no_gradient(subject: Subject, judge: Judge, way: str) -> None:
    judge_case(subject, judge, case_of(way, needs_input_gradient=False), 2)


@pytest.mark.parametrize("way", ways("column", tier=Tier.CONTRACT))
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_gathered_output_is_whole_and_its_gradient_not_multiplied(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    judge_case(subject, judge, case_of(way, gather_output=True), world_size)


@pytest.mark.parametrize("way", ways("row", tier=Tier.CONTRACT))
@pytest.mark.parametrize("world_size", [2, 3])
def test_a_whole_input_is_scattered_and_its_gradient_gathered(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    judge_case(subject, judge, case_of(way, input_is_parallel=False), world_size)


@pytest.mark.parametrize("way", ways("column", "row", "embedding", "mlp", "attention", "block", tier=Tier.CONTRACT))
def test_two_groups_do_not_meet(subject: Subject, judge: Judge, way: str) -> None:
    judge_case(subject, judge, case_of(way, halves=True, exact=way != "block"), 4)


# -- sequence parallelism ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ways(*WITH_SEQUENCES, tier=Tier.CONTRACT))
@pytest.mark.parametrize("world_size", [2, 3])
def test_with_the_sequence_cut_everything_is_as_without(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    case = case_of(way, exact=False, sequence_parallel=True, shape=(2, 2 * world_size), steps=1)
    judge_case(subject, judge, case, world_size)


# -- operators ---------------------------------------------------------------------------------------------------------


def _given(name: str, world_size: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The operand of each rank, and the gradient of its output."""
    operands = [operators.operand(rank, name, world_size) for rank in range(world_size)]
    width = operands[0].shape[-1] // world_size
    shape = {"gather_from_region": (2, 3, 2 * world_size**2), "scatter_to_region": (2, 3, width)}.get(
        name, tuple(operands[0].shape)
    )
    common = name in operators.COMMON_GRADIENT
    return operands, [operators.gradient(rank, shape, common=common) for rank in range(world_size)]


def _operator_alone(
    name: str, operands: list[torch.Tensor], gradients: list[torch.Tensor]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Output and gradient for each rank."""
    world_size, found = len(operands), []
    for rank in range(world_size):
        match name:
            case "copy_to_region":
                found.append((operands[rank], torch.stack(gradients).sum(0)))
            case "reduce_from_region":
                found.append((torch.stack(operands).sum(0), gradients[rank]))
            case "scatter_to_region":
                found.append((operands[rank].chunk(world_size, -1)[rank], torch.cat(gradients, -1)))
            case _:
                found.append((torch.cat(operands, -1), gradients[rank].chunk(world_size, -1)[rank]))
    return found


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=claim("strategies.tensor.equivalence", tier=Tier.CONTRACT, provides=[name]))
        for name in ("copy_to_region", "reduce_from_region", "scatter_to_region", "gather_from_region")
    ],
)
@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
def test_operators_are_conjugate(subject: Subject, judge: Judge, name: str, world_size: int, strided: bool) -> None:
    given = _given(name, world_size)
    reports = subject.run(operators.operator, world_size, name, *map(PerRank, given), strided=strided).values
    alone = _operator_alone(name, *given)
    found = [
        (f"{part} on rank {rank}", expect.within(reports[rank][part], value, 0.0))
        for rank, pair in enumerate(alone)
        for part, value in zip(("output", "gradient"), pair, strict=True)
    ]
    judge_all(judge, found, f"{name}, forward and backward", witness=Witness.VALUE)
