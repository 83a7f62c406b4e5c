"""mpi4py's names and the queues and pipes of multiprocessing, over a mesh: what is sent arrives as what it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from impls.contract import ENTRIES
from impls.handover import NotProvided, bindings, cannot_be_called
from impls.mesh import QueueMesh, queue_mesh
from impls.neighbours import neighbours


@pytest.fixture
def ends() -> list[Any]:
    return list(queue_mesh(3, timeout_s=0.05))


@pytest.mark.parametrize(
    "value",
    [3, None, "text", 2.5, [1, (2, 3)], {"rank": 1}, np.int64(4), np.arange(3, dtype=np.uint16)],
    ids=["int", "none", "text", "float", "lists", "dict", "scalar", "unsigned"],
)
def test_any_object_arrives_as_it_was(ends: list[QueueMesh], value: Any) -> None:
    ends[0].send(value, dest=1, tag=5)
    ends[0].send(value, 1)
    for _ in range(2):
        assert repr(ends[1].recv(source=0)) == repr(value)


@pytest.mark.parametrize("value", [torch.arange(6).view(2, 3), np.arange(6.0).reshape(3, 2), np.ones(())])
def test_tensors_and_arrays_keep_kind_shape_and_values_and_are_copies(ends: list[QueueMesh], value: Any) -> None:
    ends[0].send(value, dest=2)
    ends[0].send(2, value)
    sent = repr(value)
    value *= 0
    assert [repr(ends[2].recv(0)), repr(ends[2].recv(source=0))] == [sent, sent]


def test_a_tensor_of_a_mesh_may_be_given_by_name(ends: list[QueueMesh]) -> None:
    ends[0].send(dst=1, tensor=torch.ones(2))
    ends[0].send(obj=7, dest=1)
    assert ends[1].recv(src=0).tolist() == [1, 1]
    assert ends[1].recv(None, 0) == 7


def test_what_waits_gives_the_object_when_it_is_waited_for(ends: list[QueueMesh]) -> None:
    ends[1].isend({"a": 1}, dest=0).wait()
    assert ends[0].irecv(source=1, tag=2).wait() == {"a": 1}
    ends[0].send("x", dest=1)
    ends[2].send("y", dest=1)
    assert [ends[1].sendrecv("z", dest=0, source=0), ends[1].recv(source=2), ends[0].recv(source=1)] == ["x", "y", "z"]


def test_one_rank_s_object_is_on_all_and_all_are_on_one(ends: list[QueueMesh]) -> None:
    assert [ends[1].bcast("b", root=1), ends[0].bcast(None, root=1), ends[2].bcast(root=1)] == ["b", "b", "b"]
    assert (ends[1].gather("one"), ends[2].gather("two"), ends[0].gather("zero")) == (
        None,
        None,
        ["zero", "one", "two"],
    )
    assert [ends[0].scatter([7, 8, 9]), ends[1].scatter(), ends[2].scatter()] == [7, 8, 9]


def test_a_message_of_any_source_is_not_to_be_had_from_queues_between_threads(ends: list[QueueMesh]) -> None:
    with pytest.raises(NotProvided, match="a message of any source"):
        ends[0].recv()


def test_neighbours_on_a_ring_are_links_to_the_next_and_from_the_one_before(ends: list[QueueMesh]) -> None:
    own, following = neighbours(ends[2]), neighbours(ends[0])
    own["to_next"].put([1])
    own["to_next"].send(torch.ones(1))
    assert following["from_previous"].recv() == [1]
    assert following["from_previous"].get(timeout=1).tolist() == [1]


def test_queues_between_pairs_are_found_whoever_is_named_first(ends: list[QueueMesh]) -> None:
    here, there = neighbours(ends[0])["queues"], neighbours(ends[1])["queues"]
    here[0, 1].put("a")
    here[1][0].put_nowait("b")
    assert [there[0, 1].get(), there[0][1].get(), len(here)] == ["a", "b", 3]
    neighbours(ends[0])["connections"][1].send("c")
    assert neighbours(ends[1])["connections"][0].recv() == "c"


def test_what_is_put_into_one_s_own_queue_is_there(ends: list[QueueMesh]) -> None:
    queues = neighbours(ends[0])["queues"]
    queues[0].put("a")
    queues[0, 0].put("b")
    assert [queues[0].get(), queues[0, 0].get()] == ["a", "b"]


def test_a_queue_of_nobody_knows_whom_is_not_guessed(ends: list[QueueMesh]) -> None:
    queues = neighbours(ends[0])["queues"]
    with pytest.raises(NotProvided, match=r"rank 0 takes from queues\[2\], so queues\[i\] is no inbox of rank i"):
        queues[2].get()
    with pytest.raises(NotProvided, match="rank 0 uses the queue between ranks 1 and 2"):
        queues[1, 2].put(0)
    with pytest.raises(IndexError):
        queues[3].put(0)


def ring(rank: int, world_size: int, tensor: Any, send_queue: Any, recv_queue: Any) -> None:
    """Asks for two queues."""


def test_queues_are_offered_under_the_names_that_people_give_them() -> None:
    assert cannot_be_called(ring, ENTRIES["ring_allreduce"]) is None
    assert bindings(ring, ENTRIES["ring_allreduce"])["send_queue"] == "to_next"
    assert bindings(ring, ENTRIES["ring_allreduce"])["recv_queue"] == "from_previous"
