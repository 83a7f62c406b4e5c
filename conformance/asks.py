"""Whether a function of an implementation asks for a parameter at all; used in rank programs, so no pytest here."""

from __future__ import annotations

from impls.handover import takes
from impls.loading import Implementation


def asks_for(impl: Implementation | None, name: str, parameter: str) -> bool:
    """Whether the signature of ``name`` has ``parameter``, in any spelling that is understood."""
    assert impl is not None
    return takes(impl.get(name), parameter)
