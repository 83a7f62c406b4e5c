"""The two tables of lesson 78 as a picture: the losses by step, and the bytes per parameter by number of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from impls.words import number_of
from lessons.zero_training import Curves, Held

CATEGORIES = ("parameters", "gradients", "optimizer", "other")


def draw(seen: Curves, table: Sequence[Held], path: Path) -> None:
    """Write the picture to `path`, in the format of its ending."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    losses, memory = figure.subplots(1, 2)

    steps = range(1, len(seen.alone) + 1)
    losses.plot(steps, seen.alone, color="0.6", linewidth=5, label="one process")
    losses.plot(steps, seen.data_parallel, linewidth=2.5, label="data parallel")
    losses.plot(steps, seen.sharded, "k--", label="ZeRO-1")
    losses.set(xlabel="step", ylabel="loss of the global batch", title=f"Adam on {number_of(seen.world_size, 'rank')}")
    losses.legend()

    rows = [row for row in table if row.rank == 0]
    labels = [f"N = {row.world_size}" for row in rows]
    below = [0.0] * len(rows)
    for category in CATEGORIES:
        heights = [getattr(row, category) / row.num_parameters for row in rows]
        if not any(heights):
            continue
        bars = memory.bar(labels, heights, bottom=below, label=category)
        memory.bar_label(bars, [f"{height:.2f}" if height > 0.3 else "" for height in heights], label_type="center")
        below = [base + height for base, height in zip(below, heights, strict=True)]
    memory.set(ylabel="bytes per parameter on one rank", title="ZeRO-1 on a bfloat16 model, after a step")
    memory.legend()
    figure.savefig(path)
