"""What a stage should hold, and what is wrong with readings that were made up."""

from __future__ import annotations

from fractions import Fraction

import pytest

from conformance.zero.expected_memory import (
    ANY_RULE,
    SHARDED,
    SIXTEEN_BYTES,
    Cut,
    Model,
    Widths,
    explain,
    fit,
    most_elements,
    optimizer_width,
)
from conformance.zero.held_memory import Held, wrong_kind, wrong_total
from conformance.zero.peak_programs import FORWARD
from conformance.zero.peaks import Chain, are_kept_for_backward, whole_too_long
from impls.reference import memory

STAGES = list(SHARDED)
SIZES = (1, 2, 3, 4, 8, 64)
MODEL = Model(shapes=[(10, 7), (7,), (2,), ()], itemsize=4)  # 80 elements
ADAM = Widths(parameters=4, gradients=4, optimizer=8, has_counters=True)
PLAIN = Widths(parameters=4, gradients=4, optimizer=8)
P = MODEL.numel


# -- formulas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("world_size", SIZES)
def test_the_savings_are_those_of_the_closed_forms(stage: str, world_size: int) -> None:
    assert SIXTEEN_BYTES.saving(stage, world_size) == memory.saving(stage, world_size)
    assert SIXTEEN_BYTES.saving_limit(stage) == memory.saving_limit(stage)


def test_the_savings_in_print_are_limits() -> None:
    assert [round(float(SIXTEEN_BYTES.saving("1", size)), 1) for size in (8, 64)] == [2.9, 3.8]
    assert [round(float(SIXTEEN_BYTES.saving("2", size)), 1) for size in (8, 64)] == [4.3, 7.2]
    assert [SIXTEEN_BYTES.saving_limit(stage) for stage in STAGES] == [1, 4, 8, None]
    assert SIXTEEN_BYTES.saving("3", 64) == 64


def test_formulas_in_words() -> None:
    assert [SIXTEEN_BYTES.formula(stage) for stage in STAGES] == ["16P", "4P + 12P/N", "2P + 14P/N", "16P/N"]


def test_a_formula_is_fitted_to_what_was_measured() -> None:
    means = {size: Fraction(4 * P) + Fraction(12 * P, size) for size in (2, 3, 4)}
    assert fit(means, P) == (4, 12)
    assert fit({**means, 4: means[4] + 1}, P) is None


# -- bytes per parameter, found on one rank ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "held_bytes", "expected"),
    [
        ("sgd", 0, (0, False)),
        ("momentum", 4 * P, (4, False)),
        ("adam", 8 * P + 16, (8, True)),
        ("adam", 8 * P + 4, (8, True)),  # one counter for one flat buffer
        ("adam", 12 * P + 16, (12, True)),  # a separate master copy
        ("adam", 16 * P + 16, None),
        ("adam", 4 * P, None),
        ("adam", 8 * P + 20, None),  # five counters for four tensors
        ("adam", 8 * P + 2, None),
        (ANY_RULE, 4 * P, (4, False)),
    ],
)
def test_widths_of_optimizer_state(rule: str, held_bytes: int, expected: tuple[int, bool] | None) -> None:
    assert optimizer_width(rule, held_bytes, MODEL) == expected


@pytest.mark.parametrize(
    ("rule", "held_bytes", "expected"),
    [
        ("sgd", 4 * P, (4, False)),
        ("adam", 12 * P + 16, (12, True)),
        ("adam", 16 * P + 16, (16, True)),  # moments, a master copy, and what it steps from
        ("adam", 20 * P + 16, None),
    ],
)
def test_widths_with_a_gradient_of_the_inner_optimizers_own(
    rule: str, held_bytes: int, expected: tuple[int, bool] | None
) -> None:
    assert optimizer_width(rule, held_bytes, MODEL, with_gradient=True) == expected


@pytest.mark.parametrize("width", [4, 8, 12])  # moments in 16 bits, in FP32, and those with a master copy
def test_widths_for_16_bit_parameters(width: int) -> None:
    model = Model(shapes=MODEL.shapes, itemsize=2)
    assert optimizer_width("master adam", width * P, model) == (width, False)


# -- shares ------------------------------------------------------------------------------------------------------------


def test_the_most_that_a_rank_may_have() -> None:
    assert most_elements(MODEL, 3, Cut.ELEMENTS) == 24 + 3 + 1 + 1
    assert most_elements(MODEL, 3, Cut.ROWS) == 4 * 7 + 3 + 1 + 1
    assert most_elements(MODEL, 3, Cut.PARAMETERS) == 27 + 70  # 1/N and the largest


@pytest.mark.parametrize(
    ("elements", "cut"),
    [
        ([27, 27, 27], Cut.ELEMENTS),  # one flat buffer, padded by one
        ([29, 29, 29], Cut.ELEMENTS),  # a flat buffer for each
        ([40, 40, 0], None),
        ([70, 7, 3], Cut.PARAMETERS),
        ([70, 9, 1], Cut.PARAMETERS),
        ([71, 7, 2], Cut.PARAMETERS),
        ([70, 8, 2], Cut.PARAMETERS),
        ([70, 6, 4], None),  # no parameter has six elements
        ([80, 0, 0], Cut.PARAMETERS),
        ([33, 30, 17], Cut.ROWS),
        ([34, 30, 17], None),
        ([80, 80, 80], None),
        ([26, 26, 26], None),  # together they are not the whole
    ],
)
def test_shares_are_explained_by_a_way_of_cutting(elements: list[int], cut: Cut | None) -> None:
    shares = explain([8 * count for count in elements], MODEL, 8)
    assert (shares.cut if not shares.reason else None) == cut


def test_one_rank_with_everything_is_no_sharding_where_parameters_are_small() -> None:
    model = Model(shapes=[(10,)] * 6, itemsize=4)
    assert explain([120, 80, 40], model, 4).cut is Cut.PARAMETERS
    assert "rank 0 of 3 has 240 bytes of it; a share is 80" in explain([240, 0, 0], model, 4).reason


def test_counters_are_named_and_no_more_than_tensors() -> None:
    model = Model(shapes=[(70,), (10,)], itemsize=4)
    share, padded = 8 * 27, 8 * 28
    assert not explain([padded + 8, share + 8, share], model, 8, has_counters=True).reason
    assert "with padding and step counters" in explain([padded + 12, share, share], model, 8, has_counters=True).reason
    assert explain([padded + 4, share, share], model, 8).reason


def test_what_is_lost_is_told() -> None:
    assert explain([8 * 26] * 3, MODEL, 8).reason == "all 3 ranks together have 624 bytes of 640"


# -- readings ----------------------------------------------------------------------------------------------------------


def _ranks(*held: tuple[int, int, int], other: int = 0, notes: int = 0) -> list[Held]:
    """For each rank the elements of parameters and gradients, and the bytes of optimizer state."""
    names = ("parameters", "gradients", "optimizer", "other", "notes", "buffers")
    return [
        Held(by_category=dict(zip(names, (4 * params, 4 * grads, optimizer, other, notes, 1000), strict=True)))
        for params, grads, optimizer in held
    ]


RIGHT = {
    "ddp": _ranks((P, P, 8 * P + 16), (P, P, 8 * P + 16)),
    "1": _ranks((P, P, 8 * 40 + 8), (P, P, 8 * 40 + 12)),
    "2": _ranks((P, 40, 8 * 40 + 8), (P, 40, 8 * 40 + 12)),
    "3": _ranks((40, 40, 8 * 40 + 8), (40, 40, 8 * 40 + 12)),
}


@pytest.mark.parametrize("stage", STAGES)
def test_what_a_stage_should_hold_is_not_wrong(stage: str) -> None:
    assert not wrong_kind(stage, MODEL, ADAM, RIGHT[stage]).wrong
    assert not wrong_total(stage, MODEL, ADAM, RIGHT[stage]).wrong


@pytest.mark.parametrize(("stage", "held"), [("2", "1"), ("3", "2"), ("3", "ddp"), ("1", "ddp"), ("2", "ddp")])
def test_a_stage_that_shards_less_is_wrong_by_kind_and_in_total(stage: str, held: str) -> None:
    assert wrong_kind(stage, MODEL, ADAM, RIGHT[held]).wrong
    assert wrong_total(stage, MODEL, ADAM, RIGHT[held]).wrong


@pytest.mark.parametrize(("stage", "held"), [("1", "3"), ("2", "3"), ("ddp", "1"), ("ddp", "2")])
def test_a_stage_that_shards_more_has_less_than_one_copy(stage: str, held: str) -> None:
    assert "less than one whole copy" in wrong_kind(stage, MODEL, ADAM, RIGHT[held]).wrong


def test_gradients_that_zero_1_lets_go_early_are_no_fault() -> None:
    early = _ranks((P, 40, 8 * 40 + 8), (P, 0, 8 * 40 + 12))
    assert not wrong_kind("1", MODEL, ADAM, early).wrong
    assert not wrong_total("1", MODEL, ADAM, early).wrong
    unsharded = _ranks((P, 0, 8 * P + 16), (P, 0, 8 * P + 16))
    assert wrong_total("1", MODEL, ADAM, unsharded).wrong


def test_shards_of_gradients_that_nobody_names_count_with_the_optimizer() -> None:
    unnamed = _ranks((P, 0, 12 * 40), (P, 0, 12 * 40))
    assert not wrong_kind("2", MODEL, PLAIN, unnamed).wrong
    assert not wrong_total("2", MODEL, PLAIN, unnamed).wrong
    assert wrong_kind("2", MODEL, PLAIN, _ranks((P, 0, 12 * P), (P, 0, 12 * P))).wrong


@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_what_no_category_explains_is_wrong(stage: str) -> None:
    ranks = [Held(by_category={**rank.by_category, "other": 4 * P}) for rank in RIGHT[stage]]
    assert wrong_kind(stage, MODEL, ADAM, ranks).wrong
    assert wrong_total(stage, MODEL, ADAM, ranks).wrong


def test_data_parallelism_may_have_a_bucket_for_each_gradient_and_no_more() -> None:
    full = [(P, P, 8 * P + 16)] * 2
    assert not wrong_total("ddp", MODEL, ADAM, _ranks(*full, other=4 * P)).wrong
    assert "more than one bucket" in wrong_total("ddp", MODEL, ADAM, _ranks(*full, other=8 * P)).wrong


def test_notes_are_as_many_as_places_and_ranks() -> None:
    full = [(P, P, 8 * 40 + 8), (P, P, 8 * 40 + 12)]
    assert not wrong_total("1", MODEL, ADAM, _ranks(*full, notes=8 * 7)).wrong
    assert "integers" in wrong_total("1", MODEL, ADAM, _ranks(*full, notes=8 * P)).wrong


def test_a_fault_is_told_with_what_it_should_be() -> None:
    finding = wrong_total("1", MODEL, ADAM, RIGHT["ddp"])
    assert finding.wrong == (
        "beside 640 bytes of states that are whole, rank 0 of 2 has 656 bytes of it; a share is 320, and 376 with "
        "padding and step counters"
    )
    assert finding.expected == "960 bytes on each rank (8P + 8P/N), padding and step counters apart"
    assert finding.observed == "1,296, 1,296 bytes"


# -- within a step -----------------------------------------------------------------------------------------------------

CHAIN = Chain(world_size=2, num_layers=6, width=10)


def _forward(*units: float, chooses: bool = True) -> list[dict[str, object]]:
    return [{FORWARD: [count * CHAIN.unit_bytes for count in units], "chooses": chooses}] * 2


def test_units_that_are_freed_are_few_at_any_time() -> None:
    assert not whole_too_long(CHAIN, _forward(2, 2, 2, 2, 2, 1))
    assert not whole_too_long(CHAIN, _forward(3, 3, 3, 3, 3, 3))


@pytest.mark.parametrize("units", [(1, 2, 3, 4, 5, 6), (6, 5, 4, 3, 2, 1), (6, 6, 6, 6, 6, 6)])
def test_units_that_are_whole_too_long_are_told(units: tuple[int, ...]) -> None:
    assert "units are whole" in whole_too_long(CHAIN, _forward(*units))


def test_what_cannot_be_told_to_free_may_keep_units_for_the_backward() -> None:
    kept = _forward(1, 2, 3, 4, 5, 6, chooses=False)
    assert not whole_too_long(CHAIN, kept)
    assert are_kept_for_backward(CHAIN, kept)
    assert not are_kept_for_backward(CHAIN, _forward(2, 2, 2, 2, 2, 1, chooses=False))


def test_what_is_whole_before_its_time_is_not_kept_for_the_backward() -> None:
    gathered_first = _forward(6, 6, 6, 6, 6, 6, chooses=False)
    assert "while layer 0 of 6 computes, 6.0 units are whole" in whole_too_long(CHAIN, gathered_first)
    assert not are_kept_for_backward(CHAIN, gathered_first)
