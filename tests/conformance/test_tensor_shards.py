"""A shard is recognised by its lines, however it is cut, turned, fused or padded; another matrix is not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from conformance.strategies.tensor_case import Case, bounds, compute
from conformance.strategies.tensor_shards import held, locate
from fixtures import blocks
from fixtures.blocks import Size

ATTENTION = Size(kind="attention", width=8, inner=0, num_heads=4)


@pytest.fixture(scope="module")
def wholes() -> dict[str, Tensor]:
    return {name: p.detach() for name, p in blocks.build(ATTENTION, 1, exact=True).named_parameters()}


def test_rows_columns_and_elements_are_found(wholes: dict[str, Tensor]) -> None:
    for name, dim in (("q.weight", 0), ("out.weight", 1), ("q.bias", 0)):
        shard = locate("own", wholes[name].narrow(dim, 4, 4), wholes)
        assert shard is not None
        assert held([shard]) == {name: {dim: [4, 5, 6, 7]}}


def test_a_transposed_shard_is_found_and_its_gradient_turned_with_it(wholes: dict[str, Tensor]) -> None:
    own = wholes["k.weight"][2:4].T.contiguous()
    shard = locate("own", own, wholes)
    assert shard is not None
    assert shard.names == ("k.weight",)
    assert torch.equal(shard.expected(wholes, own), own.double())


def test_fused_shards_are_told_apart(wholes: dict[str, Tensor]) -> None:
    fused = torch.cat([wholes[f"{name}.weight"][:2] for name in "qkv"])
    shard = locate("qkv", fused, wholes)
    assert shard is not None
    assert held([shard]) == {f"{name}.weight": {0: [0, 1]} for name in "qkv"}


def test_a_row_of_zeros_is_padding(wholes: dict[str, Tensor]) -> None:
    shard = locate("own", torch.cat([wholes["v.weight"][:3], torch.zeros(1, 8)]), wholes)
    assert shard is not None
    assert shard.lines[3] is None


def test_a_matrix_of_zeros_is_padding_and_a_part_of_nothing(wholes: dict[str, Tensor]) -> None:
    shard = locate("own", torch.zeros(4, 8), wholes)
    assert shard is not None
    assert (shard.names, held([shard])) == ((), {})


def test_a_matrix_of_other_numbers_is_nothing(wholes: dict[str, Tensor]) -> None:
    assert locate("own", wholes["q.weight"] + 0.5, wholes) is None


@pytest.mark.parametrize("kind", blocks.PLANS)
@pytest.mark.parametrize("exact", [True, False])
def test_no_two_lines_of_a_module_are_equal(kind: str, exact: bool) -> None:
    module = blocks.build(Size(kind=kind, width=8, inner=12, num_heads=4), 2, exact=exact)
    for parameter in (p.detach() for p in module.parameters() if p.dim() == 2):
        assert [torch.unique(parameter, dim=dim).shape[dim] for dim in (0, 1)] == list(parameter.shape)


def test_real_numbers_have_a_bound_far_below_them() -> None:
    case = Case(way="block", width=24, inner=48, num_heads=12, exact=False, steps=1)
    found = compute(case)
    limits = bounds(case, found, bits=False)
    assert 0 < max(limits.values()) < 1e-2


def test_integers_are_the_same_in_single_precision() -> None:
    case = Case(way="mlp")
    module, x = case.build(), case.inputs(0)
    assert torch.equal(module(x).double(), compute(case).outputs[0])
