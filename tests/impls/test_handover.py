"""Arguments by name, and by place where names say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from impls.contract import ENTRIES
from impls.handover import NotProvided, arguments

RING = ENTRIES["ring_allreduce"]
AVAILABLE = {"mesh": "a mesh", "rank": 1, "world_size": 4, "tensor": "a tensor"}


def given(target: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    return arguments(target, RING, AVAILABLE)


def test_names_that_nobody_knows_are_filled_in_the_contracts_order() -> None:
    assert given(lambda foo, bar, baz, qux: None) == (["a mesh", 1, 4, "a tensor"], {})


def test_a_name_that_nobody_knows_may_stand_among_others_at_their_places() -> None:
    assert given(lambda mesh, rank, foo, tensor: None) == (["a mesh", 1, 4, "a tensor"], {})


@pytest.mark.parametrize(
    "target",
    [lambda foo, mesh, rank, tensor: None, lambda tensor, foo: None, lambda rank, foo: None],
    ids=["moved", "shorter", "two"],
)
def test_known_names_at_other_places_are_not_filled_with_something_else(target: Callable[..., Any]) -> None:
    with pytest.raises(NotProvided, match="foo"):
        given(target)


@pytest.mark.parametrize("name", ["ids", "input_ids", "token_ids", "indices"])
def test_what_people_call_token_numbers_is_the_tensor(name: str) -> None:
    target = eval(f"lambda {name}, weight, group=None: None")
    entry = ENTRIES["VocabParallelEmbedding"]
    assert arguments(target, entry, {"tensor": "ids", "weight": "rows", "group": None}) == (
        [],
        {name: "ids", "weight": "rows"},
    )
