"""The mutants as files: each names its fault and its claims, and together they reach every claim that is checked."""

from __future__ import annotations

import json

import pytest

from conformance import mutants, scenarios, skimming
from conformance.ledger import Ledger
from conformance.reproduce import has_line
from conformance.verdict import Truth
from tests.conformance.conftest import CONFTEST

LEDGER = Ledger.load()
MUTANTS = mutants.find()
CHECKED = skimming.checked_claims() | {scenario.claim for scenario in scenarios.find().values() if scenario.claim}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_names_claims_that_are_checked(mutant):
    assert set(mutant.breaks) - CHECKED == set()
    assert set(mutant.breaks) - set(LEDGER.claims) == set()


@pytest.mark.parametrize("claim", sorted(CHECKED))
def test_checked_claim_is_one_of_the_ledger_and_some_mutant_breaks_it(claim):
    assert claim in LEDGER.claims
    if LEDGER.claims[claim].truth is not Truth.OPINION:
        assert [mutant.name for mutant in MUTANTS if claim in mutant.breaks] != []


def test_each_claim_that_a_mutant_breaks_has_a_script_for_its_plain_uses():
    assert {claim for mutant in MUTANTS for claim in mutant.breaks if not has_line(claim)} == set()


def test_table_of_who_broke_what_is_of_these_mutants_and_has_all_that_they_name():
    table = json.loads(mutants.KILLED.read_text())
    assert table["digest"] == mutants.digest(), "the mutants have changed: python -m conformance mutants"
    for mutant in MUTANTS:
        for claim in mutant.breaks:
            assert mutant.name.removeprefix("mutants/") in LEDGER.claims[claim].killed_by, claim


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('"""A fault."""\n', "BREAKS"),
        ('BREAKS = ("a.b",)\n', "docstring"),
        ('"""A fault."""\nBREAKS = tuple(x for x in "ab")\n', "plain text"),
        ("def broken(:\n", "line 1"),
    ],
    ids=["no claims", "no fault", "computed claims", "no Python"],
)
def test_mutant_that_does_not_say_what_it_breaks_is_refused(tmp_path, source, told):
    (tmp_path / "odd.py").write_text(source)
    with pytest.raises(mutants.MutantError, match=told):
        mutants.find(tmp_path)


CHECKS = """
import programs
import pytest
import torch
from conformance.checks import claim

@claim("collectives.values.allreduce", provides=["ring_allreduce"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_sum(subject, judge, world_size):
    for value in subject.run(programs.ring, world_size).values:
        judge.expect(value, torch.full((5,), float(world_size)))
"""

PROGRAMS = """
import torch

def ring(ctx):
    mesh = ctx.mesh()
    tensor = torch.ones(5)
    return ctx.impl.call("ring_allreduce", mesh=mesh, rank=ctx.rank, world_size=ctx.world_size, tensor=tensor)
"""


def test_run_over_mutants_passes_when_each_named_claim_is_broken_and_fails_when_one_survives(make_place):
    place = make_place({"test_checks.py": CHECKS, "programs.py": PROGRAMS})
    done = place.run("--mutants", "-k", "ring_wrong_on_odd_worlds", "--killed=killed.json")
    assert done.status == 0, done.text
    assert "mutants/ring_wrong_on_odd_worlds: breaks collectives.values.allreduce" in done.text
    assert "ring_wrong_on_odd_worlds" in (place.folder / "killed.json").read_text()
    survived = place.run("--mutants", "-k", "ring_wrong_on_odd_worlds and 2")
    assert survived.status == 1
    assert "SURVIVED collectives.values.allreduce" in survived.text


@pytest.mark.parametrize(
    ("known", "status", "num_ran"),
    [("test_sum[3]", 0, 1), ("test_sum[2]", 1, 1), ("test_gone", 0, 2), ("", 0, 2)],
    ids=["breaks it", "breaks it no longer", "is gone", "is not known"],
)
def test_run_over_mutants_takes_the_case_that_is_known_to_break_a_claim(make_place, known, status, num_ran):
    table = {"claims": {"collectives.values.allreduce": {"ring_wrong_on_odd_worlds": known}}}
    home = "Path(__file__).parent"
    elsewhere = f"from pathlib import Path\nfrom conformance import mutants\nmutants.KILLED = {home} / 'known.json'"
    files = {"test_checks.py": CHECKS, "programs.py": PROGRAMS, "known.json": json.dumps(table)}
    place = make_place({**files, "conftest.py": f"{CONFTEST}\n{elsewhere}\n"})
    done = place.run("--mutants", "-k", "ring_wrong_on_odd_worlds")
    assert done.status == status, done.text
    assert f"{num_ran} passed" in done.text
