"""RECV_TIMEOUT_S is 30 seconds, and a receive from a silent rank obeys it: on a clock that jumps over waits."""

from __future__ import annotations

from conformance.checks import Judge, Subject, claim
from conformance.collectives import mesh_programs
from conformance.verdict import Tier, Witness

LIMIT_S = 30.0
POLL_S = 1.0  # a receive that looks at intervals may notice the end of its time so much later
SILENT, WAITING = 2, 1  # ranks of the mesh of three


@claim("defaults.recv-timeout", provides=["RECV_TIMEOUT_S"])
def test_recv_timeout_s_is_thirty(subject: Subject, judge: Judge) -> None:
    judge.expect(
        subject.run(mesh_programs.constant, 1).values[0],
        LIMIT_S,
        witness=Witness.VALUE,
        unit="s",
        message="RECV_TIMEOUT_S",
    )


@claim("defaults.recv-timeout", provides=["queue_mesh"])
def test_a_receive_from_a_silent_rank_gives_up_after_thirty_seconds(subject: Subject, judge: Judge) -> None:
    outcomes = subject.run(mesh_programs.silent_peer, 1)
    value = outcomes.values[0]
    if value["stuck"] or not value["results"]:
        judge.inconclusive("its receive waits in a way that the jumping clock does not know, e.g. outside Python")
    found = value["results"][0]
    if found["ended"] == "waits without a limit":
        judge.violated(
            f"a receive from a silent rank has no limit: {found['text']}",
            expected=f"TimeoutError after {LIMIT_S:g} s",
            observed="waits for ever",
            witness=Witness.CLOCK,
            outcomes=outcomes,
        )
    if not LIMIT_S <= found["after_s"] <= LIMIT_S + POLL_S or not found["is_timeout"]:
        judge.violated(
            f"a receive from a silent rank ended after {found['after_s']:.1f} s with {found['ended']} {found['text']}",
            expected=f"TimeoutError after {LIMIT_S:g} s",
            observed=f"{found['ended']} after {found['after_s']:.1f} s",
            witness=Witness.CLOCK,
            data={"limits_asked_for_s": value["waits"]},
            outcomes=outcomes,
        )
    judge.holds(
        expected=f"TimeoutError after {LIMIT_S:g} s",
        observed=f"{found['ended']} after {found['after_s']:.1f} s",
        witness=Witness.CLOCK,
        message=f"a receive from a silent rank: {found['text']}",
        data={"limits_asked_for_s": value["waits"]},
    )


@claim("defaults.recv-timeout", provides=["queue_mesh"], tier=Tier.CONTRACT)
def test_the_time_out_names_both_ranks(subject: Subject, judge: Judge) -> None:
    outcomes = subject.run(mesh_programs.silent_peer, 1)
    found = outcomes.values[0]["results"].get(0)
    if found is None or not found["is_timeout"]:
        judge.violated("a receive from a silent rank ended without TimeoutError", outcomes=outcomes)
    if str(WAITING) not in found["text"] or str(SILENT) not in found["text"]:
        judge.violated(
            "the TimeoutError does not say who waited for whom",
            expected=f"a text with {WAITING} and {SILENT}",
            observed=found["text"],
            outcomes=outcomes,
        )
    judge.holds(
        expected=f"the ranks {WAITING} and {SILENT} in the text",
        observed=found["text"],
        witness=Witness.VALUE,
        message="the TimeoutError names both ranks",
    )


@claim("defaults.recv-timeout", provides=["queue_mesh"], tier=Tier.CONTRACT)
def test_a_mesh_made_for_a_short_limit_keeps_it(subject: Subject, judge: Judge) -> None:
    outcomes = subject.run(mesh_programs.short_limit, 1)
    value = outcomes.values[0]
    if value["takes"] is None:
        judge.not_provided("queue_mesh takes no limit of its own")
    error = value["errors"].get(0, "")
    if value["stuck"] or not error.startswith("TimeoutError"):
        judge.violated(
            f"a mesh made with {value['takes']}={mesh_programs.SHORT_S:g} does not keep to it",
            expected="TimeoutError",
            observed=error or f"nothing within {mesh_programs.STUCK_S:g} s",
            witness=Witness.CLOCK,
            outcomes=outcomes,
        )
    judge.holds(
        expected="TimeoutError",
        observed=error,
        witness=Witness.CLOCK,
        message=f"a mesh made with {value['takes']}={mesh_programs.SHORT_S:g}",
    )
