"""Every sharded matrix is cut in N equal parts that make up the whole (partition); the bytes follow (memory)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from torch import Tensor

from conformance.checks import Judge, Subject, claim
from conformance.strategies import tensor_programs as programs
from conformance.strategies.tensor_case import WAYS, Case, compute
from conformance.strategies.tensor_judging import by_way, case_of, located
from conformance.strategies.tensor_shards import Shard, held
from conformance.verdict import Tier, Witness
from fixtures import blocks
from fixtures.world.outcome import Outcome
from impls.words import number_of

LAID_OUT_BY_SUITE = "{} is a function of tensors: the shards are the suite's, and say nothing about it"
OTHER_BYTES = 16 << 10  # generator states, indices: less than half of the smallest matrix that is weighed
VOCABULARY = 1536  # multiples of 64 and of 128 rows, to which many pad a rank's part, make it up on 2, 3 and 4 ranks
LARGE = {"column": (64, 384), "row": (64, 384), "embedding": (96, VOCABULARY), "mlp": (64, 384)}
LARGE |= dict.fromkeys(("attention", "block"), (192, 384))


def parted(*names: str, tier: Tier = Tier.CORE) -> list[Any]:
    """Parameters for a check of these ways to provide a layer."""

    def mark(**how: Any) -> pytest.MarkDecorator:
        return claim("strategies.tensor.partition", **how)

    return by_way(mark, names, tier)


def weighed(*names: str, tier: Tier = Tier.CORE) -> list[Any]:
    """Parameters for a check of these ways to provide a layer."""

    def mark(**how: Any) -> pytest.MarkDecorator:
        return claim("strategies.tensor.memory", **how)

    return by_way(mark, names, tier)


# -- partition ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", parted(*WAYS))
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_each_rank_has_one_nth_of_every_matrix_and_all_ranks_the_whole(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    sizes = {"inner": VOCABULARY} if way == "embedding" else {}
    case = case_of(way, exact=False, needs_input_gradient=False, **sizes)
    reports = subject.run(programs.values, world_size, case.fields()).values
    if reports[0]["form"] == "function":
        judge.not_provided(LAID_OUT_BY_SUITE.format(WAYS[way][1][0]))
    wholes = compute(case).start
    by_rank = located(reports, wholes)
    unknown = [(rank, key) for rank, shards in enumerate(by_rank) for key, shard in shards.items() if shard is None]
    if unknown:
        rank, key = unknown[0]
        judge.violated(
            f"rank {rank} has {key}, which is no part of any parameter of the unsharded module",
            expected="rows or columns of the whole parameters",
            observed=f"{tuple(reports[rank]['start'][key].shape)}",
        )
    for name in sharded(case, wholes):
        if fault := _fault(name, wholes[name], [_places(shards.values(), name) for shards in by_rank]):
            judge.violated(
                f"{name} {list(wholes[name].shape)}: {fault}",
                expected=f"1/{world_size} of it on each rank, along one dimension, all ranks together all of it",
                observed=fault,
            )
    judge.holds(
        expected=f"1/{world_size} of each",
        observed=", ".join(f"{name} along {_along(by_rank[0].values(), name)}" for name in sharded(case, wholes)),
        witness=Witness.VALUE,
        message=f"whole on every rank: {', '.join(sorted(set(wholes) - set(sharded(case, wholes)))) or 'nothing'}",
        examples=world_size,
    )


def sharded(case: Case, wholes: Mapping[str, Tensor]) -> list[str]:
    """The parameters that are cut: matrices, and biases of column-parallel layers."""
    return [name for name in wholes if blocks.cut_of(case.size, name) is not None]


def _places(shards: Iterable[Shard | None], name: str) -> dict[int, list[int]]:
    return held([shard for shard in shards if shard is not None]).get(name, {})


def _along(shards: Iterable[Shard | None], name: str) -> str:
    return "/".join(str(dim) for dim in _places(shards, name))


def _fault(name: str, whole: Tensor, ranks: Sequence[dict[int, list[int]]]) -> str:
    """What is wrong with the shards of one parameter; empty when nothing is."""
    dims = {dim for places in ranks for dim in places}
    if len(dims) != 1:
        return f"cut along {number_of(len(dims), 'dimension')}" if dims else "no rank has any of it"
    (dim,) = dims
    size = whole.shape[dim]
    for rank, places in enumerate(ranks):
        count = len(places.get(dim, []))
        if count * len(ranks) != size:
            return f"rank {rank} has {count} of {size} lines"
    every = [index for places in ranks for index in places[dim]]
    if len(set(every)) != size:
        return f"{size - len(set(every))} of {size} lines are on no rank"
    return ""


# -- memory ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """What one rank is to hold of a module's parameters."""

    cut: int
    whole: int
    stays: tuple[str, ...]  # what is whole on every rank
    padding: int = 0  # a row that some keep for ids that are not theirs

    @property
    def total(self) -> int:
        """Both."""
        return self.cut + self.whole


def _expected(case: Case, world_size: int) -> Bytes:
    parameters = dict(case.build().named_parameters())
    cut = sharded(case, {name: p.detach() for name, p in parameters.items()})
    stays = tuple(name for name in parameters if name not in cut)
    return Bytes(
        cut=sum(parameters[name].nbytes for name in cut) // world_size,
        whole=sum(parameters[name].nbytes for name in stays),
        stays=stays,
        padding=4 * case.width if case.kind == "embedding" else 0,
    )


def _added(outcome: Outcome) -> dict[str, int]:
    """Bytes by category that the layer holds at rest; `other` is what it keeps beside."""
    readings: dict[str, Any] = {reading.name: reading for reading in outcome.memory}
    found = dict(readings[programs.AT_REST].categories)
    found["other"] = max(0, found["other"] - readings["before"].categories["other"])
    return found


@pytest.mark.parametrize("way", weighed(*WAYS))
@pytest.mark.parametrize("world_size", [2, 3])
def test_shards_take_one_nth_and_the_rest_stays_whole(
    subject: Subject, judge: Judge, way: str, world_size: int
) -> None:
    width, inner = LARGE[WAYS[way][0]]
    case = case_of(way, width=width, inner=inner, exact=False, shape=(1, 2))
    outcomes = subject.run(programs.memory, world_size, case.fields())
    if outcomes[0].value["form"] == "function":
        judge.not_provided(LAID_OUT_BY_SUITE.format(WAYS[way][1][0]))
    bytes_ = _expected(case, world_size)
    for outcome in outcomes:
        _judge_rank(judge, outcome, bytes_, world_size)
    held_bytes = _added(outcomes[0])
    judge.holds(
        expected=f"{bytes_.total:,} = {bytes_.cut:,} of shards + {bytes_.whole:,} whole",
        observed=", ".join(f"{held_bytes[part]:,} {part}" for part in ("parameters", "gradients", "optimizer")),
        witness=Witness.MEMORY,
        unit="bytes",
        message=f"whole on each of {number_of(world_size, 'rank')}: {', '.join(bytes_.stays) or 'nothing'}; "
        f"beside its state it keeps {held_bytes['other']:,} bytes",
        examples=world_size,
    )


def _judge_rank(judge: Judge, outcome: Outcome, bytes_: Bytes, world_size: int) -> None:
    """To the byte; but a bias that one rank adds for all need not be on the others, nor have a gradient there."""
    found = _added(outcome)
    for part in ("parameters", "gradients", "optimizer"):
        if not bytes_.cut <= found[part] <= bytes_.total + bytes_.padding:
            judge.violated(
                f"rank {outcome.rank} of {world_size}: {part} are not those of its shards",
                expected=f"{bytes_.cut:,} + {bytes_.whole:,} whole: {', '.join(bytes_.stays) or 'nothing'}",
                observed=f"{found[part]:,}",
                witness=Witness.MEMORY,
                unit="bytes",
            )
    if found["other"] > OTHER_BYTES:
        judge.violated(
            f"rank {outcome.rank} of {world_size} keeps {found['other']:,} bytes beside its parameters, gradients and "
            "optimizer state: a whole matrix, or a gathered one",
            expected=f"at most {OTHER_BYTES:,}",
            observed=f"{found['other']:,}",
            witness=Witness.MEMORY,
            unit="bytes",
        )
