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

RECV_TIMEOUT_S = 30.0  # how long a queue mesh waits for a silent peer

HEADER_TAG = 0x48  # tells shape and dtype of the message that follows; sent by GlooMesh only
PAYLOAD_TAG = 0x1000  # and up, see `payload_tag`
HEADER_WORDS = 16  # int64: dtype, number of dimensions, sizes
HEADER_BYTES = 8 * HEADER_WORDS
MAX_DIMS = HEADER_WORDS - 2

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

    def send(self, dst: int, tensor: Tensor, *, copy: bool = True) -> None:
        """Send `tensor` (any shape, strides, dtype) to rank `dst` and return without waiting for it to be taken.

        Later changes to `tensor` do not travel. With ``copy=False`` they might: the caller promises to leave
        its memory alone until `dst` has taken the message, and saves one copy.
        """

    def recv(self, src: int, out: Tensor | None = None) -> Tensor:
        """Wait for the next message of rank `src` and return it, written into `out` when that is given.

        Raises ValueError when the message has not the shape and dtype of `out`.
        """

    def flush(self) -> None:
        """Wait until everything sent has been taken; memory lent with ``copy=False`` is free again."""


def _plain(tensor: Tensor) -> Tensor:
    """`tensor` element after element in memory, lazy conjugation done; a copy only when that was not so."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _own_copy(tensor: Tensor) -> Tensor:
    plain = _plain(tensor)
    return plain.clone() if plain.data_ptr() == tensor.data_ptr() else plain


def _check_peer(mesh: Mesh, peer: int, verb: str) -> None:
    if not 0 <= peer < mesh.world_size or peer == mesh.rank:
        raise ValueError(f"rank {mesh.rank} of {mesh.world_size} cannot {verb} rank {peer}")


def _check_out(mesh: Mesh, src: int, shape: tuple[int, ...], dtype: torch.dtype, out: Tensor) -> None:
    if (shape, dtype) != (tuple(out.shape), out.dtype):
        raise ValueError(
            f"rank {mesh.rank} expected {tuple(out.shape)} {out.dtype} from rank {src}, which sent {shape} {dtype}"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Letter:
    """A message between threads; `taken` is set once the receiver has its own copy."""

    tensor: Tensor
    taken: threading.Event


_Queues = dict[tuple[int, int], "queue.SimpleQueue[_Letter]"]


class QueueMesh:
    """One rank's end of a mesh between threads of one process; made by `queue_mesh`."""

    def __init__(self, rank: int, world_size: int, queues: _Queues, timeout_s: float) -> None:
        self.rank = rank
        self.world_size = world_size
        self._queues = queues
        self._timeout_s = timeout_s
        self._lent: deque[tuple[int, threading.Event]] = deque()

    def send(self, dst: int, tensor: Tensor, *, copy: bool = True) -> None:
        """See `Mesh.send`."""
        _check_peer(self, dst, "send to")
        letter = _Letter(_own_copy(tensor) if copy else tensor.detach(), threading.Event())
        if not copy:
            self._lent.append((dst, letter.taken))
        self._queues[self.rank, dst].put(letter)

    def recv(self, src: int, out: Tensor | None = None) -> Tensor:
        """See `Mesh.recv`. A peer that stays silent for the mesh's time-out is a TimeoutError."""
        _check_peer(self, src, "receive from")
        try:
            letter = self._queues[src, self.rank].get(timeout=self._timeout_s)
        except queue.Empty:
            raise self._too_long(f"a message from rank {src}, which sent none") from None
        message = letter.tensor
        if out is None:  # always memory of our own: the sender may have lent us its tensor
            out = _own_copy(message)
        else:
            _check_out(self, src, tuple(message.shape), message.dtype, out)
            out.detach().copy_(message)
        letter.taken.set()
        return out

    def flush(self) -> None:
        """See `Mesh.flush`. A peer that takes nothing for the mesh's time-out is a TimeoutError."""
        while self._lent:
            dst, taken = self._lent.popleft()
            if not taken.wait(self._timeout_s):
                raise self._too_long(f"rank {dst} to take a message")

    def _too_long(self, what: str) -> TimeoutError:
        return TimeoutError(f"rank {self.rank} waited {self._timeout_s:g} s for {what}")


def queue_mesh(world_size: int, timeout_s: float = RECV_TIMEOUT_S) -> list[Mesh]:
    """The `world_size` ends of a mesh of queues, one for each thread that plays a rank."""
    if world_size < 1:
        raise ValueError(f"a mesh needs at least one rank, not {world_size}")
    ranks = range(world_size)
    queues: _Queues = {(src, dst): queue.SimpleQueue() for src in ranks for dst in ranks if src != dst}
    return [QueueMesh(rank, world_size, queues, timeout_s) for rank in ranks]


class GlooMesh:
    """This process's end of a mesh over a torch.distributed group (default: all ranks).

    A message is a header (dtype and shape, always `HEADER_BYTES` long, tag `HEADER_TAG`) and a payload (tag
    `payload_tag`; left out when the tensor is empty). gloo reads a sent tensor only when the peer asks for it, so each
    send keeps its memory and its Work until `flush`; this outlives the mesh object.
    """

    _in_flight: ClassVar[defaultdict[str, deque[dist.Work]]] = defaultdict(deque)

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = dist.group.WORLD if group is None else group
        if self._group is None:
            raise RuntimeError("a gloo mesh needs a process group: call torch.distributed.init_process_group first")
        self.rank = dist.get_rank(self._group)
        self.world_size = dist.get_world_size(self._group)
        self._works = self._in_flight[self._group.group_name]

    def send(self, dst: int, tensor: Tensor, *, copy: bool = True) -> None:
        """See `Mesh.send`."""
        _check_peer(self, dst, "send to")
        payload = _own_copy(tensor) if copy else _plain(tensor)
        self._post(_header(tensor), dst, HEADER_TAG)
        if payload.numel():
            self._post(payload, dst, payload_tag(payload))

    def recv(self, src: int, out: Tensor | None = None) -> Tensor:
        """See `Mesh.recv`. With `out` header and payload are asked for at once, which saves a round trip."""
        _check_peer(self, src, "receive from")
        header = torch.empty(HEADER_WORDS, dtype=torch.int64)
        header_work = self._ask(header, src, HEADER_TAG)
        if out is None:
            header_work.wait()
            payload = torch.empty(_shape(header), dtype=_dtype(header))
            if payload.numel():
                self._ask(payload, src, payload_tag(payload)).wait()
            return payload
        payload = out.detach() if out.is_contiguous() else torch.empty(out.shape, dtype=out.dtype)
        payload_work = self._ask(payload, src, payload_tag(payload)) if payload.numel() else None
        header_work.wait()
        _check_out(self, src, _shape(header), _dtype(header), out)
        if payload_work is not None:
            payload_work.wait()
        return out if out.is_contiguous() else out.copy_(payload)

    def flush(self) -> None:
        """See `Mesh.flush`."""
        while self._works:
            self._works.popleft().wait()

    def _post(self, tensor: Tensor, dst: int, tag: int) -> None:
        work = dist.isend(tensor, group=self._group, group_dst=dst, tag=tag)
        assert work is not None  # None is for ranks outside the group, which have no mesh
        self._works.append(work)

    def _ask(self, tensor: Tensor, src: int, tag: int) -> dist.Work:
        work = dist.irecv(tensor, group=self._group, group_src=src, tag=tag)
        assert work is not None
        return work


def payload_tag(payload: Tensor) -> int:
    """The tag of a payload: its size is in it, so that a receiver that expects another size never takes it."""
    return PAYLOAD_TAG + payload.nbytes % 2**30


def _header(tensor: Tensor) -> Tensor:
    if tensor.dim() > MAX_DIMS or tensor.dtype not in _DTYPE_CODES:
        raise ValueError(
            f"a mesh carries up to {MAX_DIMS} dimensions of a plain dtype, not {tensor.dim()} of {tensor.dtype}"
        )
    words = [_DTYPE_CODES[tensor.dtype], tensor.dim(), *tensor.shape]
    return torch.tensor(words + [0] * (HEADER_WORDS - len(words)), dtype=torch.int64)


def _shape(header: Tensor) -> tuple[int, ...]:
    return tuple(header[2 : 2 + int(header[1])].tolist())


def _dtype(header: Tensor) -> torch.dtype:
    return _DTYPES[int(header[0])]
