"""Point-to-point links between ranks: ``send(dst, tensor)`` and ``recv(src)``, over queues or over gloo.

The collectives are written on top of this and of nothing else, so the same algorithm runs between threads of one
process (``queue_mesh``) and between processes (``GlooMesh``). Both are *buffered*: a send returns before its message is
taken, so that a ring in which every rank sends first cannot lock. Messages between two ranks keep their order.
"""

from __future__ import annotations

import dataclasses
import queue
import threading
from collections import defaultdict, deque
from typing import ClassVar, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from impls.mpi_names import MpiNames

RECV_TIMEOUT_S = 30.0  # how long a queue mesh waits for a silent peer

HEADER_TAG = 0x48  # tells shape and dtype of the message that follows; sent by GlooMesh only
PAYLOAD_TAG = 0x1000  # and up, see `payload_tag`
PUSH_TAG = 2**30  # and up, see `push_tag`
HEADER_WORDS = 16  # int64: dtype, number of dimensions, sizes; the last one is the mark: see `parcels`
HEADER_BYTES = 8 * HEADER_WORDS
MAX_DIMS = HEADER_WORDS - 3

# A dtype travels as its place in this table; append only.
_DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    *(torch.complex64, torch.complex128),
)
_DTYPE_CODES = {dtype: code for code, dtype in enumerate(_DTYPES)}


class Mesh(Protocol):
    """Links from one rank to all others."""

    rank: int
    world_size: int

    def send(self, dst: int, tensor: Tensor) -> None:
        """Send `tensor` (any shape, strides, dtype) to rank `dst` and return without waiting for it to be taken.

        Later changes to `tensor` do not travel.
        """

    def recv(self, src: int) -> Tensor:
        """Wait for the next message that rank `src` sent, and return it."""

    def push(self, dst: int, tensor: Tensor) -> None:
        """Like `send`, for two ranks that both know shape and dtype: the message says neither, and nothing is copied.

        The caller leaves the memory of `tensor` alone until rank `dst` has pulled it.
        """

    def pull(self, src: int, out: Tensor) -> Tensor:
        """Wait for the next tensor that rank `src` pushed, and write it into `out`, which has its shape and dtype."""

    def flush(self) -> None:
        """Wait until everything sent has been taken; what was pushed may be written to again."""


def _plain(tensor: Tensor) -> Tensor:
    """`tensor` element after element in memory, lazy conjugation done; a copy only when that was not so."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _own_copy(tensor: Tensor) -> Tensor:
    plain = _plain(tensor)
    return plain.clone() if plain.data_ptr() == tensor.data_ptr() else plain


def _check_peer(mesh: Mesh, peer: int, verb: str) -> None:
    if not 0 <= peer < mesh.world_size or peer == mesh.rank:
        raise ValueError(f"rank {mesh.rank} of {mesh.world_size} cannot {verb} rank {peer}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Letter:
    """A message between threads; `taken` is set once the receiver has its own copy."""

    tensor: Tensor
    mark: int
    taken: threading.Event


_Queues = dict[tuple[int, int], "queue.SimpleQueue[_Letter]"]


class QueueMesh(MpiNames):
    """One rank's end of a mesh between threads of one process; made by `queue_mesh`."""

    def __init__(self, rank: int, world_size: int, queues: _Queues, timeout_s: float) -> None:
        self.rank = rank
        self.world_size = world_size
        self._queues = queues
        self._timeout_s = timeout_s
        self._lent: deque[tuple[int, threading.Event]] = deque()

    def post(self, dst: int, tensor: Tensor, mark: int = 0) -> None:
        """See `Mesh.send`."""
        _check_peer(self, dst, "send to")
        self._post(dst, _own_copy(tensor), mark)

    def take(self, src: int) -> tuple[Tensor, int]:
        """See `Mesh.recv`. A peer that stays silent for the mesh's time-out is a TimeoutError."""
        letter = self._next(src)
        message = _own_copy(letter.tensor)  # a sender may have pushed it, and write to it once we have taken it
        letter.taken.set()
        return message, letter.mark

    def push(self, dst: int, tensor: Tensor) -> None:
        """See `Mesh.push`."""
        _check_peer(self, dst, "send to")
        self._lent.append((dst, self._post(dst, tensor.detach())))

    def pull(self, src: int, out: Tensor) -> Tensor:
        """See `Mesh.pull`. A time-out as for `recv`; ValueError when the message is not like `out`."""
        letter = self._next(src)
        found, expected = (tuple(letter.tensor.shape), letter.tensor.dtype), (tuple(out.shape), out.dtype)
        if found != expected:
            raise ValueError(f"rank {self.rank} expected {expected} from rank {src}, which sent {found}")
        out.detach().copy_(letter.tensor)
        letter.taken.set()
        return out

    def flush(self) -> None:
        """See `Mesh.flush`. A peer that takes nothing for the mesh's time-out is a TimeoutError."""
        while self._lent:
            dst, taken = self._lent.popleft()
            if not taken.wait(self._timeout_s):
                raise self._too_long(f"rank {dst} to take a message")

    def _post(self, dst: int, tensor: Tensor, mark: int = 0) -> threading.Event:
        letter = _Letter(tensor, mark, threading.Event())
        self._queues[self.rank, dst].put(letter)
        return letter.taken

    def _next(self, src: int) -> _Letter:
        _check_peer(self, src, "receive from")
        try:
            return self._queues[src, self.rank].get(timeout=self._timeout_s)
        except queue.Empty:
            raise self._too_long(f"a message from rank {src}, which sent none") from None

    def _too_long(self, what: str) -> TimeoutError:
        return TimeoutError(f"rank {self.rank} waited {self._timeout_s:g} s for {what}")


def queue_mesh(world_size: int, timeout_s: float = RECV_TIMEOUT_S) -> list[Mesh]:
    """The `world_size` ends of a mesh of queues, one for each thread that plays a rank."""
    if world_size < 1:
        raise ValueError(f"a mesh needs at least one rank, not {world_size}")
    ranks = range(world_size)
    queues: _Queues = {(src, dst): queue.SimpleQueue() for src in ranks for dst in ranks if src != dst}
    return [QueueMesh(rank, world_size, queues, timeout_s) for rank in ranks]


class GlooMesh(MpiNames):
    """This process's end of a mesh over a torch.distributed group (default: all ranks).

    What is sent is a header (dtype and shape, always `HEADER_BYTES` long, tag `HEADER_TAG`) and a payload (tag
    `payload_tag`); what is pushed is one message (tag `push_tag`). Of an empty tensor nothing but the header travels.
    gloo reads a sent tensor only when the peer asks for it, so each send keeps its memory and its Work until `flush`
    or `settle`; this outlives the mesh object.
    """

    # By group and by rank that it goes to: what one message, sent or pushed, has under way.
    _in_flight: ClassVar[defaultdict[tuple[str, int], deque[list[dist.Work]]]] = defaultdict(deque)

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = dist.group.WORLD if group is None else group
        if self._group is None:
            raise RuntimeError("a gloo mesh needs a process group: call torch.distributed.init_process_group first")
        self.rank = dist.get_rank(self._group)
        self.world_size = dist.get_world_size(self._group)
        self._expected: dict[int, tuple[Tensor, dist.Work]] = {}  # by rank: the header that was asked for beforehand

    def post(self, dst: int, tensor: Tensor, mark: int = 0) -> None:
        """See `Mesh.send`."""
        _check_peer(self, dst, "send to")
        payload = _own_copy(tensor)
        self._post(dst, (_header(payload, mark), HEADER_TAG), (payload, payload_tag(payload)))

    def take(self, src: int) -> tuple[Tensor, int]:
        """See `Mesh.recv`."""
        _check_peer(self, src, "receive from")
        if src in self._expected:
            header, arrival = self._expected.pop(src)
            arrival.wait()
        else:
            header = self._ask(_blank_header(), src, HEADER_TAG)
        return self._announced(header, src)

    def _announced(self, header: Tensor, src: int) -> tuple[Tensor, int]:
        payload, mark = _described_by(header)
        if payload.numel():
            self._ask(payload, src, payload_tag(payload))
        return payload, mark

    def take_any(self) -> tuple[Tensor, int]:
        """See `MpiNames`; not after `expect`."""
        assert self._group is not None
        header = _blank_header()
        src = dist.get_group_rank(self._group, dist.recv(header, group=self._group, tag=HEADER_TAG))
        return self._announced(header, src)

    def expect(self, src: int) -> None:
        """Ask for the header of the next message that `src` sends, and go on: it can arrive before `recv` wants it."""
        _check_peer(self, src, "receive from")
        if src not in self._expected:
            header = _blank_header()
            arrival = dist.irecv(header, group=self._group, group_src=src, tag=HEADER_TAG)
            assert arrival is not None  # None is for ranks outside the group, which have no mesh
            self._expected[src] = header, arrival

    def push(self, dst: int, tensor: Tensor) -> None:
        """See `Mesh.push`."""
        _check_peer(self, dst, "send to")
        payload = _plain(tensor)
        self._post(dst, (payload, push_tag(payload)))

    def pull(self, src: int, out: Tensor) -> Tensor:
        """See `Mesh.pull`. Waits for ever when `src` pushes another number of bytes."""
        _check_peer(self, src, "receive from")
        if out.numel() and out.is_contiguous():
            self._ask(out.detach(), src, push_tag(out))
        elif out.numel():
            out.detach().copy_(self._ask(torch.empty(out.shape, dtype=out.dtype), src, push_tag(out)))
        return out

    def flush(self) -> None:
        """See `Mesh.flush`."""
        for dst in range(self.world_size):
            self.settle(dst, len(self._under_way(dst)))

    def settle(self, dst: int, num_messages: int) -> None:
        """`flush` for the oldest messages to one rank only: `num_messages` sends and pushes."""
        under_way = self._under_way(dst)
        for _ in range(num_messages):
            for work in under_way.popleft():
                work.wait()

    def _under_way(self, dst: int) -> deque[list[dist.Work]]:
        assert self._group is not None
        return self._in_flight[self._group.group_name, dst]

    def _post(self, dst: int, *parts: tuple[Tensor, int]) -> None:
        """Start a message of these tensors, each with its tag, the empty ones left out."""
        works = [
            dist.isend(tensor, group=self._group, group_dst=dst, tag=tag) for tensor, tag in parts if tensor.numel()
        ]
        self._under_way(dst).append([work for work in works if work is not None])  # None: outside the group, no mesh

    def _ask(self, tensor: Tensor, src: int, tag: int) -> Tensor:
        dist.recv(tensor, group=self._group, group_src=src, tag=tag)
        return tensor


def payload_tag(payload: Tensor) -> int:
    """The tag of a payload: its size is in it, so that a receiver that expects another size never takes it."""
    return PAYLOAD_TAG + payload.nbytes % 2**29


def push_tag(payload: Tensor) -> int:
    """The tag of what is pushed, apart from all payloads."""
    return PUSH_TAG + payload.nbytes % 2**29


def _blank_header() -> Tensor:
    return torch.empty(HEADER_WORDS, dtype=torch.int64)


def _header(tensor: Tensor, mark: int) -> Tensor:
    if tensor.dim() > MAX_DIMS or tensor.dtype not in _DTYPE_CODES:
        raise ValueError(
            f"a mesh carries up to {MAX_DIMS} dimensions of a plain dtype, not {tensor.dim()} of {tensor.dtype}"
        )
    words = [_DTYPE_CODES[tensor.dtype], tensor.dim(), *tensor.shape]
    return torch.tensor([*words, *[0] * (HEADER_WORDS - 1 - len(words)), mark], dtype=torch.int64)


def _described_by(header: Tensor) -> tuple[Tensor, int]:
    """Memory for the tensor that a header announces, and its mark."""
    code, num_dims, *sizes, mark = header.tolist()
    return torch.empty(sizes[:num_dims], dtype=_DTYPES[code]), mark
