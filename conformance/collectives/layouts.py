"""The same values in different places of memory, with a margin around them that nobody may touch.

Needed on both sides: a rank hands the view to the implementation, the judge compares the whole memory afterwards.
"""

from __future__ import annotations

import torch
from torch import Tensor

MARGIN = 1  # what lies between and around the elements; a number of every dtype


def lay_out(values: Tensor, layout: str) -> tuple[Tensor, Tensor]:
    """New memory that holds ``values`` in a layout: the whole of it, and the view that has the values' shape."""
    return _LAYOUTS[layout](values)


def _contiguous(values: Tensor) -> tuple[Tensor, Tensor]:
    whole = values.clone(memory_format=torch.contiguous_format)
    return whole, whole


def _strided(values: Tensor) -> tuple[Tensor, Tensor]:
    """Every second element of each row."""
    if values.dim() == 0:
        return _offset(values)
    whole = values.new_full((*values.shape[:-1], 2 * values.shape[-1]), MARGIN)
    view = whole[..., ::2]
    view.copy_(values)
    return whole, view


def _transposed(values: Tensor) -> tuple[Tensor, Tensor]:
    """Dense, dimensions in the opposite order, as the gradient of a transposed weight has it."""
    backwards = tuple(reversed(range(values.dim())))
    whole = values.permute(backwards).clone(memory_format=torch.contiguous_format)
    return whole, whole.permute(backwards)


def _offset(values: Tensor) -> tuple[Tensor, Tensor]:
    """Contiguous, in the middle of a larger buffer, as parameters lie in a flat one."""
    whole = values.new_full((values.numel() + 4,), MARGIN)
    view = whole[2 : 2 + values.numel()].view(values.shape)
    view.copy_(values)
    return whole, view


_LAYOUTS = {"contiguous": _contiguous, "strided": _strided, "transposed": _transposed, "offset": _offset}
