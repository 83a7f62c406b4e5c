"""A small model that notes what is done with it: the rows it was trained on, and its parameters before each step.

Losses, gradients and the number of steps follow from these, whatever the implementation says of itself.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector

FEATURES, HIDDEN = 8, 16


@dataclasses.dataclass(slots=True)
class Note:
    """A forward pass: the parameters then, its rows, and whether a backward pass came of it."""

    point: Tensor  # [parameters]
    rows: Tensor  # [rows, FEATURES]
    was_learnt_from: bool = False


class Notes:
    """What a model met, pass by pass."""

    def __init__(self, progress: Path | None = None) -> None:
        self._passes: list[Note] = []
        self._progress = progress

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:  # a copy of the model notes where the model does
        return self

    @property
    def learnt_from(self) -> list[Note]:
        """The passes of training; a loss that is only looked at is none."""
        return [note for note in self._passes if note.was_learnt_from]

    def take(self, model: nn.Module, rows: Tensor, out: Tensor) -> None:
        """Note a forward pass, and its backward pass when that comes."""
        point = parameters_to_vector(model.parameters()).detach().cpu().clone()
        note = Note(point, rows.detach().cpu().clone())
        self._passes.append(note)

        def backward(grad: Tensor) -> None:
            note.was_learnt_from = True
            if self._progress is not None:
                self._progress.write_text(str(len(self._passes)))

        out.register_hook(backward)  # type: ignore[no-untyped-call]


class Noting(nn.Module):
    """A small network that keeps notes. [rows, FEATURES] to [rows, 1]"""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 1))
        self.notes = notes

    def forward(self, x: Tensor) -> Tensor:
        """Go through the layers, and note it where a backward pass may follow."""
        out: Tensor = self.layers(x)
        if out.requires_grad:
            self.notes.take(self, x, out)
        return out


def steps_of(notes: Notes, final: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Parameters before each step and after the last, and the rows of each: passes between two changes."""
    points, rows = [], []
    for _, group in itertools.groupby(notes.learnt_from, key=lambda note: note.point.numpy().tobytes()):
        members = list(group)
        points.append(members[0].point)
        rows.append(torch.cat([note.rows for note in members]))
    if points and torch.equal(points[-1], final):  # nothing moved any more
        return points, rows[:-1]
    return [*points, final], rows
