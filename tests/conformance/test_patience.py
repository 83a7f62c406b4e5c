"""A function that stalls again and again is waited for less; one that comes back, however late, is not hurried."""

from __future__ import annotations

import pytest

from conformance.checks import Broken, Description, Subject
from conformance.patience import CHECK_BUDGET_S, LEAST_S, LEAST_WITHOUT_HOPE_S, Patience
from conformance.verdict import Verdict
from fixtures.world.outcome import Ending, Hang, Outcome, Outcomes

BACK = Outcomes([Outcome(rank=0, ending=Ending.RETURNED)])


def hung(*, deadlock: bool) -> Outcomes:
    hang = Hang(call="", stack="", verdict="", deadlock=deadlock)
    return Outcomes([Outcome(rank=0, ending=Ending.HUNG, hang=hang)])


def after(*runs: tuple[Outcomes, float]) -> float:
    patience = Patience()
    for outcomes, took_s in runs:
        patience.note(outcomes, took_s)
    return patience.deadline_s(30.0)


STALL = (hung(deadlock=False), 30.0)


@pytest.mark.parametrize(
    ("runs", "deadline_s"),
    [
        ([], 30.0),
        ([STALL], 30.0),
        ([STALL] * 2, 15.0),
        ([STALL] * 4, LEAST_S),
        ([STALL] * 8, LEAST_WITHOUT_HOPE_S),
        ([(BACK, 0.1), *[STALL] * 8], LEAST_S),
        ([(BACK, 1.0), *[STALL] * 8], 20.0),
        ([(BACK, 9.0), *[STALL] * 8], 30.0),
        ([(hung(deadlock=True), 0.1)] * 9, 30.0),
    ],
)
def test_deadline_shrinks_with_stalls_and_never_below_what_this_function_takes(runs, deadline_s):
    assert after(*runs) == deadline_s


def test_deadline_is_never_longer_than_asked():
    patience = Patience(num_stalls=9, slowest_s=10.0)
    assert patience.deadline_s(4.0) == 4.0


class Slow:
    """A pool and its world, whose clock jumps in every run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes_s: float) -> None:
        self.now = 0.0
        self.takes_s = takes_s
        monkeypatch.setattr("conformance.checks.time.monotonic", lambda: self.now)

    def world(self, size, impl=None, bare=False, trace=True):
        return self

    def run(self, program, *args, deadline_s=0.0, **kwargs):
        self.now += self.takes_s
        return BACK


def test_check_of_an_implementation_that_takes_its_time_ends_all_the_same(monkeypatch):
    subject = Subject(Description(name="mine", spec="mine"), Slow(monkeypatch, CHECK_BUDGET_S / 2 + 1))
    subject.run(print, 2)
    subject.run(print, 2)
    with pytest.raises(Broken, match="2 runs on small tensors took 122 s") as caught:
        subject.run(print, 2)
    assert caught.value.verdict is Verdict.HANGS
