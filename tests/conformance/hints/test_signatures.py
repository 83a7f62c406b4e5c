"""Faults that are known by their numbers: each by a mutant or by numbers like a mutant's, and noise by none."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from conformance import expect
from conformance.hints.patterns import pattern
from conformance.hints.signatures import own_signature, signature, stands_alone
from conformance.hints.texts import texts as _texts
from conformance.verdict import Result, Text, Tier, Verdict
from impls.loading import load
from impls.reference import queue_mesh

RIGHT = torch.tensor([[3.0, -1.5, 8.25], [0.5, 2.0, -4.75]])


def _result(
    verdict: Verdict = Verdict.VIOLATED, claim: str = "loop.mean", case: str = "test_it", **other: Any
) -> Result:
    fields = {name: other.pop(name) for name in ("expected", "observed", "unit", "tier") if name in other}
    return Result(claim=claim, case=case, impl="mine", verdict=verdict, data=other, **{"tier": Tier.CORE, **fields})


def _named(*results: Result) -> str | None:
    """The name of the signature, as the file of texts has it."""
    return _name_of(signature(results))


def _name_of(found: Text | None) -> str | None:
    if found is None:
        return None
    assert found.fa
    return next(name for name, texts in _texts().items() if re.fullmatch(_as_regex(texts["en"]), found.en))


def _as_regex(text: str) -> str:
    """A text with something in the place of each name in braces."""
    return ".*".join(map(re.escape, re.split(r"{\w+}", text)))


def test_what_is_no_schedule_is_told_in_place_of_what_the_claim_is_about() -> None:
    result = _result(claim="pipeline.1f1b.memory", instead="no_schedule")
    assert stands_alone(result)
    assert _name_of(own_signature(result)) == "no_schedule"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (RIGHT * 3, {"factor": 3.0}),
        (RIGHT / 4, {"factor": 0.25}),
        (RIGHT * 0, {"zeros": True}),
        (RIGHT + torch.tensor([1.0, 2.0, 3.0]), {"row": True}),
        (RIGHT.flatten().roll(2).reshape(2, 3), {"shifted": 2, "of": 6}),
        (torch.cat([RIGHT.flatten()[:4], torch.tensor([9.0, 7.0])]).reshape(2, 3), {"tail": 4, "of": 6}),
        (RIGHT.flip(0, 1), {"irregular": True}),
        (RIGHT + torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), {"irregular": True}),
    ],
)
def test_pattern_of_a_wrong_tensor(wrong, told):
    assert pattern(wrong, RIGHT) == told


def test_pattern_of_rounding_and_of_hidden_infinities():
    right = torch.linspace(0.1, 3.0, 7)
    assert pattern(right.to(torch.bfloat16).float(), right) == {"rounded": "bfloat16"}
    assert pattern(torch.ones(3), torch.tensor([1.0, torch.inf, 2.0])) == {"finite": True}


@pytest.mark.parametrize("values", [torch.ones(4), torch.tensor([1.0, 2.0]), torch.tensor(3.0), torch.zeros(0)])
def test_what_is_too_plain_or_small_has_no_pattern(values):
    assert pattern(values * 2, values) == {}


@pytest.mark.parametrize("seed", range(40))
def test_noise_has_no_pattern(seed):
    generator = torch.Generator().manual_seed(seed)
    right, noise = (torch.randn(3, 5, generator=generator) for _ in range(2))
    for wrong in (noise, right + noise, right + 0.01 * noise, right * (1 + noise)):
        assert pattern(wrong, right) == {"irregular": True}


def _factors(*pairs: tuple[int, float], **other: Any) -> list[Result]:
    return [_result(world_size=size, pattern={"factor": factor}, **other) for size, factor in pairs]


def _bytes(*rows: tuple[int, int, int]) -> list[Result]:
    claim = "collectives.ring.bytes"
    return [
        _result(claim=claim, unit="bytes", world_size=size, observed=f"{observed:,}", expected=str(wanted))
        for size, observed, wanted in rows
    ]


HOLDS_FOR_TWO = _result(Verdict.HOLDS, world_size=2)


@pytest.mark.parametrize(
    ("results", "name"),
    [
        (_factors((2, 2.0), (3, 3.0), (4, 4.0)), "summed"),
        (_factors((2, 0.5), (3, 0.333333)), "divided_twice"),
        (_factors((2, 0.5), (3, 0.333333), claim="collectives.values.allreduce"), "averaged"),
        ([HOLDS_FOR_TWO, *_factors((3, 1.5), (4, 2.0))], "written_out_two"),
        (_factors((2, 4.0), (3, 4.0)), "constant"),
        ([_result(pattern={"factor": 2}, factors=[[2, 2.0], [5, 5.0]])], "microbatches_summed"),
        ([_result(pattern={"factor": 0.5}, factors=[[2, 0.5], [5, 0.2]])], "microbatches_divided"),
        (_bytes((3, 6_000, 4_000), (4, 12_000, 6_000)), "whole_tensor_once"),
        ([_result(pattern={"rounded": "float16"}), _result(pattern={"rounded": "float16"})], "rounded"),
        ([_result(pattern={"zeros": True})], "zeros"),
        ([_result(pattern={"row": True})], "row"),
        ([_result(pattern={"finite": True})], "finite"),
        ([_result(pattern={"shifted": 4, "of": 12})], "shifted"),
        ([_result(pattern={"tail": 9, "of": 10}, world_size=3)], "remainder"),
        ([_result(pattern={"tail": 12 - 12 // n, "of": 12}, world_size=n) for n in (3, 4)], "last_chunk"),
        (_bytes((3, 12_000, 4_000), (4, 24_000, 6_000)), "whole_tensor"),
        (_bytes((3, 8_000, 4_000), (4, 12_000, 6_000)), "twice"),
        ([_result(world_size=3, ranks={"right": [0], "wrong": [1, 2]})], "only_rank_zero"),
        ([_result(Verdict.HOLDS, world_size=n) for n in (2, 4)] + [_result(world_size=3)], "powers_of_two"),
        ([HOLDS_FOR_TWO, _result(world_size=3), _result(world_size=4)], "right_for_two"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_signature_is_named(results, name):
    assert _named(*results) == name


@pytest.mark.parametrize(
    "results",
    [
        _factors((2, 2.0)),  # N times, or twice?
        _factors((2, 2.0), (3, 3.5)),
        [*_factors((2, 2.0), (3, 3.0)), _result(pattern={"irregular": True}, world_size=2)],
        [*_factors((2, 2.0), (3, 3.0)), _result(pattern={"zeros": True}, world_size=2)],
        [*_factors((2, 2.0), (3, 3.0)), _result(Verdict.CRASHES)],
        _factors((2, 2.0), (3, 3.0), ranks={"right": [1], "wrong": [0, 2]}),
        _factors((2, 2.0), (3, 3.0), claim="collectives.values.allreduce"),
        [_result(pattern={"rounded": "float16"}), _result(pattern={"rounded": "bfloat16"})],
        [_result(pattern={"tail": 7, "of": 10}, world_size=3)],
        [_result(world_size=2, ranks={"right": [0], "wrong": [1]})],  # the first, or all but the last?
        _bytes((2, 4_000, 2_000)),  # with two ranks N times is twice
        _bytes((3, 12_000, 4_000)),
        [_result(world_size=2), _result(world_size=3)],
        [_result(Verdict.HOLDS, world_size=2), _result(world_size=2, case="another"), _result(world_size=3)],
        [_result(Verdict.HOLDS, world_size=2)],
        [],
    ],
    ids=range(16),
)
def test_what_is_not_certain_is_not_named(results):
    assert signature(results) is None


# By real mutants. Rings and trees run between threads; the input of rank r is the same in all of them.

NAMED = {
    "ring_drops_the_remainder": ("ring_allreduce", "remainder"),
    "ring_never_sums_the_last_chunk": ("ring_allreduce", "last_chunk"),
    "ring_hides_nan": ("ring_allreduce", "finite"),
    "tree_forgets_ranks_beyond_a_power_of_two": ("tree_allreduce", "powers_of_two"),
    "reduce_scatter_is_shifted": ("ring_reduce_scatter", None),  # a neighbour's chunk: other numbers, no shift
    "allgather_begins_with_its_own": ("ring_allgather", "shifted_chunk"),
    "ring_takes_the_maximum": ("ring_allreduce", None),
}


def _inputs(size: int, name: str) -> list[Tensor]:
    length = 12 if name.endswith("last_chunk") else 2 * size + size // 2 + (size == 2)
    tensors = [torch.arange(float(length)) * 1.5 + 10 * rank**2 for rank in range(size)]
    if name.endswith("nan"):
        tensors[0][1] = torch.nan
    return tensors


def _expected(function: str, inputs: list[Tensor], rank: int) -> Tensor:
    total = torch.stack(inputs).sum(0)
    parts = {"ring_allgather": torch.cat(inputs), "ring_reduce_scatter": total.tensor_split(len(inputs))[rank]}
    return parts.get(function, total)


@pytest.mark.parametrize("name", list(NAMED))
def test_mutant_between_threads_is_named(name):
    function, expected_name = NAMED[name]
    impl = load(f"mutants/{name}")
    results = []
    for size in (2, 3, 4):
        inputs, ends = _inputs(size, name), queue_mesh(size)

        def run(rank: int, inputs=inputs, ends=ends, size=size) -> Tensor:
            value = impl.call(function, mesh=ends[rank], rank=rank, world_size=size, tensor=inputs[rank].clone())
            return value if isinstance(value, Tensor) else torch.cat([part.flatten() for part in value])

        with ThreadPoolExecutor(size) as pool:
            values = list(pool.map(run, range(size)))
        found = [expect.same(value, _expected(function, inputs, rank)) for rank, value in enumerate(values)]
        broken = next((comparison for comparison in found if not comparison.matches), None)
        data = {"pattern": dict(broken.pattern)} if broken is not None and broken.pattern else {}
        verdict = Verdict.HOLDS if broken is None else Verdict.VIOLATED
        results.append(_result(verdict, claim="collectives.values.allreduce", world_size=size, **data))
    assert any(result.verdict is Verdict.VIOLATED for result in results)
    assert _named(*results) == expected_name
