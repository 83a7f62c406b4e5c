"""The table of adapters: which name of an implementation stands for which of the contract, and what goes with it.

    adapters = {"DataParallel": "Wrapper", "ring_allreduce": "Ring.reduce"}     # names of the contract: yours
    adapters = {"DataParallel": "ddp.DDP"}     # of two files of a folder that have a DDP, the one in ddp.py
    adapters = {"stub": ["triton"]}             # imports that are replaced, as nothing that is checked needs them
    adapters = {"op": "mean"}                   # the all-reduces average instead of summing
    adapters = {"initialize": "set_up"}         # called once, before anything else, with the arguments it asks for

It stands in the module, or as TOML in a file of its own, at the top or under ``[adapters]``. The file goes before.
"""

from __future__ import annotations

import ast
import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from impls.contract import ENTRIES

STUB, OP, INITIALIZE = "stub", "op", "initialize"
MEAN, SUM = "mean", "sum"
SPECIAL = frozenset({STUB, OP, INITIALIZE})


class BadTable(ValueError):
    """A file of adapters that cannot be used; the text says what is wrong with which line."""


def read_file(path: str) -> dict[str, Any]:
    """The table in a TOML file. Raises `BadTable` for what is no such table."""
    try:
        found = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise BadTable(f"--adapters={path}: it cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadTable(f"--adapters={path}: this is no TOML: {error}.") from None
    inner = found.get("adapters", found)
    if not isinstance(inner, Mapping):
        raise BadTable(f"--adapters={path}: adapters is {type(inner).__name__}, not a table.")
    if wrong := [text for key, value in inner.items() if (text := _wrong(key, value))]:
        raise BadTable(f"--adapters={path}: {wrong[0]}.")
    return dict(inner)


def _wrong(key: str, value: Any) -> str:
    if key == STUB:
        return "" if names_in(value) else f'{STUB} is a list of the names of imports, such as ["triton"]'
    if key == OP:
        return "" if value in (MEAN, SUM) else f'{OP} is "{SUM}" or "{MEAN}", not {value!r}'
    if key != INITIALIZE and key not in ENTRIES:
        return unknown_key(key)
    return "" if isinstance(value, str) else f"{key} is {value!r}, not the name of a function or class"


def unknown_key(key: str) -> str:
    """A key that the suite does not look for: a spelling of a name that it does, or a slip."""
    owner = next((entry.name for entry in ENTRIES.values() if key in entry.aliases), None)
    near = [owner] if owner else difflib.get_close_matches(key, [*ENTRIES, *SPECIAL], n=1, cutoff=0.4)
    meant = f": did you mean {near[0]!r}?" if near else "; the names are those in impls/contract/"
    return f"the adapters table has {key!r}, which is no name of the contract{meant}"


def names_in(value: Any) -> tuple[str, ...]:
    """The names in a list of names; empty where it is none."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and value and all(isinstance(name, str) for name in value):
        return tuple(value)
    return ()


def stubs_in(trees: list[ast.Module]) -> tuple[str, ...]:
    """The imports that the tables in these modules replace: they have to be known before anything is imported."""
    return tuple(dict.fromkeys(name for tree in trees for table in _tables(tree) for name in _stubs(table)))


def _tables(tree: ast.Module) -> Iterator[ast.Dict]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            for target in targets:
                if isinstance(target, ast.Name) and target.id == "adapters":
                    yield node.value
                elif isinstance(target, ast.Name) and target.id == "MANIFEST":
                    yield from (
                        value for key, value in _items(node.value) if key == "adapters" if isinstance(value, ast.Dict)
                    )


def _items(table: ast.Dict) -> Iterator[tuple[Any, ast.expr]]:
    for key, value in zip(table.keys, table.values, strict=True):
        yield getattr(key, "value", None), value


def _stubs(table: ast.Dict) -> Iterator[str]:
    for key, value in _items(table):
        if key == STUB:
            try:
                yield from names_in(ast.literal_eval(value))
            except ValueError:
                continue  # computed: known only after the import, which is too late
