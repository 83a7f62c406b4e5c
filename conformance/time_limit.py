"""The time that all checks of one implementation may take in one process; its clock starts with the first of them.

What is not answered by then is ``lost``: it was not seen to be wrong, and it earns nothing.
"""

from __future__ import annotations

import dataclasses
import math
import time


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
        """Whether nothing is left; starts the clock."""
        return self.left_s() <= 0

    def told(self, when: str) -> str:
        """The sentence for a check that found no time, or no end in it."""
        return f"the time limit of this implementation, {self.limit_s:g} s, was used up {when} this check"
