"""A training step of a pipeline on ranks: one rank's actions, one after another, on real stages.

Everything that a schedule decides is in its list (`actions`); here it is only done. A rank waits where an action needs
what another rank has not sent yet, and nowhere else. Source: Huang et al. 2019, GPipe (1811.06965), section 2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from impls.mesh import GlooMesh
from impls.reference.pipeline.actions import Action, Kind, Schedule
from impls.reference.pipeline.names import named
from impls.reference.pipeline.post import Post, made, needed
from impls.reference.pipeline.shared_gradients import Copies, SharedGradients
from impls.reference.pipeline.split import backward, backward_input, edges
from impls.words import number_of

LossFunction = Callable[[Any, Any], Tensor]


def train_step(
    stage: nn.Module | Sequence[nn.Module],
    microbatches: Sequence[Any] | None,
    targets: Sequence[Any] | None,
    loss_fn: LossFunction,
    schedule: str | Schedule = "1f1b",
    rank: int | None = None,
    world_size: int | None = None,
    group: dist.ProcessGroup | None = None,
    tied: Copies | None = None,
) -> list[Tensor]:
    """Forward and backward of all microbatches; adds the gradient of the mean over all rows to every ``.grad``.

    `stage`: this rank's module, or its modules in order of stage number where the schedule gives it several. A stage
    takes what the one before returns, a tensor or a tuple of tensors. `microbatches`: inputs of the first stage;
    `targets`: what ``loss_fn(output, target)`` gets with the output of the last, a mean over the microbatch's rows. The
    ranks in between need one of them for its length only. Microbatches may differ in size; one of twice as many rows
    (the first dimension of its target) counts twice. `schedule`: a name (`names`), or any `Schedule` for these ranks.
    `tied`: parameters of which other ranks hold a copy, with these ranks: their gradients are summed. On one rank a
    weight is tied by being one parameter.

    Returns the losses of the microbatches whose last stage was on this rank, in order; none on other ranks.
    """
    return step_with(Worker, stage, microbatches, targets, loss_fn, schedule, rank, world_size, group, tied)


def step_with(
    worker: type[Worker],
    stage: nn.Module | Sequence[nn.Module],
    microbatches: Sequence[Any] | None,
    targets: Sequence[Any] | None,
    loss_fn: LossFunction,
    schedule: str | Schedule = "1f1b",
    rank: int | None = None,
    world_size: int | None = None,
    group: dist.ProcessGroup | None = None,
    tied: Copies | None = None,
) -> list[Tensor]:
    """`train_step`, whose actions are done by a `worker` of any kind."""
    modules = list(stage) if isinstance(stage, (Sequence, nn.ModuleList)) else [stage]
    rank = dist.get_rank(group) if rank is None else rank
    world_size = dist.get_world_size(group) if world_size is None else world_size
    if isinstance(schedule, str):
        schedule = named(schedule, world_size, _count(microbatches, targets), num_chunks=len(modules))
    _check(schedule, rank, world_size, modules, _count(microbatches, targets))
    mesh = GlooMesh(group) if world_size > 1 else None
    shared = SharedGradients({**_twins(schedule, modules, rank), **(tied or {})}, mesh)
    found = worker(
        schedule=schedule,
        modules=dict(zip(schedule.stages_of(rank), modules, strict=True)),
        microbatches=microbatches or (),
        targets=targets or (),
        loss_fn=loss_fn,
        post=Post(schedule, rank, mesh),
    )
    found.work(schedule.actions(rank))
    shared.sum()
    return [loss for _, loss in sorted(found.losses.items())]


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """What a stage keeps of one microbatch until its backward."""

    inputs: list[Tensor]  # those that came from another stage
    outputs: list[GradientEdge | None]
    gradients: list[Tensor | None] | None  # of the outputs; None where the next stage has yet to send them


@dataclasses.dataclass(kw_only=True)
class Worker:
    """One rank in one step."""

    schedule: Schedule
    modules: Mapping[int, nn.Module]  # by stage
    microbatches: Sequence[Any]
    targets: Sequence[Any]
    loss_fn: LossFunction
    post: Post
    losses: dict[int, Tensor] = dataclasses.field(default_factory=dict)  # by microbatch
    held: dict[tuple[int, int], Held] = dataclasses.field(default_factory=dict)  # by stage and microbatch
    weight_gradients: dict[tuple[int, int], Callable[[], None]] = dataclasses.field(default_factory=dict)

    def work(self, actions: Sequence[Action]) -> None:
        """Do the actions in order; of an overlapped pair the forward first."""
        do = {
            Kind.FORWARD: self.forward,
            Kind.BACKWARD: self.backward,
            Kind.INPUT: self.backward_input,
            Kind.WEIGHT: self.backward_weight,
        }
        for action in actions:
            for part in action.parts:
                do[part.kind](part)
        self.post.flush()

    def forward(self, action: Action) -> None:
        """F: run the stage on what came, and send on what it returns; at the end, the loss."""
        enters = needed(self.schedule, action) is None
        came = [] if enters else self.arrived(action)
        given = _as_tuple(self.microbatches[action.microbatch]) if enters else ()
        output = self.modules[action.stage](*came, *given)
        next_signal = made(self.schedule, action)
        if next_signal is None:
            outputs, gradients = self.loss(output, action.microbatch)
        else:
            outputs, gradients = _tensors(output, action), None
            self.post.give(next_signal, outputs)
        inputs = [tensor for tensor in came if tensor is not None]
        self.held[action.stage, action.microbatch] = Held(inputs, edges(outputs), gradients)

    def backward(self, action: Action) -> None:
        """B: both gradients; that of the input is sent back."""
        held = self.held.pop((action.stage, action.microbatch))
        self.give(action, backward(held.outputs, self.gradients(held, action), held.inputs))

    def backward_input(self, action: Action) -> None:
        """I: the gradient of the input is sent back; those of the weights can be made at any time from here."""
        held = self.held.pop((action.stage, action.microbatch))
        found, later = backward_input(held.outputs, self.gradients(held, action), held.inputs)
        self.weight_gradients[action.stage, action.microbatch] = later
        self.give(action, found)

    def backward_weight(self, action: Action) -> None:
        """W: the gradients of the weights, from what I left."""
        self.weight_gradients.pop((action.stage, action.microbatch))()

    def loss(self, output: Any, microbatch: int) -> tuple[list[Tensor], list[Tensor | None]]:
        """The loss, and its gradient: this microbatch's share of all rows. The only place where anything is scaled."""
        loss = self.loss_fn(output, self.targets[microbatch])
        if loss.numel() != 1:
            raise ValueError(
                f"loss_fn returned {tuple(loss.shape)}: a mean over the microbatch, one number, was expected"
            )
        self.losses[microbatch] = loss.detach()
        return [loss], [torch.full_like(loss, self.share(microbatch))]

    def share(self, microbatch: int) -> float:
        """Of the microbatch in the mean over all rows."""
        rows = [_rows(target) for target in self.targets]
        return rows[microbatch] / sum(rows)

    def arrived(self, action: Action) -> list[Tensor | None]:
        """What the stage before sent for a forward."""
        signal = needed(self.schedule, action)
        assert signal is not None
        return self.post.take(signal)

    def gradients(self, held: Held, action: Action) -> list[Tensor | None]:
        """Of the outputs: from the next stage, or from the loss."""
        signal = needed(self.schedule, action)
        if signal is None:
            assert held.gradients is not None
            return held.gradients
        return self.post.take(signal)

    def give(self, action: Action, gradients: Sequence[Tensor | None]) -> None:
        """Send the gradients of a stage's inputs back."""
        signal = made(self.schedule, action)
        if signal is not None:
            self.post.give(signal, gradients)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _tensors(output: Any, action: Action) -> list[Tensor]:
    found = list(_as_tuple(output))
    if not found or not all(isinstance(tensor, Tensor) for tensor in found):
        raise TypeError(
            f"stage {action.stage} returned {[type(each).__name__ for each in found]} for microbatch "
            f"{action.microbatch}: a tensor, or a tuple of some, is what the next stage can be sent"
        )
    return found


def _rows(target: Any) -> int:
    first = _as_tuple(target)[0]
    return int(first.shape[0]) if isinstance(first, Tensor) and first.dim() else 1


def _count(microbatches: Sequence[Any] | None, targets: Sequence[Any] | None) -> int:
    """M, from whatever this rank was given."""
    counts = {len(each) for each in (microbatches, targets) if each is not None}
    if len(counts) != 1:
        raise ValueError(f"microbatches and targets are of {sorted(counts)} entries; all ranks need one number of them")
    return counts.pop()


def _check(schedule: Schedule, rank: int, world_size: int, modules: Sequence[nn.Module], num_microbatches: int) -> None:
    """ValueError where a schedule is not for what there is."""
    here = (world_size, num_microbatches)
    if (schedule.num_ranks, schedule.num_microbatches) != here:
        raise ValueError(
            f"{schedule.name} is for {number_of(schedule.num_ranks, 'rank')} and "
            f"{number_of(schedule.num_microbatches, 'microbatch')}; "
            f"there are {here[0]} and {here[1]}"
        )
    if len(modules) != len(schedule.stages_of(rank)):
        raise ValueError(
            f"under {schedule.name} rank {rank} of {world_size} holds stages {schedule.stages_of(rank)}; it was given "
            f"{len(modules)} module{'s' * (len(modules) != 1)}, and needs one for each of them, in this order"
        )


def _twins(schedule: Schedule, modules: Sequence[nn.Module], rank: int) -> dict[nn.Parameter, list[int]]:
    """The parameters of stages that another rank holds as well, with all their ranks."""
    found: dict[nn.Parameter, list[int]] = {}
    for stage, module in zip(schedule.stages_of(rank), modules, strict=True):
        holders = sorted({ranks[stage] for ranks in schedule.placement.ranks})
        if len(holders) > 1:
            found |= {parameter: holders for parameter in module.parameters() if parameter.requires_grad}
    return found
