"""Pipeline schedules as data: for each rank the list of what it does, in order. No processes are needed.

An action is a tuple ``("F", stage, microbatch)`` or a text ``"F2.5"`` (``"F5"`` where a rank has one stage only); F is
a forward, B a backward, or I and W its halves (gradient of the input, gradients of the weights). ``num_stages`` is the
number of ranks. Raise ValueError for numbers that a schedule does not allow.
"""

from __future__ import annotations

from typing import Any

Lists = list[list[Any]]  # of actions, one list for each rank


def gpipe(num_stages: int, num_microbatches: int) -> Lists:
    """All forwards, then all backwards."""
    raise NotImplementedError


def one_f_one_b(num_stages: int, num_microbatches: int) -> Lists:
    """1F1B: as few forwards ahead as it takes, then forward and backward in turn."""
    raise NotImplementedError


def interleaved_1f1b(num_stages: int, num_microbatches: int, num_chunks: int) -> Lists:
    """1F1B with `num_chunks` stages on each rank: rank, N + rank, 2N + rank and so on."""
    raise NotImplementedError


def zb_h1(num_stages: int, num_microbatches: int) -> Lists:
    """Zero bubble with the memory of 1F1B: rank r puts off r weight gradients."""
    raise NotImplementedError


def zb_h2(num_stages: int, num_microbatches: int) -> Lists:
    """Zero bubble with twice that memory, and no idle time between a rank's first action and its last."""
    raise NotImplementedError


def zbv(num_stages: int, num_microbatches: int) -> Lists:
    """Zero bubble with two stages on each rank, in a V: r and 2N-1-r."""
    raise NotImplementedError


def dualpipe(num_stages: int, num_microbatches: int) -> Lists:
    """Microbatches from both ends; rank r has stages r and N-1-r. A pair that overlaps is ``"F2.5&B5.1"``."""
    raise NotImplementedError


def dualpipev(num_stages: int, num_microbatches: int) -> Lists:
    """DualPipe's half: two stages on each rank, in a V: r and 2N-1-r."""
    raise NotImplementedError
