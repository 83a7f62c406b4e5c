"""Rank programs that train by the case, under any pipeline of any implementation. Imports no pytest.

They report what a rank holds afterwards; what is right is decided elsewhere (`single`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from conformance.pipeline.case import Share, placement
from fixtures.world.context import RankContext
from impls.handover import NotProvided
from impls.pipelines import Copies, Driver, pipeline, refusals
from impls.reference.pipeline.placement import Placement

Report = dict[str, Any]


def train(ctx: RankContext, schedule: str, shares: Sequence[dict[str, Any]]) -> list[Report]:
    """One report for each share of a case: gradients by stage and name, losses by step, what else has changed.

    Of several cases the implementation may leave some out, on all ranks alike. Where there is one, whoever finds that
    it cannot be done ends the program, as others may be waiting for that rank.
    """
    reports: list[Report] = []
    for fields in shares:
        try:
            reports.append(_unless_refused(ctx, schedule, Share(**fields)))
        except NotProvided as reason:
            if len(shares) == 1:
                raise
            reports.append({"missing": str(reason)})
    return reports


def train_on_some(
    ctx: RankContext, schedule: str, share: dict[str, Any] | None, members: Sequence[int]
) -> Report | None:
    """The same on the ranks `members` of the world, as a pipeline of their own; the others have no share in it."""
    group = dist.new_group(list(members))
    if share is None:
        return None
    return _unless_refused(ctx, schedule, Share(**share), group)


def _unless_refused(ctx: RankContext, schedule: str, share: Share, group: dist.ProcessGroup | None = None) -> Report:
    with refusals(f"{share.called} on {dist.get_world_size(group)} ranks under {schedule}"):
        return _train(ctx, schedule, share, group)


def driver_of(
    ctx: RankContext, schedule: str, share: Share, group: dist.ProcessGroup | None = None
) -> tuple[Driver, dict[int, nn.Module]]:
    """The pipeline of this rank, and its modules by stage."""
    assert ctx.impl is not None
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    places = placement(schedule, world_size)
    held = share.build()
    driver = pipeline(
        ctx.impl,
        list(held.values()),
        share.loss,
        schedule=schedule,
        rank=rank,
        world_size=world_size,
        group=group,
        tied=_tied(share, held, places),
    )
    if group is not None and not driver.takes("group"):
        raise NotProvided(f"{ctx.impl.name}'s pipeline takes no group, so it cannot be one of some ranks")
    return driver, held


def _tied(share: Share, held: dict[int, nn.Module], places: Placement) -> Copies | None:
    """The copies of the table: on the ranks of the first and the last stage; one parameter where that is one rank."""
    if share.model != "tied":
        return None
    first_and_last = (0, places.num_stages - 1)
    ends = sorted({ranks[stage] for ranks in places.ranks for stage in first_and_last})
    own = [held[stage] for stage in first_and_last if stage in held]
    if len(own) == 2:
        own[1].weight = own[0].weight
    if len(ends) == 1:
        return None
    return {own[0].weight: ends} if own else {}  # type: ignore[dict-item]  # a parameter


def _train(ctx: RankContext, schedule: str, share: Share, group: dist.ProcessGroup | None) -> Report:
    driver, held = driver_of(ctx, schedule, share, group)
    if told := driver.stands_in_for(schedule):
        raise NotProvided(told)
    named = {stage: dict(module.named_parameters()) for stage, module in held.items()}
    before = {stage: {name: p.detach().clone() for name, p in found.items()} for stage, found in named.items()}
    learned = {stage: {name: p.requires_grad for name, p in found.items()} for stage, found in named.items()}
    losses = [driver.step(share.inputs, share.targets) for _ in range(share.steps)]
    changed = [
        f"{name} of stage {stage}"
        for stage, found in named.items()
        for name, p in found.items()
        if p.requires_grad != learned[stage][name] or not torch.equal(p.detach(), before[stage][name])
    ]
    return {
        "gradients": {stage: _gradients(found) for stage, found in named.items()},
        "losses": losses,
        "changed": changed,
        "schedule": driver.schedule_name,
    }


def _gradients(named: dict[str, nn.Parameter]) -> dict[str, Tensor | None]:
    return {name: None if p.grad is None else p.grad.detach().clone() for name, p in named.items()}
