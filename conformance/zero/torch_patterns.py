"""What a stage is, seen from outside: the share of each state that a rank holds, and what moves in which phase.

Both are told in units of the model, so that PyTorch's stage and somebody else's can be compared whatever they are made
of: a *share* of 1 is a whole state, 1/N a sharded one; a *pass* of 1 is what a reduce-scatter or an all-gather of all
elements moves, T(N-1) bytes over all ranks, so that an all-reduce makes 2.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from conformance.collectives.traffic import logical_bytes
from conformance.zero.torch_programs import (
    BACKWARD,
    BEFORE,
    COMPUTES,
    END,
    FORWARD,
    LAYERS,
    REDUCED,
    REST,
    STEP,
    WHOLE,
)
from fixtures.world.outcome import Operation, Outcome, Outcomes

MOMENTS = 2  # Adam's, each as large as the parameters
SLACK = 0.05  # of the model: step counters, notes of a wrapper's own, activations of one row (0.02)
KEPT = 0.5  # passes that may be missing in backward because units were kept: the root, the last one
_PHASES = (FORWARD, BACKWARD, STEP, END)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One stage in its last step, on `world_size` ranks. Shares are those of the rank that holds most."""

    name: str
    world_size: int
    parameters: float  # share at rest
    gradients: float  # share when they are reduced and the step has not been made, whatever else is alive then included
    optimizer: float  # Adam's state at rest, over its two moments; an FP32 copy of the parameters makes it 1.5 times
    forward: float  # passes
    backward: float
    step: float
    first: float  # share of the parameters gathered before the first layer computes
    kinds: dict[str, str]  # kinds of operations in each phase

    def __str__(self) -> str:
        """In words, for the evidence."""
        held = f"parameters {self.parameters:.2f}, gradients {self.gradients:.2f}, optimizer {self.optimizer:.2f}"
        moved = ", ".join(
            f"{phase} {passes:.2f}{f' ({kinds})' if (kinds := self.kinds[phase]) else ''}"
            for phase, passes in ((FORWARD, self.forward), (BACKWARD, self.backward), (STEP, self.step))
        )
        return f"{self.name} holds {held}; moves {moved}"

    # -- what a share or a number of passes is ------------------------------------------------------------------------

    def is_whole(self, share: float) -> bool:
        """Whether every rank has all of a state."""
        return share >= 1 - SLACK

    def is_sharded(self, share: float) -> bool:
        """Whether a rank has 1/N of a state."""
        return share <= 1 / self.world_size + SLACK

    @property
    def optimizer_is_sharded(self) -> bool:
        """Whether a rank has 1/N of the moments, and of a copy of the parameters, and of the gradients, where kept."""
        return self.optimizer <= 2 / self.world_size + SLACK


def moved(passes: float, expected: float) -> bool:
    """Whether as much moved as expected."""
    return abs(passes - expected) <= SLACK


def seen(name: str, outcomes: Outcomes) -> Seen:
    """The pattern of `torch_programs.pattern`."""
    held = [_held(outcome) for outcome in outcomes]
    phases = [_phases(outcome) for outcome in outcomes]
    passes = {phase: _passes([ranks[phase] for ranks in phases]) for phase in (FORWARD, BACKWARD, STEP)}
    return Seen(
        name=name,
        world_size=len(outcomes),
        parameters=max(parameters for parameters, _, _ in held),
        gradients=max(gradients for _, gradients, _ in held),
        optimizer=max(optimizer for _, _, optimizer in held),
        forward=passes[FORWARD],
        backward=passes[BACKWARD],
        step=passes[STEP],
        first=_passes(
            [_before_the_first_layer(outcome, ranks) for outcome, ranks in zip(outcomes, phases, strict=True)]
        ),
        kinds={phase: ", ".join(sorted({op.kind for op in ops if op.num_bytes})) for phase, ops in phases[0].items()},
    )


def _held(outcome: Outcome) -> tuple[float, float, float]:
    before, rest, reduced = (_least(outcome, name) for name in (BEFORE, REST, REDUCED))
    gradients = sum(reduced.values()) - before["other"] - reduced["parameters"] - rest["optimizer"]
    return rest["parameters"] / WHOLE, gradients / WHOLE, rest["optimizer"] / (MOMENTS * WHOLE)


def _least(outcome: Outcome, name: str) -> dict[str, int]:
    """The categories of the reading of this name in which least was alive."""
    readings = (reading.categories for reading in outcome.memory if reading.name == name)
    return min(readings, key=lambda categories: sum(categories.values()))


def _phases(outcome: Outcome) -> dict[str, list[Operation]]:
    """The operations of the last step, by phase."""
    marks = [mark for mark in outcome.marks if mark.name in _PHASES]
    return {
        mark.name: [op for op in outcome.operations if mark.at_ns <= op.issued_ns <= after.at_ns]
        for mark, after in itertools.pairwise(marks)
        if mark.name != END
    }


def _passes(by_rank: Sequence[Sequence[Operation]]) -> float:
    total = float(sum(logical_bytes(operations) for operations in by_rank))
    return total / (WHOLE * (len(by_rank) - 1))


def _before_the_first_layer(outcome: Outcome, phases: dict[str, list[Operation]]) -> list[Operation]:
    first = next((mark.at_ns for mark in outcome.marks if mark.name == COMPUTES), 0)
    return [op for op in phases[FORWARD] if op.issued_ns <= first]


def gathers(outcome: Outcome) -> int:
    """All-gathers in the watched step."""
    return sum(op.kind == "all_gather" for operations in _phases(outcome).values() for op in operations)


def all_layers_computed(outcomes: Outcomes) -> bool:
    """Whether every layer of the model said so: it is the one that was watched."""
    computed = [{mark.detail for mark in outcome.marks if mark.name == COMPUTES} for outcome in outcomes]
    return all(len(layers) == LAYERS for layers in computed)
