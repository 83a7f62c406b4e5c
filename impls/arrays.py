"""Hand-ins over numpy: a collective whose module knows no torch is handed arrays, and its arrays are taken as tensors.

Over mpi4py everything is numpy's: ``.copy()``, ``np.array_split``, ``np.empty_like``. Memory is shared both ways, so
that a function may work in place.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from impls.handover import NotProvided


def knows_arrays_only(target: Any) -> bool:
    """Whether the module in which `target` is written has imported numpy and not torch."""
    names = getattr(inspect.unwrap(target), "__globals__", {})
    known = {value.__name__.partition(".")[0] for value in names.values() if isinstance(value, ModuleType)}
    return "numpy" in known and "torch" not in known


def as_array(value: Any) -> Any:
    """A tensor as an array of the same memory, lists of them likewise. NotProvided for a dtype that numpy lacks."""
    if isinstance(value, list | tuple):
        return type(value)(map(as_array, value))
    if not isinstance(value, Tensor):
        return value
    try:
        return value.detach().numpy()
    except TypeError:
        raise NotProvided(f"it is written for numpy, which has no {value.dtype}") from None


def as_tensor(value: Any) -> Any:
    """An array as a tensor of the same memory, lists of them likewise; anything else as it is."""
    if isinstance(value, list | tuple):
        return [as_tensor(part) for part in value]
    if isinstance(value, np.generic):  # numpy gives a scalar where an array of no dimension was meant
        value = np.asarray(value)
    return (
        torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape)) if isinstance(value, np.ndarray) else value
    )
