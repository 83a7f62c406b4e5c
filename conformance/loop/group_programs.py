"""Rank programs that form the process group themselves: for worlds that start without one. Imports no pytest."""

from __future__ import annotations

import os
import socket
from typing import Any

import torch
import torch.distributed as dist

from conformance.asks import asks_for
from fixtures.world.context import RankContext
from impls.handover import NotProvided

ADDRESS = "127.0.0.1"
_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


def by_file(ctx: RankContext, *, times: int = 1) -> list[dict[str, Any]]:
    """Form the group through a fresh file, with nothing in the environment that could help; `times` in a row."""
    reports = []
    for _ in range(times):
        _clear_environment()
        file = ctx.rendezvous_file()
        _init(ctx, wanted="init_file", init_file=str(file), port=None)
        reports.append(_describe(ctx) | {"file_used": file.exists() and file.stat().st_size > 0})
        dist.destroy_process_group()
    return reports


def by_port(ctx: RankContext, *, port: int) -> dict[str, Any]:
    """Form the group over TCP: MASTER_ADDR is set, the port is handed over."""
    _clear_environment()
    os.environ["MASTER_ADDR"] = ADDRESS
    _init(ctx, wanted="port", init_file=None, port=port)
    report = _describe(ctx) | {"variable": os.environ.get("MASTER_PORT"), "listens": _listens(port)}
    dist.barrier()
    dist.destroy_process_group()
    return report


def as_it_likes(ctx: RankContext, *, port: int) -> dict[str, Any]:
    """Form the group in the implementation's own way, with rank and size alone; a free port is in the environment."""
    _clear_environment()
    os.environ.update(MASTER_ADDR=ADDRESS, MASTER_PORT=str(port))
    assert ctx.impl is not None
    ctx.impl.call("init_group", rank=ctx.rank, world_size=ctx.world_size)
    report = _describe(ctx)
    dist.barrier()
    dist.destroy_process_group()
    return report


def _init(ctx: RankContext, wanted: str, **ways: Any) -> None:
    assert ctx.impl is not None
    if ctx.impl.get("init_group") is not None and not asks_for(ctx.impl, "init_group", wanted):
        raise NotProvided(f"init_group takes no {wanted}: this way to meet is not offered")
    ctx.impl.call("init_group", rank=ctx.rank, world_size=ctx.world_size, **ways)


def offers(ctx: RankContext) -> list[str]:
    """The ways to meet that the implementation's `init_group` has a parameter for."""
    assert ctx.impl is not None
    return [name for name in ("init_file", "port") if asks_for(ctx.impl, "init_group", name)]


def _describe(ctx: RankContext) -> dict[str, Any]:
    """The group as torch has it, and a sum over it that only the right N ranks can give."""
    total = torch.tensor([1 << ctx.rank])
    dist.all_reduce(total)
    return {
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "backend": dist.get_backend(),
        "sum": int(total),
    }


def _listens(port: int) -> bool:
    """Whether somebody answers on this port."""
    try:
        with socket.create_connection((ADDRESS, port), timeout=5.0):
            return True
    except OSError:
        return False


def _clear_environment() -> None:
    for name in _VARIABLES:
        os.environ.pop(name, None)


def without_address(ctx: RankContext, *, port: int) -> str:
    """What torch says to a port without an address."""
    _clear_environment()
    os.environ["MASTER_PORT"] = str(port)
    try:
        dist.init_process_group("gloo", rank=ctx.rank, world_size=ctx.world_size)
    except ValueError as error:
        return str(error)
    dist.destroy_process_group()
    return ""
