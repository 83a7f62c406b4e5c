"""One entry of a schedule in whatever form it is written: a text, a tuple, an object with attributes.

    "F2.5"  "2F5"  ("F", 2, 5)  ("forward", 2, 5)  (cycle, 2, 5, "F")  Op(kind=..., stage=2, microbatch=5)
    "F2.5&B5.1"  (("F", 2, 5), ("B", 5, 1))  torch's _Action with sub_actions          a pair that overlaps
    None  "-"  "idle"  ("idle", ...)  SEND_F, UNSHARD ...                              nothing is computed

Of two numbers the first is the stage: that is the contract. A single one is the microbatch.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from impls.reference.pipeline.actions import Kind

_SPELLINGS: Mapping[Kind, str] = {
    Kind.FORWARD: "f fp fw fwd forward forwardpass forwardstep",
    Kind.BACKWARD: "b bp bw bwd backward backwardpass backwardstep fullbackward backwardfull fullb",
    Kind.INPUT: "i bi dx dgrad igrad dinput binput bwdinput backwardinput backwardinputs backwardforinput "
    "backwardforinputs inputbackward inputgrad inputgradient inputgradients gradinput backwarddgrad",
    Kind.WEIGHT: "w dw wgrad weight weights dweight bweight bwdweight backwardweight backwardweights backwardforweight "
    "backwardforweights weightbackward weightgrad weightgradient weightgradients gradweight backwardwgrad",
}
_KINDS = {text: kind for kind, texts in _SPELLINGS.items() for text in texts.split()}
_IDLE = ("", "idle", "bubble", "wait", "none", "noop", "nop")
_NO_COMPUTATION = ("send", "recv", "receive", "unshard", "reshard", "reducegrad")
_FIELDS: Mapping[str, str] = {  # what an attribute, or a key, may be called
    "kind": "kind phase type op computation_type action op_type pass_type",
    "stage": "stage stage_index stage_id stage_idx",
    "microbatch": "microbatch microbatch_index microbatch_id micro_batch micro_batch_id micro_batch_index mb mb_id "
    "mb_index mb_idx",
    "cycle": "cycle tick clock time",
    "rank": "rank device worker",
    "parts": "sub_actions",
}
_KIND_FIRST = re.compile(r"([A-Za-z_]+)[:(]?(\d+)(?:[.,:_/](\d+))?\)?")  # F2.5, forward(2,5), F5
_STAGE_FIRST = re.compile(r"(\d+)([A-Za-z_]+?)_?(\d+)")  # 2F5, as torch prints it
EXAMPLES = '"F2.5" or ("F", 2, 5) is the forward of stage 2 for microbatch 5; kinds are F, B, I and W'


class Unreadable(ValueError):
    """This is no entry of a schedule; the text says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What is computed; no stage where a rank has only one."""

    kind: Kind
    stage: int | None
    microbatch: int


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """An entry: nothing, an action, or a forward and a backward that overlap; when and on which rank, if it says so."""

    parts: tuple[Part, ...] = ()
    cycle: Any = None
    rank: int | None = None


def read_entry(value: Any) -> Said:
    """What one entry says. Raises `Unreadable`."""
    if value is None:
        return Said()
    if isinstance(value, str):
        return Said(_pair([_from_text(text) for text in value.split("&")]))
    if (found := _from_fields(value)) is not None:
        return found
    if isinstance(value, Sequence):
        return _from_items(list(value))
    raise Unreadable(f"{shown(value)} is no action: {EXAMPLES}")


def is_entry(value: Any) -> bool:
    """Whether `value` has the form of one entry, and not of a list of entries; a wrong entry is one too."""
    if value is None or _fields(value).keys() & {"kind", "parts"}:
        return True
    if isinstance(value, str):
        return len(value.split()) < 2
    if not isinstance(value, tuple | list):
        return False
    says_idle = isinstance(value, tuple) and [*map(_is_kind, value)].count(True) == 1 and value.count(None) > 0
    return any(map(_is_number, value)) or says_idle


def shown(value: Any) -> str:
    """A short text of anything, for messages."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:79]}…"


def number(value: Any, what: str) -> int:
    """A whole number of Python, numpy or torch."""
    try:
        return operator.index(value)
    except (TypeError, ValueError):
        raise Unreadable(f"the {what} {shown(value)} is no whole number") from None


def _from_text(text: str) -> tuple[Part, ...]:
    text = text.strip()
    if (found := _KIND_FIRST.fullmatch(text)) is not None:
        kind, first, second = found.groups()
        numbers = [first] if second is None else [first, second]
    elif (found := _STAGE_FIRST.fullmatch(text)) is not None:
        first, kind, second = found.groups()
        numbers = [first, second]
    elif (kind := text) and not re.search(r"\d", text):
        numbers = []
    else:
        raise Unreadable(f"{shown(text)} is no action: {EXAMPLES}")
    return _part(kind, [int(each) for each in numbers], text)


def _from_fields(value: Any) -> Said | None:
    """An object, a named tuple or a mapping that says what its numbers are; None if it does not."""
    given = _fields(value)
    cycle, rank = given.get("cycle"), given.get("rank")
    rank = None if rank is None else number(rank, "rank")
    if given.get("parts"):
        return Said(_pair([read_entry(part).parts for part in given["parts"]]), cycle, rank)
    if "kind" not in given:
        return None
    names = [name for name in ("stage", "microbatch") if given.get(name) is not None]
    parts = [_part(given["kind"], [number(given[name], name) for name in names], value)]
    if (beside := getattr(value, "beside", None)) is not None:
        parts.append(read_entry(beside).parts)
    return Said(_pair(parts), cycle, rank)


def _from_items(items: list[Any]) -> Said:
    kinds = [item for item in items if _is_kind(item)]
    if not kinds and not any(map(_is_number, items)):
        return Said(_pair([read_entry(item).parts for item in items]))
    if len(kinds) != 1:
        raise Unreadable(f"{shown(tuple(items))} has {len(kinds)} kinds of action: {EXAMPLES}")
    rest = [item for item in items if not _is_kind(item) and item is not None]
    if _plain(kinds[0]) in _IDLE or _plain(kinds[0]).startswith(_NO_COMPUTATION):
        return Said()
    cycle = rest.pop(0) if len(rest) == 3 and _is_kind(items[-1]) else None
    numbers = [number(each, "stage or microbatch") for each in rest]
    return Said(_part(kinds[0], numbers, tuple(items)), cycle)


def _part(kind: Any, numbers: Sequence[int], source: Any) -> tuple[Part, ...]:
    """The action; nothing for idling and for communication."""
    plain = _plain(kind)
    if plain in _IDLE or plain.startswith(_NO_COMPUTATION):
        return ()
    if plain not in _KINDS or not 1 <= len(numbers) <= 2:
        raise Unreadable(f"{shown(source)} is no action: {EXAMPLES}")
    *stage, microbatch = numbers
    return (Part(_KINDS[plain], stage[0] if stage else None, microbatch),)


def _pair(parts: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
    """One action, or a forward and beside it a backward."""
    found = sorted((part for each in parts for part in each), key=lambda part: part.kind is not Kind.FORWARD)
    kinds = [part.kind for part in found]
    if len(found) > 1 and (len(found) > 2 or kinds[0] is not Kind.FORWARD or kinds[1] in (Kind.FORWARD, Kind.WEIGHT)):
        raise Unreadable(f"{'&'.join(kinds)} at once: what overlaps in one action is one forward and one backward")
    return tuple(found)


def _fields(value: Any) -> dict[str, Any]:
    """The attributes or keys of `value` that are known here."""
    if isinstance(value, str | bytes) or (isinstance(value, list | tuple) and not hasattr(value, "_fields")):
        return {}
    found = {}
    for name, spellings in _FIELDS.items():
        for spelling in spellings.split():
            item = value.get(spelling) if isinstance(value, Mapping) else getattr(value, spelling, None)
            if item is not None and (name != "kind" or _is_kind(item)):
                found[name] = item
                break
    return found


def _is_kind(item: Any) -> bool:
    return isinstance(item, str | Enum) and not (isinstance(item, str) and bool(re.search(r"\d", item)))


def _is_number(item: Any) -> bool:
    return not isinstance(item, str | Enum) and hasattr(item, "__index__")


def _plain(kind: Any) -> str:
    """A kind in small letters only: of an enum its value, or its name where the value is not a kind."""
    texts = [kind.value, kind.name] if isinstance(kind, Enum) else [kind]
    plain = [re.sub(r"[^a-z]", "", text.lower()) for text in texts if isinstance(text, str)]
    return next((text for text in plain if text in _KINDS), plain[-1])
