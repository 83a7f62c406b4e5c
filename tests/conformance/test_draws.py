"""The values that collectives are judged with: exact ones are, and the bound holds for every order of addition."""

from __future__ import annotations

import itertools

import pytest
import torch

from conformance.collectives.layouts import lay_out
from conformance.collectives.values import sum_comparison
from fixtures import draws, tolerances
from fixtures.draws import Case

ORDERS = [order for order in itertools.permutations(range(5)) if order[0] < order[1]][:30]


def added(inputs: list[torch.Tensor], order: tuple[int, ...]) -> torch.Tensor:
    total = inputs[order[0]]
    for rank in order[1:]:
        total = total + inputs[rank]
    return total


@pytest.mark.parametrize("dtype", draws.GLOO_DTYPES, ids=str)
@pytest.mark.parametrize("values", ["small", "wide"])
def test_exact_values_add_to_the_same_bits_in_every_order(dtype: torch.dtype, values: str) -> None:
    case = Case(world_size=5, shape=(50,), dtype=dtype, values=values, seed=4)
    inputs = case.inputs()
    assert all(torch.equal(added(inputs, order), case.total()) for order in ORDERS)


@pytest.mark.parametrize("dtype", draws.REAL_DTYPES, ids=str)
def test_rounded_values_stay_within_the_bound_in_every_order(dtype: torch.dtype) -> None:
    case = Case(world_size=5, shape=(500,), dtype=dtype, values="real", seed=4)
    inputs = case.inputs()
    found = [sum_comparison(added(inputs, order), inputs, exact=False, what="") for order in ORDERS]
    assert all(comparison.matches for comparison in found)


@pytest.mark.parametrize("dtype", draws.REAL_DTYPES, ids=str)
def test_rounded_values_depend_on_the_order(dtype: torch.dtype) -> None:
    inputs = Case(world_size=5, shape=(500,), dtype=dtype, values="real", seed=4).inputs()
    assert not torch.equal(added(inputs, (0, 1, 2, 3, 4)), added(inputs, (4, 3, 2, 1, 0)))


@pytest.mark.parametrize(
    ("dtype", "narrow"),
    [
        (torch.float64, torch.float32),
        (torch.float32, torch.float16),
        (torch.float32, torch.bfloat16),
        (torch.float16, torch.bfloat16),
    ],
)
def test_a_narrower_sum_is_outside_the_bound(dtype: torch.dtype, narrow: torch.dtype) -> None:
    inputs = Case(world_size=4, shape=(500,), dtype=dtype, values="real").inputs()
    rounded = added([tensor.to(narrow) for tensor in inputs], (0, 1, 2, 3)).to(dtype)
    assert not sum_comparison(rounded, inputs, exact=False, what="").matches


@pytest.mark.parametrize(
    ("dtype", "narrow"), [(torch.float64, torch.float32), (torch.int64, torch.float64), (torch.float32, torch.float16)]
)
def test_a_narrower_sum_of_wide_integers_has_other_bits(dtype: torch.dtype, narrow: torch.dtype) -> None:
    inputs = Case(world_size=4, shape=(50,), dtype=dtype, values="wide").inputs()
    rounded = added([tensor.to(narrow) for tensor in inputs], (0, 1, 2, 3)).to(dtype)
    assert not sum_comparison(rounded, inputs, exact=True, what="").matches


def test_a_nan_is_outside_every_bound() -> None:
    inputs = Case(world_size=2, shape=(3,), values="real").inputs()
    assert not sum_comparison(torch.full((3,), torch.nan), inputs, exact=False, what="").matches


def test_one_tensor_has_no_rounding() -> None:
    assert float(tolerances.any_order_sum([torch.ones(1)])) == 0.0


@pytest.mark.parametrize("layout", draws.LAYOUTS)
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 4)])
def test_a_layout_has_the_values_and_keeps_its_margin(layout: str, shape: tuple[int, ...]) -> None:
    values = Case(world_size=1, shape=shape).inputs()[0]
    whole, view = lay_out(values, layout)
    assert torch.equal(view, values)
    view.zero_()
    assert torch.equal(whole, torch.zeros_like(whole)) == (layout in ("contiguous", "transposed") or whole.numel() == 0)


def test_the_table_has_every_dtype_layout_and_world_size() -> None:
    table = draws.any_table()
    assert {case.dtype for case in table} == set(draws.GLOO_DTYPES)
    assert {case.layout for case in table} == set(draws.LAYOUTS)
    assert {case.world_size for case in table} == set(draws.WORLD_SIZES)
    assert {case.dtype for case in table if case.values == "real"} == set(draws.REAL_DTYPES)
