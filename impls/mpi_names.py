"""The names that mpi4py has for messages between ranks, on top of a mesh's messages.

In capitals they take buffers: tensors or numpy arrays, alone or as mpi4py's ``[buffer, count, type]``. In lower case
they take any object. Messages between two ranks keep their order, so tags say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, overload

import torch
from torch import Tensor

from impls.handover import NotProvided
from impls.parcels import packed, unpacked

ANY_SOURCE = -1  # mpi4py's number for it


class MpiNames:
    """Mixed into a mesh; every send is buffered."""

    rank: int
    world_size: int

    def post(self, dst: int, tensor: Tensor, mark: int) -> None:
        """Send a tensor, and with it what kind of thing it stands for."""
        raise NotImplementedError

    def take(self, src: int) -> tuple[Tensor, int]:
        """The next message of rank `src`, with its mark."""
        raise NotImplementedError

    def take_any(self) -> tuple[Tensor, int]:
        """The next message of any rank, with its mark."""
        raise NotProvided("a message of any source is asked for: here it has to be said whose it is")

    # -- the two that a mesh has as well: ``mesh.send(dst, tensor)`` is ``comm.send(tensor, dest=dst)`` ----------------

    def send(
        self, dst: Any = None, tensor: Any = None, tag: int = 0, *, obj: Any = None, dest: int | None = None
    ) -> None:
        """``send(dst, tensor)`` of `Mesh`, or mpi4py's ``send(obj, dest, tag)``: one of the two is a rank's number."""
        to: int
        if isinstance(tensor, Tensor) and dest is None:
            self.post(dst, tensor, 0)
            return
        if dest is not None:
            to, value = dest, dst if obj is None else obj
        elif isinstance(tensor, Integral):
            to, value = int(tensor), dst
        else:
            to, value = dst, tensor
        self.post(to, *packed(value))

    @overload
    def recv(self, src: int) -> Tensor: ...

    @overload
    def recv(self, src: Any = None, source: int | None = None, tag: int = 0, status: Any = None) -> Any: ...

    def recv(self, src: Any = None, source: int | None = None, tag: int = 0, status: Any = None) -> Any:
        """``recv(src)`` of `Mesh`, or mpi4py's ``recv(buf, source, tag, status)``: what was sent, as it was."""
        if isinstance(src, Integral | Tensor):  # no rank has the number -1, which is mpi4py's for any of them
            return unpacked(*self.take(int(src)))
        if not isinstance(source, Integral) or source == ANY_SOURCE:  # nothing, or a stand-in for MPI.ANY_SOURCE
            return self.recv_any()
        return unpacked(*self.take(int(source)))

    def recv_any(self) -> Any:
        """What comes first, whoever sent it."""
        return unpacked(*self.take_any())

    # -- any object --------------------------------------------------------------------------------------------------

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int | None = None,
        recvtag: int = 0,
        status: Any = None,
    ) -> Any:
        """Send one object, and receive another."""
        self.send(sendobj, dest=dest)
        return self.recv(source=source)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Send, and give a request that is done."""
        self.send(obj, dest=dest)
        return Request(lambda: None)

    def irecv(self, buf: Any = None, source: int | None = None, tag: int = 0) -> Request:
        """Give a request that receives when it is waited for; its ``wait`` gives the object."""
        return Request(lambda: self.recv(source=source))

    def bcast(self, obj: Any = None, root: int = 0) -> Any:
        """Rank `root`'s object on every rank."""
        if self.rank != root:
            return self.recv(source=root)
        for rank in self._others():
            self.send(obj, dest=rank)
        return obj

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """On rank `root` the objects of all ranks, None elsewhere."""
        if self.rank != root:
            self.send(sendobj, dest=root)
            return None
        return [sendobj if rank == root else self.recv(source=rank) for rank in range(self.world_size)]

    def scatter(self, sendobj: Sequence[Any] | None = None, root: int = 0) -> Any:
        """Each rank's own of the objects that rank `root` has for them."""
        if self.rank != root:
            return self.recv(source=root)
        assert sendobj is not None
        for rank in self._others():
            self.send(sendobj[rank], dest=rank)
        return sendobj[root]

    def allgather(self, sendobj: Any) -> list[Any]:
        """The objects of all ranks, on every rank."""
        for rank in self._others():
            self.send(sendobj, dest=rank)
        return [sendobj if rank == self.rank else self.recv(source=rank) for rank in range(self.world_size)]

    def barrier(self) -> None:
        """Wait until all ranks have come here."""
        self.allgather(0)

    Barrier = barrier

    def _others(self) -> list[int]:
        return [rank for rank in range(self.world_size) if rank != self.rank]

    # -- buffers -----------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self.world_size

    def Get_rank(self) -> int:  # noqa: N802  (mpi4py's name, like those below)
        """This rank."""
        return self.rank

    def Get_size(self) -> int:  # noqa: N802
        """The number of ranks."""
        return self.world_size

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:  # noqa: N802
        """Send a buffer to rank `dest`."""
        self.post(dest, _tensor(buf), 0)

    def Recv(self, buf: Any, source: int, tag: int = 0, status: Any = None) -> None:  # noqa: N802
        """Receive from rank `source` into a buffer. ValueError where the message has another size."""
        (message, _), place = self.take(source), _tensor(buf)
        if message.numel() != place.numel():
            raise ValueError(f"rank {source} sent {message.numel()} elements, and the buffer takes {place.numel()}")
        place.copy_(message.view(place.shape))

    def Sendrecv(  # noqa: N802
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = 0,
        recvtag: int = 0,
        status: Any = None,
    ) -> None:
        """Send one buffer and receive into the other."""
        self.Send(sendbuf, dest)
        self.Recv(recvbuf, source)

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:  # noqa: N802
        """Send, and give a request that is done."""
        self.Send(buf, dest)
        return Request(lambda: None)

    def Irecv(self, buf: Any, source: int, tag: int = 0) -> Request:  # noqa: N802
        """Give a request that receives when it is waited for."""
        return Request(lambda: self.Recv(buf, source))


class Request:
    """What the sends and receives give that do not wait."""

    def __init__(self, finish: Callable[[], Any]) -> None:
        self._finish: Callable[[], Any] | None = finish
        self._result: Any = None

    def wait(self, status: Any = None) -> Any:
        """Finish it, once; the object that arrived, if any."""
        finish, self._finish = self._finish, None
        if finish is not None:
            self._result = finish()
        return self._result

    def Wait(self, status: Any = None) -> bool:  # noqa: N802
        """Finish it, once."""
        self.wait()
        return True


def _tensor(buffer: Any) -> Tensor:
    """The memory of a buffer as a tensor."""
    if isinstance(buffer, list | tuple) and buffer:
        buffer = buffer[0]
    return buffer.detach() if isinstance(buffer, Tensor) else torch.from_numpy(buffer)
