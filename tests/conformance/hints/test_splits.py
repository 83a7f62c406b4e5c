"""What tells right cases from wrong ones: one question, or two that meet; and nothing where several would do."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import pytest
import torch

from conformance.collectives.survey import facts, neighbours, survey, told
from conformance.hints.contrasts import split_signature
from conformance.hints.splits import QUESTIONS, split
from conformance.hints.texts import texts
from conformance.judge import Broken
from conformance.verdict import Result, Tier, Verdict
from fixtures import draws
from fixtures.draws import Case

WRONG = Broken(Verdict.VIOLATED, "wrong")
FAULTS = {
    "size": lambda case: case.world_size > 2,
    "uneven": lambda case: case.numel % case.world_size != 0,
    "uneven_rows": lambda case: bool(case.shape) and case.shape[0] % case.world_size != 0,
    "dims": lambda case: len(case.shape) > 1,
    "rounding": lambda case: case.values == "real",
}


def _surveyed(table: list[Case], is_wrong: Any) -> list[dict[str, Any]]:
    """The cases of a survey of an implementation that is wrong where told."""

    def examine(case: Case) -> None:
        if is_wrong(case):
            raise Broken(Verdict.VIOLATED, "wrong")

    first = next(case for case in table if is_wrong(case))
    right = list(itertools.takewhile(lambda case: not is_wrong(case), table))
    return survey([*((case, None) for case in right), (first, WRONG)], table, examine)


def _questions(cases: list[dict[str, Any]]) -> list[str]:
    right, wrong = ([case for case in cases if (case["verdict"] == "holds") is holds] for holds in (True, False))
    return [found.question for found in split(wrong, right)]


@pytest.mark.parametrize("name", FAULTS)
def test_one_question_tells_plain_cases_apart(name):
    assert _questions(_surveyed(draws.plain_table(2, 3, 4), FAULTS[name])) == [name]


@pytest.mark.parametrize(
    ("name", "is_wrong"),
    [
        ("dtype", lambda case: case.dtype in (torch.bfloat16, torch.float16)),
        ("dtype", lambda case: case.dtype is torch.int8),
        ("strided", lambda case: not facts(case, None)["is_contiguous"]),
        ("empty", lambda case: case.numel == 0),
        ("few", lambda case: case.numel < case.world_size),
        ("size", lambda case: case.world_size in (5, 8)),
        ("dims", lambda case: not case.shape),
    ],
    ids=["16 bits", "int8", "strided", "empty", "fewer than ranks", "five and eight ranks", "0-d"],
)
def test_one_question_tells_unusual_cases_apart(name, is_wrong):
    assert _questions(_surveyed(draws.any_table(), is_wrong)) == [name]


@pytest.mark.parametrize(
    ("names", "is_wrong"),
    [
        (["size", "dims"], lambda case: case.world_size > 2 and len(case.shape) > 1),
        (["size", "rounding"], lambda case: case.world_size == 4 and case.values == "real"),
        (["dims", "rounding"], lambda case: len(case.shape) > 1 and case.values == "real"),
    ],
    ids=["matrices of more than two", "rounded sums of four", "rounded matrices"],
)
def test_two_questions_that_meet_are_told_together(names, is_wrong):
    cases = _surveyed(draws.plain_table(2, 3, 4), is_wrong)
    assert _questions(cases) == names
    result = Result(
        claim="collectives.values.allreduce",
        case="test_it",
        tier=Tier.CORE,
        impl="mine",
        verdict=Verdict.VIOLATED,
        data={"cases": cases},
    )
    found = split_signature(result)
    assert found is not None
    assert found.en.startswith("Wrong exactly where two things meet: ")
    assert found.fa


def test_root_is_told_where_it_is_what_differs():
    table = [Case(world_size=n, shape=(5,), src=src, seed=src) for n in (2, 3, 4) for src in range(n)]
    assert _questions(_surveyed(table, lambda case: case.src != 0)) == ["root"]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_wrong_at_random_is_not_told(seed):
    chance = random.Random(seed)
    table = draws.plain_table(2, 3, 4)
    drawn = {repr(case): chance.random() < 0.5 for case in [*table, *_all_neighbours(table)]}
    wrong = [facts(case, WRONG) for case in table if drawn[repr(case)]]
    right = [facts(case, None) for case in table if not drawn[repr(case)]]
    assert split(wrong, right) == []


def _all_neighbours(table: list[Case]) -> list[Case]:
    return [other for case in table for other in neighbours(case, (2, 3, 4))]


def test_what_is_wrong_everywhere_is_not_told():
    assert split([facts(case, WRONG) for case in draws.plain_table(2, 3)], []) == []


def test_two_explanations_are_none():
    wrong = [facts(Case(world_size=3, shape=(3, 3)), WRONG)]
    right = [facts(Case(world_size=2, shape=(4,)), None)]
    assert split(wrong, right) == []


def test_a_survey_ends_where_a_case_says_nothing():
    def examine(case: Case) -> None:
        raise Broken(Verdict.LOST, "no time is left")

    assert survey([(Case(world_size=2, shape=(4,)), WRONG)], draws.plain_table(2, 3), examine) == []


def test_a_survey_of_what_hangs_is_short():
    calls: list[Case] = []

    def examine(case: Case) -> None:
        calls.append(case)
        raise Broken(Verdict.HANGS, "rank 0 waits", outcomes=[])  # type: ignore[arg-type]  # any that is not None

    table = draws.plain_table(2, 3, 4)
    cases = survey([(table[0], WRONG)], table, examine)
    assert len(calls) == 6
    assert {case["verdict"] for case in cases} == {"violated", "hangs"}


def test_cases_are_counted_by_the_number_of_ranks():
    cases = [facts(case, WRONG if case.world_size == 3 else None) for case in draws.plain_table(2, 3)]
    assert told(cases) == "broken, of all cases tried: 0 of 6 with N = 2, 6 of 6 with N = 3"
    assert told(cases[:6]) == ""


def test_neighbours_differ_in_one_thing_each():
    case = Case(world_size=3, shape=(4, 3), values="wide", dtype=torch.int32, layout="strided", src=1)
    for other in neighbours(case, (2, 3, 4)):
        changed = [
            field.name for field in dataclasses.fields(case) if getattr(case, field.name) != getattr(other, field.name)
        ]
        assert len(changed) <= 1


@pytest.mark.parametrize("name", list(QUESTIONS))
def test_every_question_has_its_texts(name):
    wanted = {f"where_{name}", "powers_of_two" if name == "size" else name}
    assert wanted <= texts().keys()
    assert all(entry["en"] and entry["fa"] for entry in texts().values())
