"""What may be alive on top of what a stage holds at rest, while a step runs: in units, and in buckets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.checks import Subject
from conformance.judge import Broken
from conformance.verdict import Verdict
from conformance.zero import peak_programs as programs

GATHERED_UNITS = 3  # the unit that computes, the next one, and the buffer that one arrives in
GRADIENT_UNITS = 2  # the full gradient of a unit, and the buffer that it leaves in
KEPT_UNITS = 1  # the last one, or the root's, which many keep since it would be the next to be gathered
ROUNDING = 0.5  # of a unit: activations of one row, and notes
FLOAT_BYTES = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Equal layers one after the other, each a unit, sharded over so many ranks."""

    world_size: int
    num_layers: int
    width: int

    @property
    def unit_bytes(self) -> int:
        """Of one layer's parameters, or of their gradients."""
        return FLOAT_BYTES * self.width**2

    def units(self, num_bytes: float) -> float:
        """So many bytes in layers."""
        return num_bytes / self.unit_bytes

    @property
    def share(self) -> float:
        """What a rank holds of all layers, in units."""
        return self.num_layers / self.world_size

    @property
    def most(self) -> float:
        """The peak above rest that gathering unit by unit brings, in units: shards of gradients add up meanwhile."""
        return self.share + GATHERED_UNITS + GRADIENT_UNITS + ROUNDING


def run(subject: Subject, chain: Chain, stage: str, **options: Any) -> list[dict[str, Any]]:
    """What every rank reports of its steps; ends the check where an implementation's units cannot be followed."""
    size = (chain.num_layers, chain.width)
    reports = list(subject.run(programs.within_a_step, chain.world_size, stage, *size, **options).values)
    if unseen := [report[programs.UNSEEN] for report in reports if programs.UNSEEN in report]:
        raise Broken(Verdict.NOT_PROVIDED, f"units that can be followed through a step: {unseen[0]}")
    return reports


def whole_too_long(chain: Chain, reports: Sequence[Mapping[str, Any]]) -> str:
    """Where more units are whole in forward than compute or come next; empty when they are released.

    What is kept for the backward is a fault only where it was asked to be released.
    """
    for rank, report in enumerate(reports):
        for layer, num_bytes in enumerate(report[programs.FORWARD]):
            kept = 0 if report["chooses"] else layer
            if chain.units(num_bytes) > GATHERED_UNITS + kept + ROUNDING:
                return (
                    f"rank {rank} of {chain.world_size}: while layer {layer} of {chain.num_layers} computes, "
                    f"{chain.units(num_bytes):.1f} units are whole"
                )
    return ""


def are_kept_for_backward(chain: Chain, reports: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each layer that has computed adds its unit to those that are whole, and none is whole before its time."""
    last = [report[programs.FORWARD][-1] for report in reports]
    return not whole_too_long(chain, reports) and min(map(chain.units, last)) > chain.num_layers - ROUNDING


def kept_after_evaluation(chain: Chain, reports: Sequence[Mapping[str, Any]]) -> float:
    """Units that are whole on the fullest rank after a forward pass that no backward follows."""
    return max(chain.units(report[programs.EVALUATED]) for report in reports)


def in_units(chain: Chain, report: Mapping[str, Any]) -> str:
    """What is alive above rest at each layer of the forward pass, as a text."""
    return ", ".join(f"{chain.units(num_bytes):.1f}" for num_bytes in report[programs.FORWARD])
