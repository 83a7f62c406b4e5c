"""The contract's tables agree with its protocols and with each other."""

from __future__ import annotations

from collections import Counter

import pytest

from impls.contract import BLOCKS, ENTRIES
from impls.contract.names import ALIASES
from impls.contract.parameters import SYNONYMS
from impls.loading import load


def test_aliases_are_of_names_that_exist_and_mean_one_thing() -> None:
    assert set(ALIASES) <= set(ENTRIES)
    spellings = Counter(spelling for entry in ENTRIES.values() for spelling in entry.spellings)
    assert [spelling for spelling, count in spellings.items() if count > 1] == []


def test_every_parameter_has_other_spellings() -> None:
    parameters = {name for entry in ENTRIES.values() for order in entry.orders for name in order}
    assert parameters <= set(SYNONYMS)


def test_every_name_says_what_it_has_to_do() -> None:
    assert [entry.name for entry in ENTRIES.values() if entry.orders and not entry.doc] == []


@pytest.mark.parametrize("block", BLOCKS)
def test_the_reference_provides_all_of_it(block: str) -> None:
    assert load("reference").missing(block) == {}
