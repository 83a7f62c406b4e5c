"""What Lockstep takes for what in one implementation: read in a rank process, printed, nothing checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from conformance.checks import Description
from conformance.describing import find_out
from conformance.options import Chosen
from fixtures.world.pool import WorldPool
from fixtures.world.server import Server
from impls.contract import BLOCKS
from impls.locate import ImplementationError, Kind, locate


def show(spec: str) -> int:
    """Print what ``spec`` provides. Exit status: 0, 1 when it cannot be imported, 4 when there is no such thing."""
    try:
        located = locate(spec)
    except ImplementationError as error:
        print(str(error).replace("--impl=", "", 1), file=sys.stderr)
        return 4
    is_peer = located.kind is Kind.BUNDLED
    chosen = Chosen(name=located.name, spec=spec, path=str(located.path), sha256=located.sha256, is_peer=is_peer)
    with Server.start() as server, WorldPool(server) as pool:
        description = find_out(chosen, pool)
    if description.verdict is not None:
        print(description.reason, file=sys.stderr)
        return 1
    print("\n".join(lines(description)))
    return 0


def lines(description: Description) -> Iterator[str]:
    """The text of ``show``: each name of the contract with what stands for it, or why nothing does."""
    yield f"{description.name}: {description.path}"
    width = max(len(name) for names in BLOCKS.values() for name in names)
    for block, names in BLOCKS.items():
        provided = [name for name in names if name in description.spellings]
        yield ""
        yield f"{block}: {len(provided)} of {len(names)}"
        for name in names:
            yield f"  {name:<{width}}  {description.spellings.get(name) or _absent(description, name)}"
    if description.remarks:
        yield ""
        yield from (f"! {remark}" for remark in description.remarks)
    for word, table in (("deviates", description.deviates), ("refuses", description.refuses)):
        for claim, entry in table.items():
            yield ""
            yield f"{word} from {claim}: {entry.get('reason', '')} [{entry.get('source', 'no source')}]"
    yield ""
    yield f"Check it: pytest -n 4 --impl={description.spec}"


def _absent(description: Description, name: str) -> str:
    """A dash, and the reason where it says more than that there is none."""
    reason = description.missing.get(name, "")
    return "-" if reason.endswith(f"has no {name}") else f"- {reason}".rstrip()
