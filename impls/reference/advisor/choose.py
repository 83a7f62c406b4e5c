"""The advice, in this order: replicas if they fit, else the simplest layout that is not much slower than the quickest.

1. every device a replica, sharding no more than has to be (nothing, then ZeRO-1, then ZeRO-2): whatever the links,
   since it moves no more than data parallelism has to
2. ZeRO-3 alone, tensor parallelism within a node, a pipeline, and their combinations: by time per token on the
   links, and the simpler one where two are nearly as quick
3. tensor parallelism across nodes, when nothing else fits
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from impls.reference.advisor.layouts import Option, combined, data_parallel
from impls.reference.advisor.request import Request, request
from impls.reference.advisor.schedules import HEAVY, HIDE, schedule_for
from impls.reference.memory import Stage
from impls.reference.network.steps import boundary_s, compute_s
from impls.words import number_of

NEARLY = 1.25  # times as long as the quickest: not worth a more complicated layout
NAMES = {"ddp": "DDP", "1": "ZeRO-1", "2": "ZeRO-2", "3": "FSDP (ZeRO-3)"}
GB = 1e9


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """How to use the devices: degrees and ZeRO stage, the pipeline's schedule, and why."""

    stage: str
    dp: int
    tp: int
    pp: int
    schedule: str
    option: Option
    runner_up: Option | None
    reasons: tuple[str, ...]
    claims: tuple[str, ...]  # of the cheatsheet, that it follows
    considered: tuple[Option, ...]


def advise(**figures: Any) -> Advice | None:
    """See `impls.contract.advisor`; what `request` has a default for may be left out. None when nothing fits."""
    wanted = request(**figures)
    replicas = _with_experts(wanted, data_parallel(wanted))
    mixed = _mixed(wanted, wanted.cluster.ranks_per_node)
    fitting = [option for option in (*replicas, *mixed) if option.fits]
    if not fitting:
        fitting = mixed = _mixed(wanted, wanted.num_devices)
    if not fitting:
        return None
    chosen = _chosen(wanted, fitting)
    others = [option for option in fitting if _kind(option) != _kind(chosen)]
    schedule, why = schedule_for(wanted, chosen)
    return Advice(
        stage=str(chosen.layout.stage),
        dp=chosen.layout.dp,
        tp=chosen.layout.tp,
        pp=chosen.layout.pp,
        schedule=schedule,
        option=chosen,
        runner_up=min(others, key=lambda option: option.s_per_token, default=None),
        reasons=tuple(_reasons(wanted, chosen, replicas, schedule, why)),
        claims=tuple(_claims(chosen, schedule)),
        considered=(*replicas, *mixed),
    )


def _chosen(wanted: Request, fitting: Sequence[Option]) -> Option:
    for option in fitting:
        if _is_replicated(option) and option.layout.stage != Stage.PARAMETERS:
            return option
    quickest = min(option.s_per_token for option in fitting)
    near = [option for option in fitting if option.s_per_token <= NEARLY * quickest]
    return min(near, key=lambda option: (_complexity(option), not _is_dualpipe(wanted, option), option.s_per_token))


def _is_dualpipe(wanted: Request, option: Option) -> bool:
    return schedule_for(wanted, option)[0] == "dualpipe"


def _mixed(wanted: Request, most_tp: int) -> list[Option]:
    """Tensor parallel and pipelined layouts; with much to hide, also those in which DualPipe's second copy has room."""
    found = combined(wanted, most_tp=most_tp)
    if wanted.all_to_all_share >= HEAVY:
        found += [option for option in combined(wanted, most_tp=most_tp, copies=2) if option not in found]
    return _with_experts(wanted, found)


def _with_experts(wanted: Request, options: Sequence[Option]) -> list[Option]:
    """The options with the experts' all-to-all on top, unless their schedule hides it."""
    exposed = [schedule_for(wanted, option)[0] not in HIDE for option in options]
    return [
        dataclasses.replace(option, all_to_all_s=wanted.all_to_all_share * option.time.compute_s)
        if is_exposed
        else option
        for option, is_exposed in zip(options, exposed, strict=True)
    ]


def _is_replicated(option: Option) -> bool:
    return option.layout.tp == option.layout.pp == 1


def _complexity(option: Option) -> int:
    """How much has to be done to a model: sharding parameters needs none of its code, cutting layers or stages does."""
    layout = option.layout
    return 2 * (layout.tp > 1) + 2 * (layout.pp > 1) + (layout.stage == Stage.PARAMETERS)


def _kind(option: Option) -> tuple[bool, bool, str]:
    return option.layout.tp > 1, option.layout.pp > 1, str(option.layout.stage)


def _claims(chosen: Option, schedule: str) -> Iterator[str]:
    layout = chosen.layout
    by_stage = {"1": "choose.zero1", "2": "choose.zero23", "3": "choose.fsdp"}
    if layout.stage in by_stage:
        yield by_stage[layout.stage]
    elif _is_replicated(chosen):
        yield "choose.ddp"
    if layout.tp > 1:
        yield "choose.tensor"
    if layout.pp > 1:
        yield "choose.pipeline"
    if schedule in HIDE:
        yield f"choose.{schedule}"


def _reasons(wanted: Request, chosen: Option, replicas: Sequence[Option], schedule: str, why: str) -> Iterator[str]:
    layout, room = chosen.layout, wanted.device_bytes / GB
    for option in replicas:
        if option is chosen or option.layout.stage == layout.stage == Stage.PARAMETERS:
            break
        if not option.fits:
            yield (
                f"{NAMES[option.layout.stage]} on every device would take {option.device_bytes / GB:.1f} GB of "
                f"{room:.1f}: {option.states_bytes / GB:.1f} of states, {option.other_bytes / GB:.1f} beside them"
            )
        elif option.layout.stage == Stage.PARAMETERS:
            slower = option.s_per_token / chosen.s_per_token
            yield f"{NAMES['3']} alone would fit, and take {slower:.1f} times as long per token on these links"
    yield f"{told(chosen)} takes {chosen.device_bytes / GB:.1f} GB"
    if layout.tp > 1:
        inside = layout.tp <= wanted.cluster.ranks_per_node
        where = "all inside a node" if inside else "across nodes, since nothing else fits"
        yield f"tensor parallelism over {number_of(layout.tp, 'rank')}, {where}: nothing hides its all-reduces"
    if layout.pp > 1:
        sends, computes = boundary_s(wanted.work, layout, wanted.cluster), compute_s(wanted.work, layout)
        yield (
            f"{number_of(layout.pp, 'stage')}: for each microbatch a boundary takes {sends * 1e3:.3g} ms, a stage "
            "computes "
            f"{computes * 1e3:.3g} ms"
        )
        yield f"schedule {schedule}: {why}"
    yield f"{chosen.time.compute_s / chosen.time.total_s:.0%} of a step is computation"


def told(option: Option) -> str:
    """A layout in words: ``FSDP (ZeRO-3) dp=8 tp=8``."""
    layout = option.layout
    degrees = [f"{name}={size}" for name, size in (("dp", layout.dp), ("tp", layout.tp), ("pp", layout.pp)) if size > 1]
    name = NAMES[layout.stage] if layout.dp > 1 else "one replica"
    return " ".join([name, *degrees])
