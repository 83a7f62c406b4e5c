"""What the ranks of a stage hold, set against what they should: a sentence for the first thing that is wrong.

Pure functions of readings; nothing here runs a rank. What a rank holds is sorted by what can be reached from where, so
a tensor in the wrong category counts there: totals (`wrong_total`) do not depend on it, single kinds (`wrong_kind`) do.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from conformance.zero.expected_memory import KINDS, SHARDED, Model, Shares, Widths, explain

OTHER = "other"  # what Python finds beside module and optimizer
BUFFERS = "buffers"  # of the module as it was handed over
NOTES = "notes"  # the integers among it
COPIES = "copies of shards"  # that an optimizer updates in the place of 16-bit parameters
BUCKETS = 1  # copies of the gradients that data parallelism may have in flat memory


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one rank holds at one moment: bytes by category, and the largest storages of each as a text."""

    by_category: Mapping[str, int]
    largest: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def of(self, *categories: str) -> int:
        """Bytes of some categories together."""
        return sum(self.by_category.get(category, 0) for category in categories)

    @property
    def states(self) -> int:
        """Parameters, gradients, optimizer state, and what else there is of floating point; not buffers, nor copies."""
        return self.of(*KINDS, OTHER)

    def describe(self) -> str:
        """Bytes and largest storages of all that is there."""
        found = [
            f"{name} {value:,} ({self.largest.get(name, '')})" for name, value in self.by_category.items() if value
        ]
        return "; ".join(found) or "nothing"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is wrong (nothing, where empty), or how shares were found to be cut."""

    wrong: str = ""
    expected: str = ""
    observed: str = ""
    shares: Shares | None = None


def released_early(stage: str, model: Model, widths: Widths, rank: Held) -> int:
    """Bytes of whole gradients that ZeRO-1 has let go before it had to: that is no fault."""
    return max(0, widths.gradients * model.numel - rank.of("gradients")) if stage == "1" else 0


def wrong_kind(stage: str, model: Model, widths: Widths, ranks: Sequence[Held]) -> Finding:
    """Whether what the stage shards is cut into shares, and the rest whole on every rank, kind by kind."""
    finding = Finding()
    for kinds in _judged_together(stage, ranks):
        # What nobody names is the optimizer's until it is shown to be something else: buckets, under data parallelism.
        unnamed = [OTHER] if "optimizer" in kinds and stage != "ddp" else []
        held = [rank.of(*kinds, *unnamed) for rank in ranks]
        has_counters = widths.has_counters and "optimizer" in kinds
        if kinds[0] in SHARDED[stage]:
            found = _as_shares(kinds, held, model, widths.of(*kinds), has_counters)
            finding = found if finding.shares is None or found.wrong else finding
        else:
            early = [released_early(stage, model, widths, rank) if kinds == ("gradients",) else 0 for rank in ranks]
            whole = [sum(pair) for pair in zip(held, early, strict=True)]
            found = _as_whole(kinds[0], whole, model, widths.of(*kinds), has_counters)
        if found.wrong:
            return found
    return finding


def _judged_together(stage: str, ranks: Sequence[Held]) -> list[tuple[str, ...]]:
    """Kinds by themselves, but shards of gradients that nobody names are among the optimizer's tensors."""
    if "gradients" in SHARDED[stage] and not any(rank.of("gradients") for rank in ranks):
        return [("parameters",), ("gradients", "optimizer")]
    return [(kind,) for kind in KINDS]


def _as_shares(kinds: Sequence[str], held: Sequence[int], model: Model, width: int, has_counters: bool) -> Finding:
    shares = explain(held, model, width, has_counters=has_counters)
    if not shares.reason:
        return Finding(shares=shares)
    return Finding(
        wrong=f"{' and '.join(kinds)}: {shares.reason}",
        expected=f"{width * model.numel / len(held):,.0f} bytes on each rank, up to the granularity of shards",
        observed=_listed(held),
    )


def _as_whole(kind: str, held: Sequence[int], model: Model, width: int, has_counters: bool) -> Finding:
    whole = width * model.numel
    most = whole + model.whole_padding_bytes(width, len(held)) + model.counter_bytes * has_counters
    if all(whole <= value <= most for value in held):
        return Finding()
    rank = next(rank for rank, value in enumerate(held) if not whole <= value <= most)
    return Finding(
        wrong=f"{kind}: rank {rank} of {len(held)} has {'less' if held[rank] < whole else 'more'} than one whole copy",
        expected=f"{whole:,} bytes on each rank",
        observed=_listed(held),
    )


def wrong_total(stage: str, model: Model, widths: Widths, ranks: Sequence[Held]) -> Finding:
    """Whether the bytes of each rank are the formula's and those of named extras, all categories taken together."""
    if (crowded := _notes(model, ranks)).wrong or (crowded := _copies(model, ranks)).wrong:
        return crowded
    if stage == "ddp":
        crowded = _buckets(model, widths, ranks)
        return crowded if crowded.wrong else wrong_kind(stage, model, widths, ranks)
    whole = widths.replicated(stage) * model.numel
    held = [rank.states + released_early(stage, model, widths, rank) - whole for rank in ranks]
    shares = explain(
        held,
        model,
        widths.sharded(stage),
        has_counters=widths.has_counters,
        padding_bytes=model.whole_padding_bytes(widths.replicated(stage), len(ranks)),
    )
    if not shares.reason:
        return Finding(shares=shares)
    share = widths.sharded(stage) * model.numel / len(ranks)
    return Finding(
        wrong=f"beside {whole:,} bytes of states that are whole, {shares.reason}",
        expected=f"{whole + share:,.0f} bytes on each rank ({widths.formula(stage)}), padding and step counters apart",
        observed=_listed([rank.states for rank in ranks]),
    )


def _buckets(model: Model, widths: Widths, ranks: Sequence[Held]) -> Finding:
    most = BUCKETS * (widths.gradients * model.numel + model.whole_padding_bytes(widths.gradients, len(ranks)))
    others = [rank.of(OTHER) for rank in ranks]
    if max(others) <= most:
        return Finding()
    return Finding(
        wrong=f"rank {others.index(max(others))} of {len(ranks)} keeps more than one bucket for each gradient",
        expected=f"at most {most:,} bytes beside parameters, gradients and optimizer state",
        observed=_listed(others),
    )


def _copies(model: Model, ranks: Sequence[Held]) -> Finding:
    held = [rank.of(COPIES) for rank in ranks]
    return _as_shares((COPIES,), held, model, model.itemsize, has_counters=False) if any(held) else Finding()


def _notes(model: Model, ranks: Sequence[Held]) -> Finding:
    most = model.note_bytes(len(ranks))
    if all(rank.of(NOTES) <= most for rank in ranks):
        return Finding()
    return Finding(
        wrong="more integers than parameters and ranks have places and numbers",
        expected=f"at most {most:,} bytes beside the module's buffers",
        observed=_listed([rank.of(NOTES) for rank in ranks]),
    )


def _listed(values: Sequence[int]) -> str:
    return f"{', '.join(f'{value:,}' for value in values)} bytes"
