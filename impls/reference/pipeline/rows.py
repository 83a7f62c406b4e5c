"""One rank's list of actions while it is being written: an array of slots (`Numbering`), put together in phases.

>>> alternate(np.array([4, 5]), np.array([0, 1])).tolist()
[4, 0, 5, 1]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = NDArray[Any]  # of slots; or of PAIRS, as soon as one action has another beside it
PAIRS = np.dtype([("slot", np.int64), ("beside", np.int64)])
NONE = -1  # no action: the padding behind a rank's last one, or nothing beside it


def join(*rows: Row) -> Row:
    """One after another."""
    return np.concatenate(_alike(rows))


def alternate(*rows: Row) -> Row:
    """The first of each, then the second of each, and so on; all are equally long."""
    return np.stack(_alike(rows), axis=1).ravel()


def pair(forward: Row, backward: Row) -> Row:
    """Each action of `forward` with one of `backward` beside it, overlapped."""
    paired = np.empty(len(forward), PAIRS)
    paired["slot"], paired["beside"] = forward, backward
    return paired


def split(row: Row) -> tuple[Row, Row | None]:
    """The slots, and those beside them if the row has pairs."""
    return (row["slot"], row["beside"]) if row.dtype == PAIRS else (row, None)


def _alike(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    if all(row.dtype != PAIRS for row in rows):
        return rows
    return tuple(row if row.dtype == PAIRS else pair(row, np.full(len(row), NONE)) for row in rows)
