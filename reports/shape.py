"""A JSON Schema as one function that says yes or no, fast enough for 20,000 results and for two hundred reports.

`jsonschema` tells where a value breaks a schema, and takes a millisecond for each result; this only tells whether. It
knows the keywords that ``report.schema.json`` uses and refuses any other, so that no rule is passed over in silence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Fits = Callable[[Any], bool]
Schema = Mapping[str, Any]

_SILENT = frozenset({"$schema", "$id", "$defs", "title", "description"})
_TYPES: dict[str, Fits] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
}


class UnknownKeyword(ValueError):
    """The schema says something that this module does not know."""


def compiled(schema: Schema, *, is_open: bool = False) -> Fits:
    """Return the function that tells whether a JSON value follows ``schema`` (draft 2020-12).

    With ``is_open`` objects may have properties that the schema does not name, also where it forbids them. Raises
    UnknownKeyword for a keyword or a reference that is not understood.
    """
    return _Compiler(schema, is_open).fits(schema)


class _Compiler:
    """Turns each schema into a list of rules; a rule lets pass what it is not about, as the standard asks."""

    def __init__(self, root: Schema, is_open: bool) -> None:
        self._root = root
        self._is_open = is_open
        self._named: dict[str, Fits] = {}
        self._keywords: dict[str, Callable[[Schema], Fits]] = {
            "$ref": self._reference,
            "type": self._type,
            "enum": lambda schema: _one_of(schema["enum"]),
            "const": lambda schema: _one_of([schema["const"]]),
            "pattern": self._pattern,
            "minLength": lambda schema: _for(str, lambda value: len(value) >= schema["minLength"]),
            "minimum": lambda schema: lambda value: not _TYPES["number"](value) or value >= schema["minimum"],
            "properties": self._object,
            "required": self._required,
            "dependentRequired": self._dependent,
            "additionalProperties": self._object,
            "propertyNames": self._names,
            "items": self._array,
            "prefixItems": self._array,
            "minItems": lambda schema: _for(list, lambda value: len(value) >= schema["minItems"]),
            "maxItems": lambda schema: _for(list, lambda value: len(value) <= schema["maxItems"]),
            "uniqueItems": lambda schema: _for(list, _has_no_twins) if schema["uniqueItems"] else _anything,
            "anyOf": self._any_of,
            "not": self._not,
            "if": self._if,
            "then": self._if,
        }

    def fits(self, schema: Schema | bool) -> Fits:
        if isinstance(schema, bool):
            return _anything if schema else _nothing
        makers = []
        for keyword in schema:
            if keyword in _SILENT:
                continue
            if keyword not in self._keywords:
                raise UnknownKeyword(f"the schema has the keyword {keyword!r}, which reports/shape.py does not know")
            makers.append(self._keywords[keyword])
        rules = [make(schema) for make in dict.fromkeys(makers)]  # one rule for keywords that are read together
        return _every(rules)

    def _reference(self, schema: Schema) -> Fits:
        name = str(schema["$ref"])
        key = name.removeprefix("#/$defs/")
        if key not in self._root.get("$defs", {}):
            raise UnknownKeyword(f"the schema refers to {name!r}, which is none of its own $defs")
        if key not in self._named:
            self._named[key] = self.fits(self._root["$defs"][key])
        return self._named[key]

    def _type(self, schema: Schema) -> Fits:
        names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        tests = [_TYPES[name] for name in names]
        return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)

    def _pattern(self, schema: Schema) -> Fits:
        search = re.compile(schema["pattern"]).search
        return _for(str, lambda value: search(value) is not None)

    def _object(self, schema: Schema) -> Fits:
        known = {name: self.fits(rule) for name, rule in schema.get("properties", {}).items()}
        others = schema.get("additionalProperties", True)
        other = self.fits(True if self._is_open and others is False else others)

        def closed(value: dict[str, Any]) -> bool:  # a loop is three times as fast as all()
            for name, item in value.items():  # noqa: SIM110
                if not known.get(name, other)(item):
                    return False
            return True

        def opened(value: dict[str, Any]) -> bool:
            return all(fits(value[name]) for name, fits in known.items() if name in value)

        return _for(dict, opened if other is _anything else closed)

    def _required(self, schema: Schema) -> Fits:
        names = frozenset(schema["required"])
        return _for(dict, lambda value: names <= value.keys())

    def _dependent(self, schema: Schema) -> Fits:
        wanted = {name: frozenset(others) for name, others in schema["dependentRequired"].items()}
        return _for(dict, lambda value: all(wanted[name] <= value.keys() for name in wanted.keys() & value.keys()))

    def _names(self, schema: Schema) -> Fits:
        fits = self.fits(schema["propertyNames"])
        return _for(dict, lambda value: all(fits(name) for name in value))

    def _array(self, schema: Schema) -> Fits:
        first = [self.fits(rule) for rule in schema.get("prefixItems", [])]
        rest = self.fits(schema.get("items", True))
        if not first:
            return _for(list, lambda value: all(map(rest, value)))
        return _for(
            list,
            lambda value: (
                all(fits(item) for fits, item in zip(first, value, strict=False))
                and all(map(rest, value[len(first) :]))
            ),
        )

    def _any_of(self, schema: Schema) -> Fits:
        choices = [self.fits(choice) for choice in schema["anyOf"]]
        return lambda value: any(fits(value) for fits in choices)

    def _not(self, schema: Schema) -> Fits:
        fits = self.fits(schema["not"])
        return lambda value: not fits(value)

    def _if(self, schema: Schema) -> Fits:
        condition, consequence = self.fits(schema["if"]), self.fits(schema["then"])
        return lambda value: not condition(value) or consequence(value)


def _every(rules: list[Fits]) -> Fits:
    if len(rules) == 1:
        return rules[0]
    if len(rules) == 2:
        first, second = rules
        return lambda value: first(value) and second(value)

    def fits(value: Any) -> bool:
        for rule in rules:  # noqa: SIM110  # as above
            if not rule(value):
                return False
        return True

    return fits


def _anything(_: Any) -> bool:
    return True


def _nothing(_: Any) -> bool:
    return False


def _for(kind: type, fits: Fits) -> Fits:
    return lambda value: not isinstance(value, kind) or fits(value)


def _one_of(choices: list[Any]) -> Fits:
    if not all(isinstance(choice, str) for choice in choices):
        raise UnknownKeyword(f"the schema allows one of {choices!r}; reports/shape.py compares texts only")
    texts = frozenset(choices)
    return lambda value: isinstance(value, str) and value in texts


def _has_no_twins(values: list[Any]) -> bool:
    return len({json.dumps(value, sort_keys=True) for value in values}) == len(values)
