"""Steps and bytes from traces made by hand, where the answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from conformance.collectives.steps import Order, Unmatched, num_rounds, num_steps
from conformance.collectives.traffic import logical_bytes, sent
from fixtures.world.outcome import Operation
from impls.mesh import HEADER_BYTES, HEADER_TAG, PAYLOAD_TAG


class Clock:
    """Makes the operations of one rank, one after the other."""

    def __init__(self, world_size: int = 4) -> None:
        self.now = 0
        self.operations: list[Operation] = []
        self.ranks = tuple(range(world_size))

    def _add(self, kind: str, peer: int, num_bytes: int, tag: int, *, done: bool, dtype: str = "float32") -> Clock:
        issued = self.now = self.now + 10
        done_ns = self.now = self.now + 10 if done else 0
        self.now = max(self.now, issued)
        self.operations.append(
            Operation(
                seq=len(self.operations),
                kind=kind,
                group="default",
                ranks=self.ranks,
                group_seq=0,
                dtype=dtype,
                shape=(num_bytes // 4,),
                num_bytes=num_bytes,
                peer=peer,
                tag=tag,
                issued_ns=issued,
                done_ns=done_ns,
            )
        )
        return self

    def send(self, peer: int, num_bytes: int = 8, tag: int = 0) -> Clock:
        return self._add("send", peer, num_bytes, tag, done=False)

    def recv(self, peer: int, num_bytes: int = 8, tag: int = 0) -> Clock:
        return self._add("recv", peer, num_bytes, tag, done=True)

    def header(self, peer: int) -> Clock:
        return self._add("send", peer, HEADER_BYTES, HEADER_TAG, done=False, dtype="int64")

    def payload(self, peer: int, num_bytes: int) -> Clock:
        return self.send(peer, num_bytes, PAYLOAD_TAG + num_bytes)

    def collective(self, kind: str, num_bytes: int) -> Clock:
        return self._add(kind, -1, num_bytes, 0, done=True)


def steps_of(*ranks: Clock) -> int:
    return num_steps([rank.operations for rank in ranks])


def test_nothing_sent_takes_no_step() -> None:
    assert steps_of(Clock(), Clock()) == 0


def test_ranks_that_exchange_once_take_one_step() -> None:
    assert steps_of(Clock().send(1).recv(1), Clock().send(0).recv(0)) == 1


@pytest.mark.parametrize("laps", [1, 2, 6])
def test_a_ring_takes_a_step_for_each_message_of_a_rank(laps: int) -> None:
    ranks = [Clock() for _ in range(3)]
    for _ in range(laps):
        for rank, clock in enumerate(ranks):
            clock.send((rank + 1) % 3).recv((rank - 1) % 3)
    assert steps_of(*ranks) == laps


def ring_of(receives_first: Sequence[bool], laps: int = 6) -> list[list[Operation]]:
    """A ring over blocking sends, in which some ranks receive first."""
    world_size = len(receives_first)
    ranks = [Clock(world_size) for _ in receives_first]
    for rank, clock in enumerate(ranks):
        right, left = (rank + 1) % world_size, (rank - 1) % world_size
        for _ in range(laps):
            clock.recv(left).send(right) if receives_first[rank] else clock.send(right).recv(left)
    return [clock.operations for clock in ranks]


@pytest.mark.parametrize(
    ("receives_first", "rounds"),
    [
        ([False, False, False], 1),
        ([False, True], 2),
        ([False, True, False, True], 2),
        ([True, False, True, False], 2),
        ([True, False, False, False], 2),
        ([False, False, False, True], 2),
        ([False, True, False, True, False], 2),
        ([True, False, True, False, True], 3),
        ([False, True, True, True], 4),
        ([True, True, False, True, True], 5),
    ],
)
def test_whether_a_rank_receives_first_is_rounds_of_a_step_and_no_step(
    receives_first: Sequence[bool], rounds: int
) -> None:
    ring = ring_of(receives_first)
    assert num_steps(ring, order=Order.WITHIN_A_STEP) == 6
    assert num_rounds(ring) == rounds


def test_a_message_that_waits_for_another_step_waits_in_every_order() -> None:
    ranks = [Clock().recv(1).recv(1).send(1), Clock().send(0).send(0)]
    assert num_steps([rank.operations for rank in ranks], order=Order.WITHIN_A_STEP) == 3


def test_a_message_waits_for_what_its_sender_had_received() -> None:
    assert steps_of(Clock().send(1), Clock().recv(0).send(2), Clock().recv(1).send(3), Clock().recv(2)) == 3


def test_a_receive_that_ends_later_does_not_hold_a_send_up() -> None:
    early = Clock()
    early.send(1)
    late = Clock().recv(0)
    late.now = 0
    late.send(2)  # issued before the receive was done
    assert steps_of(early, late, Clock().recv(1)) == 1


def test_messages_that_one_rank_sends_leave_one_after_the_other() -> None:
    assert steps_of(Clock().send(1).send(2).send(3), *[Clock().recv(0) for _ in range(3)]) == 3


def test_messages_that_one_rank_receives_arrive_one_after_the_other() -> None:
    assert steps_of(Clock().recv(1).recv(2).recv(3), *[Clock().send(0) for _ in range(3)]) == 3


def test_a_binomial_tree_up_and_down_takes_two_steps_for_each_level() -> None:
    root = Clock().recv(1).recv(2).send(2).send(1)
    inner = Clock().recv(3).send(0).recv(0).send(3)
    assert steps_of(root, Clock().send(0).recv(0), inner, Clock().send(2).recv(2)) == 4


def test_a_chain_that_waits_for_what_nobody_sent_is_refused() -> None:
    with pytest.raises(Unmatched, match="rank 0 sent to rank 1"):
        steps_of(Clock().recv(1).send(1), Clock())


def test_a_header_of_the_mesh_travels_with_its_payload() -> None:
    ranks = [Clock().header(1).payload(1, 40), Clock()]
    assert steps_of(*ranks) == 1
    assert sent(ranks[0].operations).num_bytes == 40


def test_headers_without_a_payload_count_as_messages() -> None:
    operations = Clock().header(1).header(1).payload(1, 40).header(2).operations
    found = sent(operations)
    assert (found.num_bytes, len(found.messages), len(found.lone_headers)) == (40 + 2 * HEADER_BYTES, 3, 2)


def test_as_many_headers_as_there_were_empty_tensors_do_not_count() -> None:
    operations = Clock().header(1).header(1).header(1).operations
    assert sent(operations, empty_tensors=2).num_bytes == HEADER_BYTES


def test_a_payload_to_another_rank_does_not_excuse_a_header() -> None:
    assert sent(Clock().header(1).payload(2, 40).operations).num_bytes == 40 + HEADER_BYTES


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("all_reduce", 1200), ("all_gather", 600), ("reduce_scatter", 600), ("broadcast", 600), ("gather", 150)],
)
def test_logical_bytes_of_a_collective_on_four_ranks(kind: str, expected: int) -> None:
    assert logical_bytes(Clock().collective(kind, 800).operations) == Fraction(expected)


def test_logical_bytes_of_sends_are_their_payload() -> None:
    assert logical_bytes(Clock().header(1).payload(1, 40).recv(3).collective("barrier", 0).operations) == 40
