"""The mesh of queues: what it refuses, and how long it waits."""

from __future__ import annotations

import pytest
import torch

from impls.mesh import RECV_TIMEOUT_S, QueueMesh, queue_mesh


def test_a_queue_mesh_waits_30_seconds_unless_told_otherwise() -> None:
    mesh = queue_mesh(2)[0]
    assert isinstance(mesh, QueueMesh)
    assert mesh._timeout_s == RECV_TIMEOUT_S == 30.0


def test_a_silent_peer_is_a_time_out_that_names_both_ranks() -> None:
    with pytest.raises(TimeoutError, match=r"rank 2 waited 0\.01 s for a message from rank 0"):
        queue_mesh(3, timeout_s=0.01)[2].recv(0)


def test_a_pushed_tensor_that_nobody_takes_is_a_time_out() -> None:
    mesh = queue_mesh(2, timeout_s=0.01)[0]
    mesh.push(1, torch.ones(1))
    with pytest.raises(TimeoutError, match=r"rank 0 waited 0\.01 s for rank 1 to take a message"):
        mesh.flush()


def test_later_changes_do_not_travel_in_either_direction() -> None:
    left, right = queue_mesh(2)
    sent = torch.ones(2)
    left.send(1, sent)
    sent.zero_()
    assert right.recv(0).tolist() == [1.0, 1.0]
    left.push(1, sent)
    right.recv(0).fill_(5)
    assert sent.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("peer", [-1, 0, 2])
def test_there_is_no_link_to_oneself_or_to_nobody(peer: int) -> None:
    mesh = queue_mesh(2)[0]
    with pytest.raises(ValueError, match=f"rank 0 of 2 cannot send to rank {peer}"):
        mesh.send(peer, torch.ones(1))
    with pytest.raises(ValueError, match=f"rank 0 of 2 cannot receive from rank {peer}"):
        mesh.recv(peer)


def test_out_must_be_what_was_pushed() -> None:
    left, right = queue_mesh(2)
    left.push(1, torch.ones(2))
    with pytest.raises(ValueError, match=r"rank 1 expected \(\(3,\), torch.float32\) from rank 0"):
        right.pull(0, torch.empty(3))


def test_a_mesh_of_no_ranks_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one rank, not 0"):
        queue_mesh(0)
