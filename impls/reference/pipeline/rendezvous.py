"""Whether a schedule gets through when every message is a rendezvous: gone from one rank only when another takes it.

What can go wrong depends on how messages are handed over (`Sends`). Nothing is timed: a rank either can go on or it
cannot, and when none can any more, some wait for each other in a circle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import StrEnum

import numpy as np

from impls.reference.pipeline.actions import Ints, Schedule
from impls.reference.pipeline.links import Links


class Sends(StrEnum):
    """How what an action made is handed over. What the next action needs is received right before it."""

    POSTED = "posted"  # isend, the rank goes on; the receiver asks for the one that it wants (a tag per microbatch)
    ORDERED = "ordered"  # isend without tags: activations, and gradients, come in the order in which they were sent
    EXCHANGED = "exchanged"  # sent and waited for together with the receive for the next action (Megatron-LM's 1F1B)
    BLOCKING = "blocking"  # send, which returns when the other side receives; then recv


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """`rank` cannot get past `position` of its list before `other` gets to, or past, `other_position` of its own.

    `sending`: what it made is not taken there; otherwise what it needs is not made there.
    """

    rank: int
    position: int
    other: int
    other_position: int
    sending: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How many actions each rank has done, and of how many it has handed over what they made. [N] each."""

    done: Ints
    sent: Ints


def deadlock(schedule: Schedule, links: Links, sends: Sends) -> list[Wait]:
    """A circle of ranks each of which waits for the next one, and the last for the first; empty if all get through.

    Every signal is made once and needed once: that is known by now.
    """
    came = progress(schedule, links, sends)
    made, taken = _places(schedule, links, links.makes), _places(schedule, links, links.needs)

    def waits(rank: int) -> Iterator[Wait]:
        sending = bool(came.sent[rank] < came.done[rank])
        position = int((came.sent if sending else came.done)[rank])
        cells, place = (links.makes, taken) if sending else (links.needs, made)
        receives = came.sent if sends is Sends.BLOCKING else came.done  # the position for which a rank receives
        for column in schedule.columns:
            slot = int(column[rank, position])
            other, there = divmod(int(place[slot + cells[slot // schedule.num_microbatches]]), schedule.slots.shape[1])
            blocked = receives[other] < there and other != rank if sending else came.done[other] <= there
            if other >= 0 and blocked:
                yield Wait(rank=rank, position=position, other=other, other_position=there, sending=sending)

    chain: dict[int, Wait] = {}
    stuck = np.flatnonzero(came.sent < schedule.lengths).tolist()
    rank = stuck[0] if stuck else None
    while rank is not None and rank not in chain:
        chain[rank] = next(waits(rank))
        rank = chain[rank].other
    return [] if rank is None else list(chain.values())[list(chain).index(rank) :]


def progress(schedule: Schedule, links: Links, sends: Sends) -> Progress:
    """Work off `schedule` as far as it goes: in waves, as `waves.walk` does, but computing and handing over apart."""
    columns = [column.ravel() for column in schedule.columns]
    ranks, longest = np.arange(schedule.num_ranks), schedule.slots.shape[1]
    rendezvous = sends in (Sends.EXCHANGED, Sends.BLOCKING)
    taken = _places(schedule, links, links.needs)
    made = np.zeros(links.num_cells, bool)
    made[links.given] = True
    done, sent = np.zeros((2, schedule.num_ranks), int)
    lengths = schedule.lengths
    while True:
        sending = sent < done
        ready = sending | (done < lengths)
        position, makes = ranks * longest + np.where(sending, sent, done), []
        for column in columns:
            slots = column.take(position, mode="clip").astype(np.intp)
            rows = slots // schedule.num_microbatches
            makes.append(slots + links.makes[rows])
            computes = made[slots + links.needs[rows]]
            other, there = np.divmod(taken[makes[-1]], longest)
            received = (sent if sends is Sends.BLOCKING else done)[other] >= there
            ready &= np.where(sending, received | (other < 0) | (other == ranks) | (not rendezvous), computes)
        if not ready.any():
            return Progress(done=done, sent=sent)
        computed = ready & ~sending
        for cells in makes:
            made[cells[computed]] = True
        done, sent = done + computed, sent + (ready & sending)


def _places(schedule: Schedule, links: Links, cells: Ints) -> Ints:
    """[signals] Where each is made or needed (`cells`: `links.makes` or `links.needs`): rank * longest + position."""
    found = np.full(links.num_cells, -1)
    for column in schedule.columns:
        (places,) = np.nonzero(column.ravel() >= 0)
        slots = column.ravel()[places].astype(np.intp)
        found[slots + cells[slots // schedule.num_microbatches]] = places
    found[links.given] = -1
    return found


def out_of_turn(schedule: Schedule, links: Links) -> list[Wait]:
    """Messages that are taken before one that the same rank sent earlier, the first for each pair of ranks.

    Activations and gradients are counted apart. `position` is where the message is taken, `other_position` where it is
    made.
    """
    made, longest = _places(schedule, links, links.makes), schedule.slots.shape[1]
    found = []
    for rank, length in enumerate(schedule.lengths):
        columns = [column[rank][:length].astype(np.intp) for column in schedule.columns]
        positions = np.concatenate([np.arange(len(slots)) for slots in columns])
        rows = np.concatenate(columns) // schedule.num_microbatches
        sources = made[np.concatenate(columns) + links.needs[rows]]
        others, forward = sources // longest, rows < schedule.num_stages
        for other, way in sorted({*zip(others.tolist(), forward.tolist(), strict=True)}):
            (channel,) = np.nonzero((others == other) & (forward == way))
            channel = channel[np.argsort(positions[channel], kind="stable")]
            (early,) = np.nonzero(np.diff(sources[channel]) < 0)
            if other not in (-1, rank) and early.size:
                at = channel[early[0]]
                place = int(positions[at]), int(sources[at]) % longest
                found.append(Wait(rank=rank, position=place[0], other=other, other_position=place[1], sending=False))
    return found
