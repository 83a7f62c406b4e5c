"""A comparison as text for the terminal: the surroundings first, then what became of the results."""

from __future__ import annotations

from collections.abc import Iterator

from reports import paper, score
from reports.compare import Change, Comparison, Kind

LISTED = 12  # claims of one kind; more are counted
ABOUT = {
    Kind.REGRESSED: "what passed is broken, or is no longer there",
    Kind.FIXED: "was broken and holds",
    Kind.STILL_FAILING: "in red before and now",
    Kind.NOW_HOLDS: "holds, and was not shown before",
    Kind.CHANGED: "another verdict, neither better nor worse for sure",
    Kind.ADDED: "OLD has no such case",
    Kind.REMOVED: "NEW has no such case any more",
    Kind.NOT_RUN_NOW: "not chosen, or lost, in NEW",
}


def text(comparison: Comparison, room: int, *, everything: bool = False) -> str:
    """The whole comparison, at most ``room`` columns wide."""
    parts = [_heads(comparison, room), _surroundings(comparison, room), _counts(comparison, room)]
    parts += [_list(comparison, kind, room, everything) for kind in ABOUT]
    parts.append(_verdict(comparison, room))
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part))) + "\n"


def counted(comparison: Comparison) -> list[tuple[str, dict[Kind, int]]]:
    """For each implementation that both have: how many results of each kind; kinds that do not occur are left out."""
    names = [name for name in (*comparison.names, score.SUITE) if any(c.impl == name for c in comparison.changes)]
    return [(name, {kind: count for kind in Kind if (count := len(comparison.of(kind, name)))}) for name in names]


def grouped(comparison: Comparison, kind: Kind) -> list[list[Change]]:
    """The changes of one kind; those of one claim, implementation and turn of the verdict together."""
    groups: dict[tuple[str, ...], list[Change]] = {}
    for change in comparison.of(kind):
        groups.setdefault((change.impl, change.claim, change.before, change.now), []).append(change)
    return list(groups.values())


def _heads(comparison: Comparison, room: int) -> Iterator[str]:
    for name, report in (("OLD", comparison.old), ("NEW", comparison.new)):
        run = report["run"]
        told = f"{run['started']}  {len(report['results']):,} results  {run['command']}"
        yield paper.clipped(f"{name}  {paper.line(told)}", room)
    hashes = {
        side: {info["name"]: info["sha256"] for info in report["impls"]}
        for side, report in (("old", comparison.old), ("new", comparison.new))
    }
    for new, old in comparison.names.items():
        name = new if new == old else f"{old} (OLD), {new} (NEW)"
        is_same = hashes["old"].get(old) == hashes["new"].get(new)
        yield paper.clipped(f"{paper.line(name)}: {'the same sources' if is_same else 'the sources differ'}", room)
    for side, names in (("OLD", comparison.gone), ("NEW", comparison.come)):
        if names:
            yield paper.clipped(f"only in {side}, not compared: {paper.line(', '.join(names))}", room)


def _surroundings(comparison: Comparison, room: int) -> Iterator[str]:
    if not comparison.environment:
        yield "environment: the same"
        return
    yield from paper.wrapped("environment: differs; what changed below may come from that", room)
    rows = [(f"  {name}", was, "->", now) for name, was, now in comparison.environment]
    yield from paper.table(rows, room, left=4)


def _counts(comparison: Comparison, room: int) -> Iterator[str]:
    for name, counts in counted(comparison):
        told = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
        yield from paper.wrapped(f"{paper.line(name)}: {told}", room)


def _list(comparison: Comparison, kind: Kind, room: int, everything: bool) -> Iterator[str]:
    changes = comparison.of(kind)
    if not changes:
        return
    yield from paper.wrapped(f"{kind.upper()} ({len(changes):,}): {ABOUT[kind]}", room)
    groups = grouped(comparison, kind)
    shown = groups if everything else groups[:LISTED]
    rows = [(f"  {group[0].claim}", _turn(group[0]), group[0].impl, _cases(group)) for group in shown]
    for row, group in zip(paper.table(rows, room, left=4), shown, strict=True):
        yield row
        if kind is Kind.REGRESSED:
            first = group[0].result
            about = {"what": first["message"], "expected": first["expected"], "observed": first["observed"]}
            yield from paper.fields({**about, "rerun": first["rerun"]}, room, indent="      ", whole=["rerun"])
    if len(groups) > len(shown):
        yield f"  and {len(groups) - len(shown)} more claims: --all lists them"


def _cases(group: list[Change]) -> str:
    return group[0].case if len(group) == 1 else f"{len(group)} cases"


def _turn(change: Change) -> str:
    return f"{change.before} -> {change.now}" if change.before and change.now else change.before or change.now


def _verdict(comparison: Comparison, room: int) -> Iterator[str]:
    if comparison.trouble:
        yield from paper.wrapped(f"not comparable: {comparison.trouble}", room)
    elif comparison.exit_status == 1:
        count = len(comparison.of(Kind.REGRESSED))
        yield f"{count:,} {'result has' if count == 1 else 'results have'} regressed"
    elif comparison.unsaid:
        yield from paper.wrapped(
            f"no regression was seen, but {len(comparison.unsaid):,} results that passed in OLD were lost in NEW: run "
            "these again before you rely on it",
            room,
        )
    else:
        yield "no regression"
