"""What a rank holds per parameter under data parallelism and the stages of ZeRO, as closed forms and exact fractions.

N ranks hold four kinds of state. Stage 1 shards the optimizer's (master copy and moments), stage 2 the gradients as
well, stage 3 the parameters too; what is sharded costs 1/N, the rest is replicated:

    ddp   parameters + gradients + optimizer              2   parameters + (gradients + optimizer)/N
    1     parameters + gradients + optimizer/N            3   (parameters + gradients + optimizer)/N

That is what is held *at rest*, between steps. Activations, gathered layers, buckets and the padding of shards (less
than N elements each) come on top. Source: Rajbhandari et al., "ZeRO" (SC 2020), sections 3.1 and 5.
"""

from __future__ import annotations

import dataclasses
import math
from enum import StrEnum
from fractions import Fraction


class Stage(StrEnum):
    """What is sharded: nothing, the optimizer's state, gradients too, parameters too."""

    DDP = "ddp"
    OPTIMIZER = "1"
    GRADIENTS = "2"
    PARAMETERS = "3"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """Bytes per parameter of each kind of state; which kinds are counted is where published figures differ."""

    name: str
    parameter: int
    gradient: int
    master: int
    moments: int

    def __post_init__(self) -> None:
        sizes = (self.parameter, self.gradient, self.master, self.moments)
        if min(sizes) < 0 or self.parameter == 0:
            raise ValueError(
                f"{self.name}: bytes per parameter are {sizes} (parameter, gradient, master, moments); none may be "
                "negative, and a parameter takes some: a kind of state that there is not has 0"
            )

    @property
    def optimizer(self) -> int:
        """Master copy and moments: what stage 1 shards."""
        return self.master + self.moments

    @property
    def total(self) -> int:
        """Bytes per parameter when nothing is sharded."""
        return self.parameter + self.gradient + self.optimizer


# With Adam: two moments of 4 bytes each.
MIXED_WITH_MASTER = Accounting(name="mixed, FP32 master", parameter=2, gradient=2, master=4, moments=8)
MIXED_WITHOUT_MASTER = Accounting(name="mixed, no master", parameter=2, gradient=2, master=0, moments=8)
ALL_FP32 = Accounting(name="all FP32", parameter=4, gradient=4, master=0, moments=8)
ACCOUNTINGS = (MIXED_WITH_MASTER, MIXED_WITHOUT_MASTER, ALL_FP32)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Bytes per parameter that one rank holds, by kind; `optimizer` is the master copy and the moments."""

    parameters: Fraction
    gradients: Fraction
    optimizer: Fraction

    @property
    def total(self) -> Fraction:
        """All of it."""
        return self.parameters + self.gradients + self.optimizer


def bytes_per_parameter(stage: Stage | str, world_size: int, accounting: Accounting = MIXED_WITH_MASTER) -> Held:
    """What one of `world_size` ranks holds for each parameter of the model. ValueError for an impossible request."""
    num_sharded = _num_sharded(stage)
    _positive("world_size", world_size)
    return Held(
        parameters=Fraction(accounting.parameter, world_size if num_sharded >= 3 else 1),
        gradients=Fraction(accounting.gradient, world_size if num_sharded >= 2 else 1),
        optimizer=Fraction(accounting.optimizer, world_size if num_sharded >= 1 else 1),
    )


def bytes_per_rank(
    params: int, stage: Stage | str, world_size: int, accounting: Accounting = MIXED_WITH_MASTER
) -> Fraction:
    """What one rank holds of a model of `params` parameters, in bytes, without padding."""
    return _positive("params", params) * bytes_per_parameter(stage, world_size, accounting).total


def saving(stage: Stage | str, world_size: int, accounting: Accounting = MIXED_WITH_MASTER) -> Fraction:
    """How many times less a rank holds than under plain data parallelism: 1 for ddp, N for stage 3."""
    return accounting.total / bytes_per_parameter(stage, world_size, accounting).total


def saving_limit(stage: Stage | str, accounting: Accounting = MIXED_WITH_MASTER) -> Fraction | None:
    """What `saving` comes to as N grows; None where it grows without bound."""
    replicated = _replicated(stage, accounting)
    return Fraction(accounting.total, replicated) if replicated else None


def fits(
    params: int,
    stage: Stage | str,
    world_size: int,
    device_bytes: int,
    accounting: Accounting = MIXED_WITH_MASTER,
) -> bool:
    """Whether the states alone fit into `device_bytes`; activations still want room of their own."""
    return bytes_per_rank(params, stage, world_size, accounting) <= _positive("device_bytes", device_bytes)


def smallest_world_size(
    params: int, stage: Stage | str, device_bytes: int, accounting: Accounting = MIXED_WITH_MASTER
) -> int | None:
    """The fewest ranks on which the states fit into `device_bytes` each; None where no number of ranks suffices."""
    replicated = _positive("params", params) * _replicated(stage, accounting)
    sharded = params * accounting.total - replicated
    room = _positive("device_bytes", device_bytes) - replicated
    if sharded == 0:
        return 1 if room >= 0 else None
    return math.ceil(Fraction(sharded, room)) if room > 0 else None  # replicated + sharded/N <= device_bytes


def _replicated(stage: Stage | str, accounting: Accounting) -> int:
    """Bytes per parameter that stay whole on every rank, however many there are."""
    kinds = (accounting.optimizer, accounting.gradient, accounting.parameter)  # in the order in which they are sharded
    return sum(kinds[_num_sharded(stage) :])


def _num_sharded(stage: Stage | str) -> int:
    """Kinds of state that are sharded: 0 to 3."""
    stages = list(Stage)
    if stage not in stages:
        raise ValueError(f"there is no stage {stage!r}; choose one of {', '.join(stages)}")
    return stages.index(Stage(stage))


def _positive(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
    return value
