"""The ranks find one another: through a file (loop.rendezvous), over a port (calls.master-port), as one gloo group."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from conformance import expect
from conformance.checks import Judge, Pool, Subject, claim
from conformance.loop import group_programs
from conformance.loop.judging import judge_all
from conformance.verdict import Witness

DEADLINE_S = 10.0  # forming a group takes 0.1 s; a rank that waits at the wrong door waits for ever


def _group(rank: int, world_size: int) -> dict[str, Any]:
    """What torch must say of the group on this rank."""
    return {"rank": rank, "world_size": world_size, "backend": "gloo", "sum": (1 << world_size) - 1}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((group_programs.ADDRESS, 0))
        port: int = listener.getsockname()[1]
        return port


def _judge_file(subject: Subject, judge: Judge, world_size: int, *, times: int = 1) -> None:
    reports = subject.run(group_programs.by_file, world_size, times=times, bare=True, deadline_s=DEADLINE_S).values
    found = [
        (f"rank {rank}", expect.same(report, _group(rank, world_size) | {"file_used": True}))
        for rank, rounds in enumerate(reports)
        for report in rounds
    ]
    judge_all(judge, found, "the group that formed through the file")


@claim("loop.rendezvous", provides=["init_group"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_meet_in_a_file(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_file(subject, judge, world_size)


@claim("loop.rendezvous", tier="contract", provides=["init_group"])
def test_ranks_meet_again_in_another_file(subject: Subject, judge: Judge) -> None:
    _judge_file(subject, judge, 2, times=2)


@claim("loop.rendezvous", tier="exotic", provides=["init_group"])
@pytest.mark.parametrize("world_size", [1, 5])
def test_unusual_numbers_of_ranks_meet_in_a_file(subject: Subject, judge: Judge, world_size: int) -> None:
    _judge_file(subject, judge, world_size)


@claim("calls.init-gloo", provides=["init_group"])
@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_the_group_has_the_ranks_and_the_size_that_were_asked_for(
    subject: Subject, judge: Judge, world_size: int
) -> None:
    offered = subject.run(group_programs.offers, 1, bare=True).values[0]
    if "init_file" in offered:
        rounds = subject.run(group_programs.by_file, world_size, bare=True, deadline_s=DEADLINE_S).values
        found = [reports[0] for reports in rounds]
    elif not offered and world_size != 3:
        judge.not_provided("ranks meet at a port that is written out: tried with 3 ranks only, two runs might collide")
    else:
        program = group_programs.by_port if offered else group_programs.as_it_likes
        found = subject.run(program, world_size, port=_free_port(), bare=True, deadline_s=DEADLINE_S).values
    wanted = [_group(rank, world_size) for rank in range(world_size)]
    compared = [
        (f"rank {rank}", expect.same({key: report[key] for key in wanted[rank]}, wanted[rank]))
        for rank, report in enumerate(found)
    ]
    judge_all(judge, compared, "rank, size, backend and a sum over the group")


@claim("calls.master-port", provides=["init_group"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_the_port_is_the_one_that_was_given(subject: Subject, judge: Judge, worlds: Pool, world_size: int) -> None:
    refusal = worlds.world(1, bare=True).run(group_programs.without_address, port=_free_port()).values[0]
    assert "MASTER_ADDR" in refusal, f"the condition says nothing: torch does without MASTER_ADDR ({refusal!r})"
    port = _free_port()
    reports = subject.run(group_programs.by_port, world_size, port=port, bare=True, deadline_s=DEADLINE_S).values
    if all(report["listens"] and report["variable"] is None for report in reports):
        judge.not_provided("ranks meet on the port that is handed over, and MASTER_PORT has no part in it")
    found = [
        (f"rank {rank}", expect.same(report, _group(rank, world_size) | {"variable": str(port), "listens": True}))
        for rank, report in enumerate(reports)
    ]
    judge_all(judge, found, "the group of ranks that were asked to meet on a given port")
    judge.holds(
        expected="MASTER_ADDR is needed beside MASTER_PORT",
        observed=refusal,
        witness=Witness.VALUE,
        message="with the port alone torch refuses",
    )
