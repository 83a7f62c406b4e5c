"""torch.distributed.pipelining: its schedules run on given stages, and their orders as tables.

ScheduleInterleavedZeroBubble is ZB-H1 with several stages on each rank; with one on each it is refused. PyTorch has no
ZB-H2 and no DualPipe from both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining import schedules as _schedules
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, PipelineScheduleSingle

ONE_STAGE: Mapping[str, type[PipelineScheduleSingle]] = {
    "gpipe": _schedules.ScheduleGPipe,
    "1f1b": _schedules.Schedule1F1B,
}
SEVERAL_STAGES: Mapping[str, type[PipelineScheduleMulti]] = {
    "interleaved_1f1b": _schedules.ScheduleInterleaved1F1B,
    "interleaved_zero_bubble": _schedules.ScheduleInterleavedZeroBubble,
    "zbv": _schedules.ScheduleZBVZeroBubble,
    "dualpipev": _schedules.ScheduleDualPipeV,
}
NUM_CHUNKS = {"gpipe": 1, "1f1b": 1, "zbv": 2, "dualpipev": 2}  # stages on each rank, where that is given
V_SHAPED = ("zbv", "dualpipev")  # rank r holds stages r and 2N-1-r; elsewhere stages are dealt out in turn


def train_step(
    stage: nn.Module | Sequence[nn.Module],
    microbatches: Sequence[Tensor],
    targets: Sequence[Tensor],
    loss_fn: Callable[[Any, Any], Tensor],
    schedule: str = "1f1b",
    group: dist.ProcessGroup | None = None,
) -> list[Tensor]:
    """One step of the PyTorch schedule of this name over all microbatches, which are of one size.

    Shapes are inferred in each call, by a run of the stages on meta tensors. In the end PyTorch divides what it finds
    in ``.grad`` by the number of microbatches: gradients of earlier steps are kept out of that. NotImplementedError for
    a schedule that it does not have, ValueError for sizes that it does not take.
    """
    modules = list(stage) if isinstance(stage, (Sequence, nn.ModuleList)) else [stage]
    if len({len(microbatch) for microbatch in microbatches}) != 1:
        raise ValueError(
            "torch's stages infer the shapes of one microbatch; they take no microbatches of several sizes"
        )
    stages = _stages(schedule, modules, group)
    runner = _runner(schedule, stages, len(microbatches), loss_fn)
    enters, leaves = any(each.is_first for each in stages), any(each.is_last for each in stages)
    before = [(p, p.grad) for module in modules for p in module.parameters()]
    for parameter, _ in before:
        parameter.grad = None
    losses: list[Tensor] = []
    runner.step(
        *((torch.cat(list(microbatches)),) if enters else ()),
        target=torch.cat(list(targets)) if leaves else None,
        losses=losses if leaves else None,
        return_outputs=False,
    )
    for parameter, earlier in before:
        if earlier is not None:
            parameter.grad = earlier if parameter.grad is None else earlier.add_(parameter.grad)
    return [loss.detach() for loss in losses]


def stages_of(schedule: str, rank: int, num_ranks: int, num_chunks: int) -> list[int]:
    """The numbers of a rank's stages; ValueError where it is given another number of them."""
    if num_chunks != NUM_CHUNKS.get(schedule, num_chunks):
        raise ValueError(f"{schedule} has {NUM_CHUNKS[schedule]} stage(s) on each rank, not {num_chunks}")
    if schedule in V_SHAPED:
        return [rank, 2 * num_ranks - 1 - rank]
    return [chunk * num_ranks + rank for chunk in range(num_chunks)]


def _stages(schedule: str, modules: Sequence[nn.Module], group: dist.ProcessGroup | None) -> list[PipelineStage]:
    num_ranks = dist.get_world_size(group)
    own = stages_of(schedule, dist.get_rank(group), num_ranks, len(modules))
    total, device = num_ranks * len(modules), torch.device("cpu")
    return [
        PipelineStage(module, number, total, device, group=group) for number, module in zip(own, modules, strict=True)
    ]


def _runner(
    schedule: str, stages: list[PipelineStage], num_microbatches: int, loss_fn: Callable[[Any, Any], Tensor]
) -> PipelineScheduleSingle | PipelineScheduleMulti:
    if schedule in ONE_STAGE:
        return ONE_STAGE[schedule](stages[0], num_microbatches, loss_fn=loss_fn)
    if schedule in SEVERAL_STAGES:
        return SEVERAL_STAGES[schedule]([*stages], num_microbatches, loss_fn=loss_fn)
    raise NotImplementedError(f"torch.distributed.pipelining has no {schedule}")


# -- orders ------------------------------------------------------------------------------------------------------------

Lists = list[list[str]]  # per rank: "F0.3" is the forward of stage 0 and microbatch 3, "F0.3&B7.1" an overlapped pair


def gpipe(num_stages: int, num_microbatches: int) -> Lists:
    """The order of ScheduleGPipe."""
    return _orders("GPipe", num_stages, num_microbatches)


def one_f_one_b(num_stages: int, num_microbatches: int) -> Lists:
    """The order of Schedule1F1B; ValueError where M < N, which that refuses.

    The helper counts the forwards of the last rank from 1 (torch 2.13). What is executed there counts from 0.
    """
    if num_microbatches < num_stages:
        raise ValueError(f"the order of Schedule1F1B needs M >= N; got N = {num_stages} and M = {num_microbatches}")
    *others, last = _orders("1F1B", num_stages, num_microbatches)
    forwards = [action for action in last if action.startswith("F")]
    counted = {action: f"F{num_stages - 1}.{number}" for number, action in enumerate(forwards)}
    return [*others, [counted.get(action, action) for action in last]]


def interleaved_1f1b(num_stages: int, num_microbatches: int, num_chunks: int = 2) -> Lists:
    """The order of ScheduleInterleaved1F1B with `num_chunks` stages on each rank."""
    return _orders("Interleaved1F1B", num_stages, num_microbatches, num_chunks)


def zbv(num_stages: int, num_microbatches: int) -> Lists:
    """The order of ScheduleZBVZeroBubble."""
    return _orders("ZBVZeroBubble", num_stages, num_microbatches, 2)


def dualpipev(num_stages: int, num_microbatches: int) -> Lists:
    """The order of ScheduleDualPipeV."""
    return _orders("DualPipeV", num_stages, num_microbatches, 2)


def _orders(name: str, num_ranks: int, num_microbatches: int, num_chunks: int | None = None) -> Lists:
    if min(num_ranks, num_microbatches) < 1:  # which its helper does not look at
        raise ValueError(f"{name} needs N >= 1 and M >= 1; got N = {num_ranks} and M = {num_microbatches}")
    table = get_schedule_ops(name, num_ranks, num_microbatches, num_chunks)
    return [[text for action in row if action is not None and (text := _text(action))] for row in table]


def _text(action: Any) -> str:
    """An action of PyTorch; empty for one that computes nothing for a microbatch (REDUCE_GRAD)."""
    if action.sub_actions:
        return "&".join(map(_text, action.sub_actions))
    kind = action.computation_type.value
    return f"{kind}{action.stage_index}.{action.microbatch_index}" if kind in ("F", "B", "I", "W") else ""
