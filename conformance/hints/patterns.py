"""What is regular about a wrong tensor: one number or word for how it differs from the right one.

A pattern is told only where nothing else fits and chance cannot have made it: it needs several different numbers, and
two patterns at once are none. What it means depends on the claim and on the other cases: see ``signatures``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LEAST_DIFFERENT = 3  # distinct numbers among the expected ones, below which anything can look regular
_NEAR = 1e-4  # relative: of a factor in float32
_NARROWER = ("bfloat16", "float16", "float32")

Pattern = dict[str, Any]


def pattern(observed: torch.Tensor, expected: torch.Tensor) -> Pattern:
    """The regularity by name, with its number or word; empty where the tensor is too small or plain to tell.

    ``irregular``: none fits, or more than one. ``factor``: all elements are this many times what they should be.
    ``tail``: only elements from this one on are wrong, of ``of``. ``rounded``: as if stored in this dtype. ``zeros``:
    nothing else. ``shifted``: the right numbers, each this many places on, of ``of``. ``row``: the same row of
    numbers is added everywhere. ``finite``: no NaN or infinity is where some should be.
    """
    import torch

    if observed.shape != expected.shape or observed.numel() < LEAST_DIFFERENT or observed.is_complex():
        return {}
    got, wanted = observed.detach().to(torch.float64), expected.detach().to(torch.float64)
    if not bool(wanted.isfinite().all()):
        return {"finite": True} if bool(got.isfinite().all()) else {}
    if not bool(got.isfinite().all()) or _num_different(wanted) < LEAST_DIFFERENT:
        return {}
    found = [look(got, wanted) for look in (_factor, _rounded, _zeros, _shifted, _row)]
    named = [entry for entry in found if entry]
    named = named or [entry for entry in [_tail(got, wanted)] if entry]
    return named[0] if len(named) == 1 else {"irregular": True}


def _factor(got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    where = wanted.abs() > 1e-6 * float(wanted.abs().max())
    ratios = got[where] / wanted[where]
    factor = float(ratios.median())
    is_one = bool(((ratios - factor).abs() <= _NEAR * abs(factor)).all()) and not bool(got[~where].abs().gt(1e-3).any())
    return {"factor": round(factor, 6)} if is_one and factor != 0 and abs(factor - 1) > 0.01 else {}


def _rounded(got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    import torch

    for name in _NARROWER:
        as_if = wanted.to(getattr(torch, name)).to(torch.float64)
        if bool((as_if == got).all()) and int((as_if != wanted).sum()) >= LEAST_DIFFERENT:
            return {"rounded": name}
    return {}


def _zeros(got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    return {} if bool(got.any()) else {"zeros": True}


def _shifted(got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    flat, target = got.flatten(), wanted.flatten()
    if bool((flat == target).all()) or not bool((flat.sort().values == target.sort().values).all()):
        return {}
    fitting = [places for places in range(1, len(flat)) if bool((flat == target.roll(places)).all())]
    return {"shifted": fitting[0], "of": len(flat)} if len(fitting) == 1 else {}


def _row(got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    if got.dim() < 2 or got.shape[-1] < 2:
        return {}
    rows = (got - wanted).reshape(-1, got.shape[-1])
    scale = max(1e-12, float(rows.abs().max()))
    is_same = len(rows) > 1 and bool(((rows - rows[0]).abs() <= _NEAR * scale).all())
    return {"row": True} if is_same and _num_different(rows[0]) > 1 else {}


def _tail(got: torch.Tensor, wanted: torch.Tensor) -> Pattern:
    wrong = (got != wanted).flatten()
    start = int(wrong.nonzero()[0]) if bool(wrong.any()) else 0
    return {"tail": start, "of": wrong.numel()} if start and bool(wrong[start:].all()) else {}


def _num_different(values: torch.Tensor) -> int:
    return len(set(values.flatten().tolist()))
