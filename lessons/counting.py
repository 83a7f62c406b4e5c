"""One end of a mesh that counts what is sent through it, in front of the end that does the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor


class CountingEnd:
    """Counts bytes, and knows for whom it waits.

    A mesh of nothing but ``send`` and ``recv`` gets ``push``, ``pull`` and ``flush`` made of these.
    """

    def __init__(self, end: Any, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size
        self.sent_bytes = 0
        self.num_calls = 0
        self.waits_for: int | None = None
        self._end = end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._end, name)

    def send(self, *args: Any, **kwargs: Any) -> None:
        """Count, and send."""
        self._count(args, kwargs)
        self._end.send(*args, **kwargs)

    def recv(self, src: int) -> Tensor:
        """Wait for the next message of `src`."""
        return self._waiting(src, lambda: self._end.recv(src))

    def push(self, dst: int, tensor: Tensor) -> None:
        """Count, and push."""
        self._count((tensor,), {})
        getattr(self._end, "push", self._end.send)(dst, tensor)

    def pull(self, src: int, out: Tensor) -> Tensor:
        """Wait for the next message of `src`, into `out`."""
        if hasattr(self._end, "pull"):
            return self._waiting(src, lambda: self._end.pull(src, out))
        return out.copy_(self.recv(src).view(out.shape))

    def flush(self) -> None:
        """Wait until all is taken, where that can take time."""
        if hasattr(self._end, "flush"):
            self._end.flush()

    def _count(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.sent_bytes += sum(given.nbytes for given in (*args, *kwargs.values()) if isinstance(given, Tensor))
        self.num_calls += 1

    def _waiting(self, src: int, take: Callable[[], Tensor]) -> Tensor:
        self.waits_for = src
        taken = take()
        self.waits_for = None
        self.num_calls += 1
        return taken
