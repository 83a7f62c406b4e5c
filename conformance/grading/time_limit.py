"""The time that all checks of one implementation may take in one process; its clock starts when the first one runs.

What is not answered by then is ``lost``: it was not seen to be wrong, and it earns nothing.
"""

from __future__ import annotations

import dataclasses
import math
import time

USED_UP = "the time limit of this implementation"


@dataclasses.dataclass(slots=True)
class TimeLimit:
    """A number of seconds, infinite where none was asked for."""

    limit_s: float = math.inf
    _began: float | None = None

    def left_s(self) -> float:
        """What is left; starts the clock."""
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        return self._began + self.limit_s - now

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.limit_s <= 0 if self._began is None else self.left_s() <= 0

    def told(self, when: str) -> str:
        """The sentence for a check that found no time, or no end in it."""
        return f"{USED_UP}, {self.limit_s:g} s, was used up {when} this check"
