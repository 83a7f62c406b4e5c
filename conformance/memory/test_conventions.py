"""105 or 140 GB, 84 or 112 GB: the same recipe without and with an FP32 master copy, each measured as it is named."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch

from conformance.checks import Judge, Subject, claim
from conformance.expect import same
from conformance.memory.weights import (
    GB,
    SMALL_SLACK,
    at_size,
    close,
    judge_gigabytes,
    judge_parts,
    mean,
    nominal,
    on_ranks,
)
from conformance.verdict import Witness
from fixtures import weigh_programs
from fixtures.shapes import LLAMA_2_7B, LLAMA_3_70B, Shape
from fixtures.weighing import PLAIN, Recipe
from impls.reference.memory import (
    ALL_FP32,
    MIXED_WITH_MASTER,
    MIXED_WITHOUT_MASTER,
    Accounting,
    bytes_per_parameter,
    bytes_per_rank,
)

BF16 = torch.bfloat16
DEVICE_GB = 80
FEW_LAYERS = 4  # for all but one of the weighings of a model: bytes per parameter do not depend on their number
MANY_LAYERS = 20  # for that one, of the 80 of a model of 70B, which take four times as long and tell no more
TOKENS = 4096
Conventions = dict[Accounting, Recipe]


def _offered(subject: Subject, recipe: Recipe, stage: str, world_size: int) -> Conventions:
    """Without and with a master copy, or the nearer of the two where the implementation does not let one choose."""
    named = {
        MIXED_WITHOUT_MASTER: dataclasses.replace(recipe, master=False),
        MIXED_WITH_MASTER: dataclasses.replace(recipe, master=True),
    }
    held = {accounting: mean(on_ranks(subject, world_size, asked), "total") for accounting, asked in named.items()}
    less, more = held.values()
    if not close(less, more, SMALL_SLACK).matches:
        return named
    expected = {accounting: float(bytes_per_parameter(stage, world_size, accounting).total) for accounting in named}
    nearest = min(named, key=lambda accounting: abs(held[accounting] - expected[accounting]))
    return {nearest: dataclasses.replace(recipe, master=None)}


def _judge_on_ranks(
    subject: Subject, judge: Judge, conventions: Conventions, stage: str, world_size: int, what: str
) -> None:
    for accounting, recipe in conventions.items():
        expected = bytes_per_parameter(stage, world_size, accounting)
        judge_parts(judge, on_ranks(subject, world_size, recipe), expected, f"{what}, {accounting.name}")


# -- 7B on one device --------------------------------------------------------------------------------------------------


@claim("memory.mixed-7b", provides=["MixedPrecision"])
def test_mixed_precision_saves_a_quarter_of_7b_and_with_a_master_copy_nothing(subject: Subject, judge: Judge) -> None:
    conventions = _offered(subject, Recipe(stage="mixed", dtype=BF16), "ddp", 1)
    _judge_on_ranks(subject, judge, conventions, "ddp", 1, "one rank")
    figures = {ALL_FP32: 112.0, MIXED_WITH_MASTER: 112.0, MIXED_WITHOUT_MASTER: 84.0}
    _tell_conventions(judge, LLAMA_2_7B, "ddp", 1, figures)
    conventions = {ALL_FP32: Recipe(stage=PLAIN)} | {key: conventions[key] for key in reversed(conventions)}
    shapes = [LLAMA_2_7B.with_layers(FEW_LAYERS)] * (len(conventions) - 1) + [LLAMA_2_7B]
    items = [(shape, recipe, 1) for shape, recipe in zip(shapes, conventions.values(), strict=True)]
    for accounting, weight in zip(conventions, at_size(subject, judge, *items), strict=False):
        expected = bytes_per_parameter("ddp", 1, accounting).total
        judge_gigabytes(judge, weight, LLAMA_2_7B, expected, accounting.name)


# -- 70B over 8 and over 16 devices ------------------------------------------------------------------------------------


@claim("memory.fsdp-70b", provides=["fully_shard"])
def test_70b_on_8_ranks_exceeds_80_gb_in_either_convention(subject: Subject, judge: Judge) -> None:
    conventions: Conventions = {ALL_FP32: Recipe(stage="3")}  # FP32 shards are a master copy themselves
    if subject.has("MixedPrecision"):
        conventions = _offered(subject, Recipe(stage="3", dtype=BF16, mixed=True), "3", 2)
    for world_size in (2, 4):
        _judge_on_ranks(subject, judge, conventions, "3", world_size, f"{world_size} ranks")
    _tell_activations(subject, judge)
    _tell_conventions(judge, LLAMA_3_70B, "3", 16, {MIXED_WITH_MASTER: 70.0, MIXED_WITHOUT_MASTER: 52.5})
    _tell_conventions(judge, LLAMA_3_70B, "3", 8, {MIXED_WITH_MASTER: 140.0, MIXED_WITHOUT_MASTER: 105.0})
    few_layers = LLAMA_3_70B.with_layers(FEW_LAYERS)
    many_layers = LLAMA_3_70B.with_layers(MANY_LAYERS)
    chosen = next(iter(conventions)), 8
    items = [
        (many_layers if (accounting, world_size) == chosen else few_layers, accounting, world_size)
        for world_size in (16, 8)
        for accounting in reversed(conventions)
    ]
    weights = at_size(subject, judge, *((shape, conventions[accounting], n) for shape, accounting, n in items))
    for (shape, accounting, world_size), weight in zip(items, weights, strict=False):
        expected = bytes_per_parameter("3", world_size, accounting).total
        where = f"{accounting.name}, rank 0 of {world_size}, {shape.num_layers} layers weighed"
        judge_gigabytes(judge, weight, LLAMA_3_70B, expected, where)


def _tell_activations(subject: Subject, judge: Judge) -> None:
    """Checkpointing changes what blocks keep for backward, and nothing of what was weighed above."""
    shape = LLAMA_3_70B.with_layers(2)
    outcomes = subject.run(weigh_programs.activations, 1, dataclasses.asdict(shape), TOKENS, bare=True, trace=False)
    kept, recomputed = weigh_programs.read_activations(outcomes.values[0])
    assert kept.states == recomputed.states
    assert kept.activations > 2 * recomputed.activations
    judge.holds(
        expected="activations alone",
        observed="activations alone",
        witness=Witness.MEMORY,
        message=f"checkpointing 2 of 80 layers with {TOKENS} tokens takes their activations from "
        f"{kept.activations / GB:.2f} to {recomputed.activations / GB:.2f} GB, and leaves their states at "
        f"{recomputed.states / GB:.2f} GB",
    )


def _tell_conventions(
    judge: Judge, shape: Shape, stage: str, world_size: int, printed: Mapping[Accounting, float]
) -> None:
    """The closed form, which what was weighed agrees with, gives the printed figures; and which of them fit."""
    figures = {
        accounting: float(bytes_per_rank(shape.nominal, stage, world_size, accounting)) / GB for accounting in printed
    }
    told = [
        f"{figure:g} GB {'exceed' if figure > DEVICE_GB else 'fit'} ({accounting.name})"
        for accounting, figure in figures.items()
    ]
    judge.that(
        same(list(figures.values()), list(printed.values())),
        witness=Witness.MODEL,
        unit="GB",
        message=f"{nominal(shape)} on {world_size} x {DEVICE_GB} GB: {', '.join(told)}",
    )
