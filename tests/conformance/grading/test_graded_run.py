"""A run with a rubric: it checks what has a weight, gives points, and goes on where a hand-in cannot even be read."""

from __future__ import annotations

import pytest

PROGRAMS = """
import time, torch

def total(ctx):
    return ctx.impl.call("all_reduce", tensor=torch.ones(3), group=None)
"""

CHECKS = """
import programs, pytest, torch
from conformance.checks import claim

@claim("collectives.values.allreduce", provides=["all_reduce|ring_allreduce"])
@pytest.mark.parametrize("name", ["all_reduce", "ring_allreduce"])
@pytest.mark.parametrize("world_size", [1, 2])
def test_sum(subject, judge, name, world_size):
    subject.require(name)
    for value in subject.run(programs.total, world_size).values:
        judge.expect(value, torch.full((3,), float(world_size)), message="sum")

@claim("collectives.values.allreduce", tier="exotic")
def test_exotic(subject, judge):
    judge.expect(1, 1)

@claim("collectives.agreement", provides=["all_reduce"])
def test_of_another_claim(subject, judge):
    judge.expect(1, 1)

@claim("collectives.agreement")
def test_of_the_suite(judge):
    judge.expect(1, 1)
"""

RUBRIC = """
name = "One"
assigned = ["all_reduce"]
[[weight]]
claims = ["collectives.values.allreduce", "loop.mean"]
core = 4
"""

GOOD = """
import torch.distributed as dist
def all_reduce(tensor):
    dist.all_reduce(tensor)
    return tensor
"""

FILES = {
    "programs.py": PROGRAMS,
    "test_checks.py": CHECKS,
    "rubric.toml": RUBRIC,
    "good.py": GOOD,
    "doubles.py": GOOD.replace("return tensor", "return 2 * tensor"),
    "broken.py": "def all_reduce(tensor:\n",
    "nothing.py": "x = 1\n",
    "sleeps.py": "import time\ndef all_reduce(tensor):\n    time.sleep(3600)\n",
}


@pytest.fixture(scope="module")
def place(make_place):
    return make_place(FILES)


@pytest.fixture(scope="module")
def done(place):
    impls = [f"--impl={name}.py" for name in ("good", "doubles", "broken", "nothing")]
    return place.run("--rubric=rubric.toml", *impls)


@pytest.mark.parametrize(
    ("impl", "points", "verdict"),
    [
        ("good.py", 4, "holds"),
        ("doubles.py", 0, "violated"),
        ("broken.py", 0, "crashes"),
        ("nothing.py", 0, "crashes"),
    ],
)
def test_each_hand_in_has_its_points(done, impl, points, verdict):
    score = done.record["score"][impl]
    assert (score["points"], score["out_of"], score["open"]) == (points, 4, 0), done.text
    assert [(line["claim"], line["verdict"]) for line in score["breakdown"]] == [
        ("collectives.values.allreduce", verdict)
    ]


def test_only_what_has_a_weight_and_was_assigned_is_checked(done):
    cases = {result["case"] for result in done.record["results"]}
    assert cases == {"test_sum[1-all_reduce]", "test_sum[2-all_reduce]"}


def test_terminal_and_report_tell_the_rubric_and_the_points(done):
    assert "good.py: 4 of 4 points (core 4 of 4)" in done.text
    assert "doubles.py: 0 of 4 points" in done.text
    assert "no check earns points for loop.mean core" in done.text
    assert (done.record["rubric"]["name"], done.record["rubric"]["unused"]) == ("One", ["loop.mean core"])


def test_what_no_time_is_left_for_is_lost_and_open(place):
    done = place.run("--rubric=rubric.toml", "--impl=good.py", "--time-limit=0")
    assert {result["verdict"] for result in done.record["results"]} == {"lost"}
    assert done.record["score"]["good.py"] | {"tiers": 0, "breakdown": 0} == {
        "points": 0,
        "out_of": 4,
        "open": 4,
        "tiers": 0,
        "breakdown": 0,
    }


def test_hand_in_that_sleeps_ends_with_its_time(place):
    done = place.run("--rubric=rubric.toml", "--impl=sleeps.py", "--impl=good.py", "--time-limit=2")
    assert {result["verdict"] for result in done.record["results"] if result["impl"] == "sleeps.py"} == {"lost"}
    assert "all_reduce did not come back in a run" in done.result("test_sum[1-all_reduce]", "sleeps.py")["message"]
    assert done.record["score"]["sleeps.py"]["points"] == 0
    assert done.record["score"]["good.py"]["points"] == 4, "each implementation has its own time"


@pytest.mark.parametrize(
    ("option", "told"),
    [("--rubric=none.toml", "none.toml cannot be read"), ("--time-limit=soon", "soon")],
)
def test_what_cannot_be_used_ends_with_status_4(place, option, told):
    done = place.run("--impl=good.py", option)
    assert done.status == 4
    assert told in done.text
