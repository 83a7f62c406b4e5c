"""An advisor that gives one answer to every question breaks each claim about advice, whatever the answer is."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from conformance.choose import configurations, test_memory, test_placement, test_schedules
from conformance.judge import Broken, Judge
from conformance.verdict import Verdict
from impls.reference.network.steps import Layout

Check = Callable[[Any, Judge], None]

SEED = 7
MODULES = (test_memory, test_placement, test_schedules)
SCHEDULES = ("dualpipe", "dualpipev", "zbv")
DEGREES = [
    {"stage": stage, "tp": tp, "pp": pp, "schedule": schedule}
    for stage, tp, pp in itertools.product(("ddp", "1", "2", "3"), (1, 8), (1, 2, 16))
    for schedule in (SCHEDULES if pp > 1 else ("",))
]
WORDS = ["DDP", "ZeRO-1", "ZeRO-2", "FSDP", "tensor parallel", "pipeline", "DualPipe", "FSDP + tensor + pipeline"]
ANSWERS = [None, *WORDS, *DEGREES]


class Constant:
    """A Subject of one answer; the checks' programs run in this process."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def run(self, program: Callable[..., Any], _: int, *args: Any, **__: Any) -> SimpleNamespace:
        impl = SimpleNamespace(call=lambda _, **__: self.answer, get=lambda _: _asking)
        return SimpleNamespace(values=[program(SimpleNamespace(impl=impl), *args)])


def _asking(num_microbatches: int, between_bandwidth: float, ranks_per_node: int, all_to_all_share: float) -> None:
    """What the advisor is given: all that decides anything."""


def checks_of(module: ModuleType) -> Iterator[tuple[str, Check]]:
    """Each check with its claim, those of a parameter once for each of its values."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if not name.startswith("test_"):
            continue
        for mark in function.pytestmark:
            if mark.name == "claim":
                yield mark.args[0], function
            else:
                names, params = mark.args
                for param in params:
                    given = dict(zip(names, param.values, strict=True))
                    yield param.marks[0].args[0], functools.partial(function, **given)


CHECKS = [pair for module in MODULES for pair in checks_of(module)]
CLAIMS = sorted({claim for claim, _ in CHECKS})


@pytest.fixture(scope="module")
def endings() -> Mapping[str, list[set[str]]]:
    """For each claim, how its checks end for each answer."""
    drawn = functools.lru_cache(maxsize=None)(configurations.draw)
    with pytest.MonkeyPatch.context() as patched:
        for module in MODULES:
            patched.setattr(module, "draw", drawn)
        for name in ("gain", "_quickest_pipeline"):  # of a drawn configuration, whoever is asked
            patched.setattr(test_placement, name, _once(getattr(test_placement, name)))
        return {claim: [_endings(claim, answer) for answer in ANSWERS] for claim in CLAIMS}


def _once(function: Callable[[Mapping[str, Any]], float]) -> Callable[[Mapping[str, Any]], float]:
    known: dict[str, float] = {}
    return lambda given: known.get(str(given)) or known.setdefault(str(given), function(given))


def _endings(claim: str, answer: object) -> set[str]:
    return {_ending(check, answer) for name, check in CHECKS if name == claim}


def _ending(check: Check, answer: object) -> str:
    try:
        check(subject=Constant(answer), judge=Judge(seed=SEED))
    except Broken as ended:
        return ended.verdict
    return Verdict.HOLDS


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if "dualpipe" not in claim])
def test_no_answer_is_right_everywhere(endings: Mapping[str, list[set[str]]], claim: str) -> None:
    assert [answer for answer, how in zip(ANSWERS, endings[claim], strict=True) if Verdict.VIOLATED not in how] == []


@pytest.mark.parametrize("claim", ["choose.dualpipe", "choose.dualpipev"])
def test_no_schedule_is_right_everywhere_and_who_names_none_is_not_credited(
    endings: Mapping[str, list[set[str]]], claim: str
) -> None:
    credited = [
        answer
        for answer, how in zip(ANSWERS, endings[claim], strict=True)
        if Verdict.VIOLATED not in how and how != {Verdict.NOT_PROVIDED}
    ]
    assert credited == []


def test_with_one_microbatch_no_pipeline_comes_near_shards_alone() -> None:
    for given in configurations.draw(configurations.fills_no_pipeline, SEED, 12):
        size, most = given["world_size"], given["num_layers"]
        shards = test_placement.seconds_per_token(given, Layout(dp=size, stage="3"))
        degrees = [(tp, pp) for tp in (1, 2, 4, 8) for pp in (2, 4, 8) if tp * pp <= size and pp <= most]
        layouts = [Layout(dp=size // tp // pp, tp=tp, pp=pp, stage="1") for tp, pp in degrees]
        assert min(test_placement.seconds_per_token(given, layout) for layout in layouts) > 1.5 * shards
