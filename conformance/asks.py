"""Whether a function of an implementation asks for a parameter at all; used in rank programs, so no pytest here."""

from __future__ import annotations

import inspect

from impls.contract import SYNONYMS
from impls.loading import Implementation


def asks_for(impl: Implementation | None, name: str, parameter: str) -> bool:
    """Whether the signature of ``name`` has ``parameter``, in any spelling that is understood."""
    assert impl is not None
    try:
        found = inspect.signature(impl.get(name)).parameters
    except (TypeError, ValueError):
        return False
    return any(spelling in found for spelling in (parameter, *SYNONYMS.get(parameter, ())))
