"""What a rank should hold under each ZeRO stage, in bytes, and how a share is explained. Pure functions, no torch.

A state of w bytes for each of P parameters is either whole on every rank, or cut into N shares. A share need not be
exactly w P/N: it ends where elements, rows or parameters end. Each way of cutting has its own bound, and all have this
one: together the shares are the whole. Source: Rajbhandari et al. 2020, ZeRO (1910.02054), sections 3.1 and 5.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction

KINDS = ("parameters", "gradients", "optimizer")
SHARDED: Mapping[str, tuple[str, ...]] = {  # stage -> the kinds of state of which a rank holds its share only
    "ddp": (),
    "1": ("optimizer",),
    "2": ("gradients", "optimizer"),
    "3": KINDS,
}
FLOAT_BYTES = 4
COUNTER_BYTES = 4  # Adam's `step`, for each parameter tensor that an optimizer sees
NOTE_BYTES = 8  # an integer, for each parameter tensor and each rank
MOMENTS: Mapping[str, int] = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2, "master adam": 2}  # per parameter
ANY_RULE = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The parameter tensors of a model, all of one dtype."""

    shapes: Sequence[Sequence[int]]
    itemsize: int

    @property
    def numels(self) -> list[int]:
        """Elements of each tensor."""
        return [math.prod(shape) for shape in self.shapes]

    @property
    def numel(self) -> int:
        """P, the number of parameters."""
        return sum(self.numels)

    @property
    def counter_bytes(self) -> int:
        """Of one step counter for each tensor."""
        return COUNTER_BYTES * len(self.shapes)

    def whole_padding_bytes(self, width: int, world_size: int) -> int:
        """How far a whole state in flat buffers, one for each tensor at most, may exceed its own bytes."""
        return width * (world_size - 1) * len(self.shapes)

    def note_bytes(self, world_size: int) -> int:
        """What may be noted in integers: where parameters begin, which were used, who the ranks are."""
        return NOTE_BYTES * (len(self.shapes) + world_size + 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Bytes per parameter of each kind of state, and whether the optimizer's has step counters besides."""

    parameters: int
    gradients: int
    optimizer: int
    has_counters: bool = False

    @property
    def total(self) -> int:
        """Of all states, unsharded."""
        return self.of(*KINDS)

    def of(self, *kinds: str) -> int:
        """Of some kinds together."""
        return sum(int(getattr(self, kind)) for kind in kinds)

    def sharded(self, stage: str) -> int:
        """Bytes per parameter of which every rank holds its share."""
        return self.of(*SHARDED[stage])

    def replicated(self, stage: str) -> int:
        """Bytes per parameter that every rank holds."""
        return self.total - self.sharded(stage)

    def saving(self, stage: str, world_size: int) -> Fraction:
        """How many times less a rank holds than when nothing is sharded."""
        return Fraction(self.total) / (self.replicated(stage) + Fraction(self.sharded(stage), world_size))

    def saving_limit(self, stage: str) -> Fraction | None:
        """What `saving` comes to as N grows; None where it grows without bound."""
        return Fraction(self.total, self.replicated(stage)) if self.replicated(stage) else None

    def formula(self, stage: str) -> str:
        """Bytes per parameter on one of N ranks, as a text: "4P + 12P/N"."""
        whole, shared = self.replicated(stage), self.sharded(stage)
        return " + ".join([*([f"{whole}P"] if whole else []), *([f"{shared}P/N"] if shared else [])])


SIXTEEN_BYTES = Widths(parameters=2, gradients=2, optimizer=12)  # FP32 master copy and Adam's two moments


class Cut(StrEnum):
    """Where the shares of a state end."""

    ELEMENTS = "flat buffers cut anywhere"
    PARAMETERS = "whole parameters dealt out"
    ROWS = "each parameter cut by rows"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The shares of all ranks, explained by a way of cutting, or (with a reason) not."""

    cut: Cut
    extra_bytes: int = 0  # the most that a rank holds above 1/N: padding, counters, its larger part of a partition
    reason: str = ""


def optimizer_width(
    rule: str, held_bytes: int, model: Model, *, with_gradient: bool = False
) -> tuple[int, bool] | None:
    """Bytes of optimizer state per parameter that a rank alone holds, and whether counters come on top.

    Moments are as wide as the parameters, or FP32; an FP32 master copy may be there as well, and `with_gradient` beside
    it the FP32 gradient that the inner optimizer steps from. None where that does not explain `held_bytes`.
    """
    beside = FLOAT_BYTES if with_gradient else 0
    for width in sorted(beside + width for width in _possible_widths(rule, model.itemsize)):
        rest = held_bytes - width * model.numel
        if 0 <= rest <= model.counter_bytes and rest % COUNTER_BYTES == 0:
            return width, rest > 0
    return None


def _possible_widths(rule: str, itemsize: int) -> set[int]:
    counts = set(MOMENTS.values()) if rule == ANY_RULE else {MOMENTS[rule]}
    return {
        count * each + master for count in counts for each in (itemsize, FLOAT_BYTES) for master in (0, FLOAT_BYTES)
    }


def most_elements(model: Model, world_size: int, cut: Cut) -> int:
    """The most elements that one of N ranks may have, padding included."""
    numels = sorted(model.numels, reverse=True)
    match cut:
        case Cut.ELEMENTS:  # a flat buffer for each tensor is where padding is most
            return sum(math.ceil(numel / world_size) for numel in numels)
        case Cut.ROWS:
            return sum(_most_in_rows(shape, world_size) for shape in model.shapes)
        case Cut.PARAMETERS:  # dealt out in turn, or each to the rank that has least
            in_turn = sum(numels[: math.ceil(len(numels) / world_size)])
            return max(in_turn, math.ceil(model.numel / world_size) + max(numels, default=0))


def _most_in_rows(shape: Sequence[int], world_size: int) -> int:
    return math.ceil((shape[0] if shape else 1) / world_size) * math.prod(shape[1:])


def explain(
    held_bytes: Sequence[int], model: Model, width: int, *, has_counters: bool = False, padding_bytes: int = 0
) -> Shares:
    """Which way of cutting a state of `width` bytes per parameter explains what each of N ranks holds of it.

    `padding_bytes`: what may be among it besides, the padding of states that are whole. Where nothing explains it, the
    reason is that of cutting by elements, which allows least.
    """
    found = [_explained(cut, held_bytes, model, width, has_counters, padding_bytes) for cut in Cut]
    return next((shares for shares in found if not shares.reason), found[0])


def _explained(
    cut: Cut, held_bytes: Sequence[int], model: Model, width: int, has_counters: bool, padding_bytes: int
) -> Shares:
    world_size, whole = len(held_bytes), width * model.numel
    counters = model.counter_bytes if has_counters else 0
    padding = padding_bytes if cut is not Cut.PARAMETERS else 0
    most = width * most_elements(model, world_size, cut) + counters + padding
    reason = ""
    if max(held_bytes) > most:
        rank = held_bytes.index(max(held_bytes))
        reason = (
            f"rank {rank} of {world_size} has {held_bytes[rank]:,} bytes of it; a share is {whole / world_size:,.0f}, "
            f"and {most:,} with padding{' and step counters' if counters else ''}"
        )
    elif sum(held_bytes) < whole:
        reason = f"all {world_size} ranks together have {sum(held_bytes):,} bytes of {whole:,}"
    elif cut is Cut.PARAMETERS and not _are_whole_parameters(held_bytes, model, width, has_counters):
        reason = "what the ranks have are no whole parameters"
    return Shares(cut=cut, extra_bytes=max(0, max(held_bytes) - whole // world_size), reason=reason)


def _are_whole_parameters(held_bytes: Sequence[int], model: Model, width: int, has_counters: bool) -> bool:
    """Whether each rank holds the states of exactly some parameters, and all ranks together each of them once."""
    sizes = [width * numel + COUNTER_BYTES * has_counters for numel in model.numels]
    return sum(held_bytes) == sum(sizes) and set(held_bytes) <= _subset_sums(sizes)


def _subset_sums(sizes: Sequence[int]) -> set[int]:
    sums = {0}
    for size in sizes:
        sums |= {size + other for other in sums}
    return sums


def fit(mean_bytes: Mapping[int, Fraction], numel: int) -> tuple[Fraction, Fraction] | None:
    """`a` and `b` such that a rank of N holds (a + b/N) bytes per parameter, for every N measured; None if none do."""
    (few, most), (many, least), *_ = sorted(mean_bytes.items())
    shared = (most - least) / (Fraction(1, few) - Fraction(1, many))
    whole = most - shared / few
    fits = all(whole + shared / world_size == value for world_size, value in mean_bytes.items())
    return (whole / numel, shared / numel) if fits else None
