"""The curves of lesson 77 as a picture: losses by step, and how far they are apart beside the bound for rounding."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from lessons.ddp_observed import Seen

LEAST = 1e-10  # drawn in place of a difference of nothing, on a logarithmic axis


def draw(seen: Seen, path: Path) -> None:
    """Write the picture to `path`, in the format of its ending."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    losses, apart = figure.subplots(1, 2)
    steps, alone = range(1, len(seen.losses) + 1), seen.single_losses
    world_size = seen.settings.world_size

    losses.plot(
        range(1, len(seen.single_losses) + 1), seen.single_losses, color="0.6", linewidth=5, label="one process"
    )
    losses.plot(steps, seen.losses, "k--", label=f"{world_size} ranks")
    losses.set(xlabel="step", ylabel="loss of the global batch", title=f"SGD on {world_size} ranks")
    losses.legend()

    pairs = zip(seen.losses, alone, strict=False)
    apart.semilogy(steps, [max(LEAST, abs(a - b)) for a, b in pairs], "k.", label="difference")
    apart.axhline(seen.loss_bound, color="tab:red", label="bound for rounding")
    apart.set(xlabel="step", ylabel="between one process and the ranks", title="How far apart")
    apart.legend()
    figure.savefig(path)
