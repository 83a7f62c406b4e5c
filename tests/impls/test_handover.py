"""Arguments by name: what is asked for is given, and what nobody knows is not guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from impls.contract import ENTRIES
from impls.handover import NotProvided, arguments, requires
from impls.loading import load

RING = ENTRIES["ring_allreduce"]
AVAILABLE = {"mesh": "a mesh", "rank": 1, "world_size": 4, "tensor": "a tensor"}


def given(target: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    return arguments(target, RING, AVAILABLE)


@pytest.mark.parametrize(
    "target",
    [
        lambda foo, bar, baz, qux: None,
        lambda mesh, rank, foo, tensor: None,
        lambda foo, mesh, rank, tensor: None,
        lambda tensor, foo: None,
        lambda mesh, rank, world_size, foo: None,
    ],
    ids=["all", "in the middle", "moved", "shorter", "the only one that is left"],
)
def test_a_name_that_nobody_knows_is_never_filled_by_its_place(target: Callable[..., Any]) -> None:
    with pytest.raises(NotProvided, match=r"asks for 'foo'.*, which nothing is known to fill"):
        given(target)


def test_what_is_missing_comes_with_the_line_that_says_what_is_meant() -> None:
    def ring_sum(mesh: Any, rank: int, n_workers: int, x: Any) -> None: ...

    with pytest.raises(NotProvided) as refused:
        given(ring_sum)

    _, _, line = str(refused.value).partition("say what is meant: ")
    assert line == (
        'adapters = {"ring_allreduce": lambda mesh, rank, tensor, ...: '
        "ring_sum(mesh=mesh, rank=rank, x=tensor, n_workers=...)}"
    )


def test_such_a_line_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def ring_sum(mesh, rank, n_workers, x): return n_workers\n"
        "adapters = {'ring_allreduce': lambda mesh, rank, tensor, world_size: "
        "ring_sum(mesh=mesh, rank=rank, x=tensor, n_workers=world_size)}\n"
    )
    assert load(str(file)).call("ring_allreduce", **AVAILABLE) == 4


def test_a_name_that_is_known_from_elsewhere_is_said_to_be_so() -> None:
    with pytest.raises(NotProvided, match="asks for 'lr', and no learning_rate is offered here"):
        given(lambda mesh, lr: None)


@pytest.mark.parametrize("target", [lambda *args: None, max], ids=["stars", "builtin"])
def test_what_has_no_names_is_given_everything_in_order(target: Callable[..., Any]) -> None:
    assert given(target) == (["a mesh", 1, 4, "a tensor"], {})


@pytest.mark.parametrize("name", ["ids", "input_ids", "token_ids", "indices"])
def test_what_people_call_token_numbers_is_the_tensor(name: str) -> None:
    target = eval(f"lambda {name}, weight, group=None: None")
    entry = ENTRIES["VocabParallelEmbedding"]
    assert arguments(target, entry, {"tensor": "ids", "weight": "rows", "group": None}) == (
        [],
        {name: "ids", "weight": "rows"},
    )


@pytest.mark.parametrize("name", ["process_group", "shard_group", "fsdp_group"])
def test_what_people_call_the_group_of_a_sharded_model_is_the_group(name: str) -> None:
    target = eval(f"lambda module, {name}=None: None")
    called = arguments(target, ENTRIES["fully_shard"], {"module": "a model", "group": "some ranks"})
    assert called == ([], {"module": "a model", name: "some ranks"})


def test_a_parameter_is_required_in_any_spelling_unless_it_has_a_default() -> None:
    assert requires(lambda module, bucket_size_mb: None, "bucket_cap_mb")
    assert not requires(lambda module, bucket_size_mb=25: None, "bucket_cap_mb")
    assert not requires(lambda module: None, "bucket_cap_mb")
