"""The fast reading of the schema says what the standard's own says."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports import build, reading
from reports.shape import UnknownKeyword, compiled
from tests.reports import sample

REPORT = build.build(sample.record())
FITS = compiled(reading.schema())
STANDARD = jsonschema.Draft202012Validator(reading.schema())
OTHER_VALUES = st.sampled_from([None, True, 0, -1, 1.5, 3.0, "", "holds", "two words", [], ["a", "a"], {}, {"en": ""}])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        found += places(item, (*path, name))
    return found


SMALL: dict[str, Any] = {
    **REPORT,
    "claims": REPORT["claims"][:2],
    "results": [r for r in REPORT["results"] if r["ranks"] or r["data"]][:3],
    "baseline": {"id": "1", "started": "", "command": "", "git": ""},
}
PLACES = places(SMALL)


def test_the_schema_itself_follows_the_standard() -> None:
    jsonschema.Draft202012Validator.check_schema(reading.schema())


def test_a_built_report_fits() -> None:
    assert FITS(REPORT)
    assert STANDARD.is_valid(REPORT)


@settings(max_examples=150, deadline=None)
@given(path=st.sampled_from(PLACES), value=OTHER_VALUES, way=st.sampled_from(["set", "drop", "add"]))
def test_any_damage_is_seen_as_the_standard_sees_it(path: tuple[Any, ...], value: Any, way: str) -> None:
    damaged = copy.deepcopy(SMALL)
    holder: Any = damaged
    for name in path[:-1]:
        holder = holder[name]
    if way == "set":
        holder[path[-1]] = value
    elif way == "drop":
        del holder[path[-1]]
    elif isinstance(holder, dict):
        holder["surprise"] = value
    else:
        holder.append(value)
    assert FITS(damaged) == STANDARD.is_valid(damaged)


def test_an_open_reading_takes_properties_that_nobody_named() -> None:
    newer = copy.deepcopy(SMALL)
    newer["surprise"] = newer["results"][0]["surprise"] = newer["results"][0]["hint"]["surprise"] = 1
    assert not FITS(newer)
    assert compiled(reading.schema(), is_open=True)(newer)


@pytest.mark.parametrize(
    "schema",
    [{"oneOf": []}, {"items": {"maximum": 3}}, {"$ref": "#/$defs/nobody"}, {"enum": [1, 2]}, {"not": {"oneOf": []}}],
)
def test_a_rule_that_is_not_known_is_never_passed_over(schema: Any) -> None:
    with pytest.raises(UnknownKeyword):
        compiled(schema)


@pytest.mark.parametrize("value", [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 1}, [], None])
def test_properties_that_come_in_pairs(value: Any) -> None:
    schema = {"dependentRequired": {"a": ["b"]}}
    assert compiled(schema)(value) == jsonschema.Draft202012Validator(schema).is_valid(value)
