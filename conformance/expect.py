"""Comparisons that explain themselves: where the first difference is, both values there, and which ranks differ.

Each function gives a Comparison and raises nothing; the Judge turns it into evidence or a violation.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from conformance.hints import patterns

if TYPE_CHECKING:
    import torch

MAX_SHOWN = 200  # characters of a value in a message


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Whether observed matches expected, both as short texts, and a sentence for a mismatch."""

    matches: bool
    expected: str
    observed: str
    message: str = ""
    error: float | None = None  # largest absolute difference, where that means something
    pattern: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what is regular about a mismatch


def same(observed: object, expected: object) -> Comparison:
    """Equal, tensors bit for bit; lists, tuples and mappings item by item, naming the first item that differs."""
    if _is_tensor(observed) and _is_tensor(expected):
        return same_bits(observed, expected)  # type: ignore[arg-type]  # narrowed by _is_tensor
    for kind in (list, tuple):
        if isinstance(observed, kind) and isinstance(expected, kind):
            return _same_items(dict(enumerate(observed)), dict(enumerate(expected)), observed, expected)
    if isinstance(observed, Mapping) and isinstance(expected, Mapping):
        return _same_items(observed, expected, observed, expected)
    matches = not (_is_tensor(observed) or _is_tensor(expected)) and bool(observed == expected)
    return Comparison(matches=matches, expected=show(expected), observed=show(observed))


def same_bits(observed: torch.Tensor, expected: torch.Tensor, what: str = "") -> Comparison:
    """Same dtype, shape and bits; -0.0 differs from 0.0, a NaN equals the same NaN."""
    prefix = f"{what}: " if what else ""
    if observed.dtype != expected.dtype or observed.shape != expected.shape:
        return Comparison(
            matches=False,
            expected=_kind(expected),
            observed=_kind(observed),
            message=f"{prefix}the result has another dtype or shape",
        )
    differs = _differing_bits(observed, expected)
    count = int(differs.sum())
    if count == 0:
        return Comparison(matches=True, expected=show(expected), observed=show(observed), error=0.0)
    where, got, wanted = _at(tuple(differs.nonzero()[0].tolist()), observed, expected)
    return Comparison(
        matches=False,
        expected=f"{wanted} at {where}",
        observed=f"{got} at {where}",
        message=f"{prefix}{count} of {observed.numel()} elements differ, the first at index {where}",
        error=_largest_error(observed, expected),
        pattern=patterns.pattern(observed, expected),
    )


def within(observed: torch.Tensor, expected: torch.Tensor, bound: float, what: str = "") -> Comparison:
    """Absolute difference of every element at most ``bound``; the largest difference is shown beside the bound."""
    prefix = f"{what}: " if what else ""
    if observed.shape != expected.shape:
        return Comparison(
            matches=False,
            expected=_kind(expected),
            observed=_kind(observed),
            message=f"{prefix}the result has another shape",
        )
    wide, target = _wide(observed), _wide(expected)
    excess = ~((wide - target).abs() <= bound)
    error = _largest_error(observed, expected)
    if not bool(excess.any()):
        shown = f"largest difference {error:.3g}"
        return Comparison(matches=True, expected=f"at most {bound:.3g}", observed=shown, error=error)
    where, got, wanted = _at(_worst(wide, target), observed, expected)
    return Comparison(
        matches=False,
        expected=f"{wanted} at {where}, within {bound:.3g}",
        observed=f"{got} at {where}, off by {error:.3g}",
        message=f"{prefix}{int(excess.sum())} of {observed.numel()} elements are outside the bound, the worst at index "
        f"{where}",
        error=error,
        pattern=patterns.pattern(observed, expected),
    )


def ranks_agree(values: Sequence[torch.Tensor], what: str = "the result") -> Comparison:
    """Every rank holds the same bits as rank 0; the ranks that do not are named."""
    found = [(rank, same_bits(value, values[0])) for rank, value in enumerate(values)]
    odd = [(rank, comparison) for rank, comparison in found if not comparison.matches]
    if not odd:
        return Comparison(
            matches=True, expected="the same bits on every rank", observed="the same bits on every rank", error=0.0
        )
    rank, comparison = odd[0]
    names = ", ".join(str(other) for other, _ in odd)
    return Comparison(  # without a pattern: which of two ranks is right is not known here
        matches=False,
        expected=f"rank 0 has {comparison.expected}",
        observed=f"rank {rank} has {comparison.observed}",
        message=f"{what} differs between rank 0 and rank(s) {names}: {comparison.message}",
        error=comparison.error,
    )


def at_most(observed: float, bound: float) -> Comparison:
    """``observed <= bound``; NaN is above every bound."""
    return Comparison(
        matches=bool(observed <= bound), expected=f"at most {show(bound)}", observed=show(observed), error=observed
    )


def show(value: object) -> str:
    """A short text of any value: strings as they are, tensors with dtype, shape and first elements."""
    if isinstance(value, str):
        return value
    if _is_tensor(value):
        tensor: Any = value
        head = ", ".join(str(item) for item in tensor.detach().reshape(-1)[:6].tolist())
        dots = ", …" if tensor.numel() > 6 else ""
        return f"{_kind(tensor)} [{head}{dots}]"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        opening, closing = ("[", "]") if isinstance(value, list) else ("(", ")")
        return _cut(opening + ", ".join(show(item) for item in value) + closing)
    return _cut(str(value))


def ends_in_a_figure(text: str) -> bool:
    """Whether a unit can follow a text: ``12,000``, ``at most 3e-05``, ``[1, 2]``, but not ``12,000 on each rank``."""
    return bool(re.search(r"[\d\])%]$", text))


def with_unit(text: str, unit: str) -> str:
    """A sentence with the unit behind its figure, the one after ``=`` or else the first; as it is where it has it."""
    if not unit or re.search(rf"\b{re.escape(unit)}\b", text):
        return text
    figure = r"\d[\d,.]*(?:e[+-]?\d+)?(?![^\s,;])(?<![,.])"
    for pattern in (rf"(?<== )({figure})", rf"(?<!\S)({figure})"):
        if re.search(pattern, text):
            return re.sub(pattern, rf"\1 {unit}", text, count=1)
    return text


def _same_items(
    observed: Mapping[Any, object], expected: Mapping[Any, object], whole: object, wanted: object
) -> Comparison:
    if list(observed) != list(expected) and set(observed) != set(expected):
        return Comparison(
            matches=False,
            expected=show(wanted),
            observed=show(whole),
            message=f"{len(observed)} items instead of {len(expected)}" if len(observed) != len(expected) else "",
        )
    for key, value in observed.items():
        comparison = same(value, expected[key])
        if not comparison.matches:
            place = f"item {key}" if not comparison.message else f"item {key}, {comparison.message}"
            return dataclasses.replace(comparison, message=place)
    return Comparison(matches=True, expected=show(wanted), observed=show(whole))


def _is_tensor(value: object) -> bool:
    torch_module = sys.modules.get("torch")  # a tensor cannot exist before torch does
    return torch_module is not None and isinstance(value, torch_module.Tensor)


def _differing_bits(observed: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    import torch

    if observed.numel() == 0:
        return torch.zeros(observed.shape, dtype=torch.bool)
    pair = [value.detach().contiguous().reshape(-1).view(torch.uint8) for value in (observed, expected)]
    per_byte = (pair[0] != pair[1]).reshape(observed.numel(), -1)
    return per_byte.any(dim=1).reshape(observed.shape)


def _worst(wide: torch.Tensor, target: torch.Tensor) -> tuple[int, ...]:
    """Index of the largest difference; a NaN is larger than any."""
    import torch

    errors = (wide - target).abs().nan_to_num(nan=math.inf)
    return tuple(int(i) for i in torch.unravel_index(errors.argmax(), errors.shape))


def _at(position: tuple[int, ...], observed: torch.Tensor, expected: torch.Tensor) -> tuple[str, str, str]:
    """The index as a text, and the two values there."""
    where = str(position[0]) if len(position) == 1 else str(position)
    return where, repr(observed[position].item()), repr(expected[position].item())


def _wide(value: torch.Tensor) -> torch.Tensor:
    import torch

    return value.detach().to(torch.complex128 if value.is_complex() else torch.float64)


def _largest_error(observed: torch.Tensor, expected: torch.Tensor) -> float:
    if observed.numel() == 0:
        return 0.0
    error = float((_wide(observed) - _wide(expected)).abs().max())
    return math.inf if math.isnan(error) else error


def _kind(value: torch.Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
