"""What Lockstep takes for what in one implementation: read in a rank process, printed, nothing checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from conformance.checks import Description
from conformance.describing import find_out
from conformance.options import beside, chosen_from
from fixtures.world.pool import WorldPool
from fixtures.world.server import Server
from impls.contract import BLOCKS
from impls.locate import ImplementationError

EMPTY = "is still empty"  # how the reason of a stub ends


def show(spec: str, adapters: str | None = None, device_shim: bool = False) -> int:
    """Print what ``spec`` provides. Exit status: 0, 1 when it cannot be imported, 4 when there is no such thing."""
    try:
        chosen = chosen_from(beside(spec, adapters, device_shim))
    except ImplementationError as error:
        print(str(error).replace("--impl=", "", 1), file=sys.stderr)
        return 4
    with Server.at_hand() as server, WorldPool(server) as pool:
        description = find_out(chosen, pool)
    if description.verdict is not None:
        print(description.reason, file=sys.stderr)
        return 1
    print("\n".join(lines(description)))
    return 0


def lines(description: Description) -> Iterator[str]:
    """The text of ``show``: what stands for each name of the contract, and why; what does not, and what would help."""
    yield f"{description.name}: {description.path}"
    yield from (sentence for sentence in description.around.get("", ()))
    empty = []
    for block, names in BLOCKS.items():
        if any(name in description.spellings or _meant(description, name) for name in names):
            yield ""
            yield from _block(description, block, names)
        else:
            empty.append(block)
    if empty:
        yield ""
        yield f"nothing for: {', '.join(empty)}"
    if remarks := [remark for remark in description.remarks if remark not in description.missing.values()]:
        yield ""
        yield from (f"! {remark}" for remark in remarks)
    yield from _table(description)
    for word, table in (("deviates", description.deviates), ("refuses", description.refuses)):
        for claim, entry in table.items():
            yield ""
            yield f"{word} from {claim}: {entry.get('reason', '')} [{entry.get('source', 'no source')}]"
    yield ""
    yield f"Check it: pytest -n 4 {_option(description.spec)}"


def _option(spec: str) -> str:
    return f"'--impl={spec}'" if any(sign in spec for sign in " ?&") else f"--impl={spec}"


def _block(description: Description, block: str, names: tuple[str, ...]) -> Iterator[str]:
    provided = [name for name in names if name in description.spellings]
    yield f"{block}: {len(provided)} of {len(names)}"
    width = max(map(len, names))
    for name in provided:
        yield f"  {name:<{width}}  {description.spellings[name]}: {description.reasons.get(name, '')}".rstrip(": ")
        if handed := _handed(description.bindings.get(name, {})):
            yield f"  {'':<{width}}    {handed}"
        yield from (f"  {'':<{width}}    {sentence}" for sentence in description.around.get(name, ()))
    missing = [name for name in names if name not in provided]
    for name in missing:
        if reason := _meant(description, name):
            yield f"  {name:<{width}}  - {reason}"
    silent = [name for name in missing if not _meant(description, name)]
    empty = [name for name in silent if description.missing.get(name, "").endswith(EMPTY)]
    for word, names_of_it in (("still empty", empty), ("missing", [name for name in silent if name not in empty])):
        if names_of_it:
            yield f"  {word}: {', '.join(names_of_it)}"


def _handed(bindings: object) -> str:
    """How each parameter is filled, as ``x=tensor``."""
    assert isinstance(bindings, dict)
    filled = [name if name == given else f"{name}={given}" for name, given in bindings.items() if given]
    kept = [name for name, given in bindings.items() if not given]
    told = [f"is handed {', '.join(filled)}"] if filled else []
    return "; ".join([*told, *([f"keeps the default of {', '.join(kept)}"] if kept else [])])


def _meant(description: Description, name: str) -> str:
    """The reason why a name is not provided, where it says more than that there is none, or a stub."""
    reason = description.missing.get(name, "")
    return "" if reason.endswith((f"has no {name}", EMPTY)) else reason


def _table(description: Description) -> Iterator[str]:
    """The smallest table of adapters that would settle what is open."""
    entries = {name: names[0] for name, names in description.ambiguous.items()}
    others = {name: f"or {', '.join(names[1:])}" for name, names in description.ambiguous.items()}
    for spelling, names in description.proposals.items():
        free = [name for name in names if name not in description.spellings and name not in entries]
        if free:
            entries[free[0]] = spelling
            others[free[0]] = f"or as {', '.join(free[1:])}" if free[1:] else ""
    if not entries:
        return
    yield ""
    yield "To settle what is open, put into the module, as far as it is meant so:"
    yield ""
    yield "  adapters = {"
    for name, spelling in entries.items():
        yield f'      "{name}": "{spelling}",{f"  # {others[name]}" if others[name] else ""}'
    yield "  }"
    yield ""
    yield "or, for files that are not to be touched, into a file for --adapters=FILE.toml:"
    yield ""
    yield "  [adapters]"
    yield from (f'  {name} = "{spelling}"' for name, spelling in entries.items())
