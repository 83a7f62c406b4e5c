"""What travels over a mesh beside tensors: arrays and other Python objects, each as a tensor with a mark of its kind.

As over mpi4py, an object arrives as what it was sent as. Both ends are one implementation's own processes, so its
objects may be pickled; what crosses to the suite never is.
"""

from __future__ import annotations

import pickle
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor


class Mark(IntEnum):
    """The kind of a message."""

    TENSOR = 0
    ARRAY = 1
    OBJECT = 2


def packed(value: Any) -> tuple[Tensor, Mark]:
    """The tensor that stands for a value, and the mark that says how. An array shares its memory."""
    if isinstance(value, Tensor):
        return value, Mark.TENSOR
    if isinstance(value, np.ndarray):
        try:
            return torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape)), Mark.ARRAY
        except TypeError:
            pass  # of a dtype that torch lacks: an object like any other
    return torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8), Mark.OBJECT


def unpacked(payload: Tensor, mark: int) -> Any:
    """The value that was packed; an array shares the payload's memory."""
    if mark == Mark.OBJECT:
        return pickle.loads(payload.numpy().tobytes())
    return payload.numpy() if mark == Mark.ARRAY else payload
