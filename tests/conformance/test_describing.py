"""What an implementation provides is found in a rank, once, and shown by ``python -m conformance show``."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from conformance.checks import Description, why_missing
from conformance.describing import Descriptions
from conformance.options import Chosen
from conformance.verdict import Verdict
from fixtures.world.outcome import Ending, Hang, Outcome, Outcomes, Raised

MINE = Chosen(name="mine", spec="mine.py", path="/mine.py", sha256="0")


class OneAnswer:
    """A pool and its world, whose only rank ends as told; counts how often it is asked."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.asked = 0

    def world(self, size, impl=None, bare=False, trace=True):
        assert (size, impl, bare) == (1, "mine.py", True)
        return self

    def run(self, program, *args, deadline_s=0.0, **kwargs):
        self.asked += 1
        return Outcomes([self.outcome])


PROVIDED = {
    "blocks": {"collectives": {"ring_allreduce": "ring_allreduce (mine.py:3)"}, "data_parallel": {}},
    "missing": {"all_reduce": "mine has no all_reduce"},
    "remarks": ["a remark"],
    "deviates": {"a.b": {"reason": "known"}},
    "refuses": {},
}


def test_description_is_found_once_and_shared_through_the_folder(tmp_path):
    pool = OneAnswer(Outcome(rank=0, ending=Ending.RETURNED, value=PROVIDED))
    first = Descriptions(tmp_path).get(MINE, pool)
    second = Descriptions(tmp_path).get(MINE, pool)
    assert pool.asked == 1
    assert first == second
    assert first.blocks == ("collectives",)


@pytest.mark.parametrize(("is_peer", "declared"), [(True, {"a.b": {"reason": "known"}}), (False, {})])
def test_only_a_bundled_peer_may_declare_deviations(tmp_path, is_peer, declared):
    pool = OneAnswer(Outcome(rank=0, ending=Ending.RETURNED, value=PROVIDED))
    chosen = dataclasses.replace(MINE, is_peer=is_peer)
    assert Descriptions(tmp_path).get(chosen, pool).deviates == declared


@pytest.mark.parametrize(
    ("outcome", "verdict", "told"),
    [
        (
            Outcome(
                rank=0, ending=Ending.HUNG, hang=Hang(call="mine.py:3", stack="", verdict="stalled", deadlock=False)
            ),
            Verdict.HANGS,
            "mine hangs while it is imported",
        ),
        (
            Outcome(rank=0, ending=Ending.RAISED, raised=Raised(type="SystemExit", text="3", traceback="")),
            Verdict.CRASHES,
            "mine cannot be imported: rank 0 raised SystemExit",
        ),
        (Outcome(rank=0, ending=Ending.KILLED, signal=6), Verdict.CRASHES, "signal 6"),
    ],
    ids=["hangs", "exits", "aborts"],
)
def test_import_that_goes_wrong_is_a_verdict_and_is_not_tried_again(tmp_path, outcome, verdict, told):
    pool = OneAnswer(outcome)
    found = Descriptions(tmp_path).get(MINE, pool)
    Descriptions(tmp_path).get(MINE, pool)
    assert found.verdict is verdict
    assert told in found.reason
    assert pool.asked == 1


def test_import_that_needs_a_notebook_is_told_with_every_such_line(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("# get_ipython()\nget_ipython().system('pip install x')\nx = 1 if get_ipython() else 2\n")
    raised = Raised(type="NameError", text="name 'get_ipython' is not defined", traceback="")
    pool = OneAnswer(Outcome(rank=0, ending=Ending.RAISED, raised=raised))
    found = Descriptions(tmp_path).get(dataclasses.replace(MINE, path=str(path)), pool)
    assert "Only a notebook can run mine.py:2, 3. Delete such lines" in found.reason


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["ring_allreduce"], ""),
        (["ring_allreduce|all_reduce"], ""),
        (["all_reduce"], "mine does not provide all_reduce: mine has no all_reduce"),
        (["ring_allreduce", "tree_allreduce | all_reduce"], "mine does not provide tree_allreduce or all_reduce"),
    ],
)
def test_name_that_is_missing_is_told_with_its_reason(names, reason):
    description = Description(
        name="mine", spec="mine", spellings={"ring_allreduce": "x"}, missing={"all_reduce": "mine has no all_reduce"}
    )
    assert why_missing(description, names).startswith(reason)
    assert bool(why_missing(description, names)) is bool(reason)


@pytest.mark.parametrize(
    ("source", "status", "told"),
    [
        ("def all_reduce(tensor):\n    return tensor\n", 0, "all_reduce (mine.py:1)"),
        ("def all_reduce(tensor):\n    return tensor\nraise ValueError('no')\n", 1, "raised ValueError"),
        ("def all_reduce(tensor:\n", 4, "mine.py:1"),
        (
            "adapters = {'all_reduse': 'mine'}\n",
            0,
            "'all_reduse', which is no name of the contract: did you mean 'all_r",
        ),
        ("adapters = {'all_reduce': 'mine'}\n", 0, "maps all_reduce to 'mine', which is not defined"),
        ("def all_reduce(tensor, foo, bar, baz, qux): ...; x = 1\n", 0, "- all_reduce asks for 'foo', 'bar'"),
    ],
    ids=["provides", "raises", "syntax", "misspelt adapter", "dangling adapter", "parameters that nothing fills"],
)
def test_show_says_what_would_be_taken_for_what(tmp_path, source, status, told):
    path = tmp_path / "mine.py"
    path.write_text(source)
    command = [sys.executable, "-m", "conformance", "show", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == status, done.stderr
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
