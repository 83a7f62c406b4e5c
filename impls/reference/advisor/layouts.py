"""Every way to spread a model over the devices, and what one device then holds.

States are those of mixed precision with Adam, 16 bytes per parameter (`impls.reference.memory`), of the P/(tp pp)
parameters of a device. On top come

    activations    of one microbatch, divided by tp (with sequence parallelism) and pp, for each of the min(M, pp)
                   microbatches that 1F1B has under way on the first stage
    gathered       stage 3: two layers' parameters, one of them ahead of time, and one layer's gradient
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from impls.reference.advisor.request import Request
from impls.reference.memory import MIXED_WITH_MASTER, Stage, bytes_per_parameter
from impls.reference.network.steps import WIDTH, Layout, step_time
from impls.reference.network.timeline import StepTime

GATHERED_UNITS = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One layout with what it takes: bytes on a device, seconds of a step."""

    layout: Layout
    states_bytes: float
    other_bytes: float  # activations, gathered layers
    fits: bool
    time: StepTime
    tokens: int  # that all ranks together learn from in a step
    all_to_all_s: float = 0.0  # experts' messages of a step that the schedule does not hide

    @property
    def device_bytes(self) -> float:
        """All that a device holds at the peak."""
        return self.states_bytes + self.other_bytes

    @property
    def s_per_token(self) -> float:
        """By which options with different batches compare."""
        return (self.time.total_s + self.all_to_all_s) / self.tokens


def states_bytes(wanted: Request, layout: Layout) -> float:
    """Parameters, gradients and optimizer state on one device."""
    local = wanted.work.num_parameters / layout.tp / layout.pp
    return local * float(bytes_per_parameter(layout.stage, layout.dp, MIXED_WITH_MASTER).total)


def other_bytes(wanted: Request, layout: Layout) -> float:
    """Activations, and the layers that stage 3 has gathered."""
    under_way = min(wanted.work.num_microbatches, layout.pp) / layout.pp
    activations = wanted.activation_bytes * under_way / layout.tp
    if layout.stage != Stage.PARAMETERS or layout.dp == 1:
        return activations
    return activations + GATHERED_UNITS * WIDTH * wanted.work.num_parameters / wanted.work.num_layers / layout.tp


def option(wanted: Request, layout: Layout) -> Option:
    """What a layout takes."""
    states, other = states_bytes(wanted, layout), other_bytes(wanted, layout)
    return Option(
        layout=layout,
        states_bytes=states,
        other_bytes=other,
        fits=states + other <= wanted.device_bytes,
        time=step_time(wanted.work, layout, wanted.cluster),
        tokens=layout.dp * wanted.work.tokens * wanted.work.num_microbatches,
    )


def data_parallel(wanted: Request) -> list[Option]:
    """All devices as replicas, from nothing sharded to everything; one device has nobody to share with."""
    return [option(wanted, Layout(dp=wanted.num_devices, stage=stage)) for stage in _stages(wanted.num_devices)]


def combined(wanted: Request, *, most_tp: int, copies: int = 1) -> list[Option]:
    """Tensor and pipeline parallel degrees that divide the devices; for each, the least sharding of states that fits.

    Degrees of `most_tp` and less only. Pipelines have whole layers in each stage, and as many microbatches as stages.
    With two `copies` of the states of a pipeline's stages, where a schedule wants them.
    """
    found: list[Option] = []
    for tp in _divisors(wanted.num_devices):
        for pp in _divisors(wanted.num_devices // tp):
            if tp <= most_tp and (tp, pp) != (1, 1) and pp <= min(wanted.work.num_layers, wanted.work.num_microbatches):
                found.extend(_least_sharded(wanted, tp, pp, copies if pp > 1 else 1))
    return found


def _least_sharded(wanted: Request, tp: int, pp: int, copies: int) -> Iterator[Option]:
    dp = wanted.num_devices // tp // pp
    for stage in _stages(dp):
        layout = Layout(dp=dp, tp=tp, pp=pp, stage=stage)
        if copies * states_bytes(wanted, layout) + other_bytes(wanted, layout) <= wanted.device_bytes:
            yield option(wanted, layout)
            return


def _stages(dp: int) -> tuple[Stage, ...]:
    return tuple(Stage) if dp > 1 else (Stage.DDP,)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
