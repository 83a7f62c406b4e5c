"""What every failure mode has to have, whatever it is about."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.ledger import Ledger
from fixtures.faults.finding import entries
from fixtures.faults.gallery import find
from fixtures.faults.scenario import Scenario, Words
from impls.contract import ENTRIES

SCENARIOS = find()
ROOT = Path(__file__).resolve().parents[2]
PERSIAN = re.compile("[\u0600-\u06ff]")
OF_THE_CHEATSHEET = {
    *("missing-broadcast", "shared-shuffle-seed", "unused-parameter-deadlock", "slow-accumulation"),
    *("sum-without-divide", "pipeline-send-send", "fsdp-70b-over-80gb"),
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_texts_are_in_both_languages(scenario: Scenario) -> None:
    for words in (scenario.title, scenario.symptom, scenario.cause, scenario.cure):
        assert isinstance(words, Words)
        assert words.en
        assert not PERSIAN.search(words.en)
        assert PERSIAN.search(words.fa)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_an_entry_of_the_cheatsheet_has_a_claim_and_a_cure_in_the_contract_and_others_have_neither(
    scenario: Scenario,
) -> None:
    if scenario.claim:
        assert scenario.claim == f"trouble.{scenario.id}"
        assert scenario.claim in Ledger.load().claims
        assert ENTRIES[scenario.cure_name].block in ("cures", "pipeline")  # what a block does anyway may be the cure
    else:
        assert not scenario.cure_name


def test_there_are_all_of_the_cheatsheet_and_as_many_reported_ones_as_promised() -> None:
    assert set(SCENARIOS) >= OF_THE_CHEATSHEET
    assert len([scenario for scenario in SCENARIOS.values() if not scenario.claim]) >= 14


def test_texts_can_be_read_without_importing_the_programs() -> None:
    read = {entry.id: entry for entry in entries()}
    assert set(read) == set(SCENARIOS)
    for name, scenario in SCENARIOS.items():
        assert read[name].symptom == {"en": scenario.symptom.en, "fa": scenario.symptom.fa}


def test_the_command_line_knows_the_same_scenarios_without_importing_torch() -> None:
    asked = "import sys; from conformance import scenarios; print(*scenarios.ids()); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(SCENARIOS)
