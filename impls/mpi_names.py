"""The names that mpi4py has for messages between ranks, on top of a mesh's ``send`` and ``recv``.

Buffers are tensors or numpy arrays, alone or as mpi4py's ``[buffer, count, type]``. Messages between two ranks keep
their order, so tags say nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class MpiNames:
    """Mixed into a mesh; ``Send`` is buffered as its ``send`` is."""

    rank: int
    world_size: int

    def send(self, dst: int, tensor: Tensor) -> None:
        """See `Mesh.send`."""
        raise NotImplementedError

    def recv(self, src: int) -> Tensor:
        """See `Mesh.recv`."""
        raise NotImplementedError

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
        self.send(dest, _tensor(buf))

    def Recv(self, buf: Any, source: int, tag: int = 0, status: Any = None) -> None:  # noqa: N802
        """Receive from rank `source` into a buffer. ValueError where the message has another size."""
        message, place = self.recv(source), _tensor(buf)
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
    """What `Isend` and `Irecv` give."""

    def __init__(self, finish: Callable[[], None]) -> None:
        self._finish: Callable[[], None] | None = finish

    def Wait(self, status: Any = None) -> bool:  # noqa: N802
        """Finish it, once."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        return True

    wait = Wait


def _tensor(buffer: Any) -> Tensor:
    """The memory of a buffer as a tensor."""
    if isinstance(buffer, list | tuple) and buffer:
        buffer = buffer[0]
    return buffer.detach() if isinstance(buffer, Tensor) else torch.from_numpy(buffer)
