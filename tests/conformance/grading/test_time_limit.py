"""A function that does not come back has a share of the time limit, and the others have time for their points."""

from __future__ import annotations

import pytest

from conformance.checks import Broken, Description, Subject
from conformance.grading.time_limit import LEAST_S, TimeLimit, function_of
from conformance.patience import Patience
from conformance.verdict import Verdict
from fixtures.world.outcome import Ending, Hang, Outcome, Outcomes

BACK = Outcomes([Outcome(rank=0, ending=Ending.RETURNED)])
STALLED = Outcomes(
    [Outcome(rank=0, ending=Ending.HUNG, hang=Hang(call="", stack="", verdict="", deadlock=False))],
)


class Clock:
    """A pool and its world, in which time passes as the program says: ``loops`` takes all of its deadline."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def world(self, size, impl=None, bare=False, trace=True):
        return self

    def run(self, program, deadline_s, wall_s):
        outcomes, took_s = program(min(deadline_s, wall_s))
        self.now += took_s
        return outcomes


def loops(deadline_s: float) -> tuple[Outcomes, float]:
    return STALLED, deadline_s


def quick(deadline_s: float) -> tuple[Outcomes, float]:
    return BACK, 0.1


class Graded:
    """One hand-in, its functions examined in turn, each check with a Subject of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, limit_s: float) -> None:
        self.limit = TimeLimit(limit_s)
        self._clock = Clock(monkeypatch)
        self._patience: dict[str, Patience] = {}

    def check(self, function: str, program) -> tuple[Verdict, str]:
        patience = self._patience.setdefault(function, Patience())
        subject = Subject(Description(name="h", spec="h"), self._clock, patience, self.limit.part(function))
        try:
            subject.run(program, 2)
        except Broken as broken:
            return broken.verdict, broken.message
        return Verdict.HOLDS, ""

    def verdicts(self, *checks) -> list[Verdict]:
        return [self.check(function, program)[0] for function, program in checks]


def test_function_that_loops_leaves_the_others_their_time(monkeypatch):
    graded = Graded(monkeypatch, 600.0)
    found = graded.verdicts(*[("ring", loops), ("wrapper", quick)] * 300)
    assert set(found[1::2]) == {Verdict.HOLDS}
    assert found[:8:2] == [Verdict.HANGS] * 4
    assert found[-2] == Verdict.LOST
    assert 150 <= graded.limit.stalled_s <= 152


def test_function_that_comes_back_now_and_then_has_no_more_time_to_stall_than_another(monkeypatch):
    graded = Graded(monkeypatch, 600.0)
    graded.verdicts(*[("ring", quick), ("ring", loops)] * 300)
    assert graded.limit.stalled_s <= 155


def test_many_functions_that_loop_leave_the_last_one_its_time(monkeypatch):
    graded = Graded(monkeypatch, 600.0)
    functions = [f"f{number}" for number in range(20)]
    graded.verdicts(*[(function, loops) for function in functions] * 20)
    assert graded.check("right", quick)[0] == Verdict.HOLDS


def test_run_that_was_given_less_than_its_deadline_is_not_said_to_hang(monkeypatch):
    graded = Graded(monkeypatch, 20.0)
    assert graded.verdicts(("ring", loops), ("ring", loops)) == [Verdict.LOST] * 2
    assert graded.limit.stalled_s == 10.0


def test_reason_names_the_function_and_what_its_runs_took(monkeypatch):
    graded = Graded(monkeypatch, 100.0)
    told = [graded.check("ring_allreduce", loops)[1] for _ in range(3)][-1]
    assert told == (
        "ring_allreduce did not come back in a run, which took 30 s of the time limit of this implementation, 100 s: "
        "its checks get no more, so that other functions have time for theirs"
    )


def test_time_that_others_used_up_is_not_said_of_a_function_that_came_back(monkeypatch):
    graded = Graded(monkeypatch, 0.15)
    graded.verdicts(("wrapper", quick), ("wrapper", quick))
    assert graded.check("wrapper", quick)[1].startswith("the time limit of this implementation, 0.15 s, was used up")


def test_without_a_limit_every_run_has_the_deadline_that_it_asks_for(monkeypatch):
    graded = Graded(monkeypatch, float("inf"))
    assert set(graded.verdicts(*[("ring", loops)] * 300)) == {Verdict.HANGS}
    assert graded.limit.part("ring").bound_s(30.0) == 30.0


def test_deadline_is_never_too_short_to_be_answered_at_all():
    assert TimeLimit(0.0).part("ring").bound_s(30.0) == LEAST_S


@pytest.mark.parametrize(
    ("asks", "function"),
    [
        (["ring_allreduce"], "ring_allreduce"),
        (["all_reduce|ring_allreduce", "ring_allreduce"], "ring_allreduce"),
        (["all_reduce|ring_allreduce|tree_allreduce"], "all_reduce or ring_allreduce"),
        (["queue_mesh", "ring_allreduce"], "queue_mesh with ring_allreduce"),
    ],
)
def test_check_is_about_what_it_asks_for(asks, function):
    assert function_of(asks, {"all_reduce", "ring_allreduce", "queue_mesh"}) == function
