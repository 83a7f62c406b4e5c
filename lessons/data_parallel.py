"""Lesson 77: N ranks that share each batch train like one process that has all of it.

One process takes steps of SGD on global batches of N times the rows. N ranks take the same steps with data parallelism,
each on its own slice. The mean over ranks of their losses and gradients is that of the global batch,

    loss = (loss_0 + ... + loss_{N-1}) / N        g = (g_0 + ... + g_{N-1}) / N

so the two curves must be one, step by step, but for rounding: sums over ranks are added in another order. With the sum
of gradients in place of the mean they part from the second step on.

    python -m lessons data-parallel                            four ranks, twenty steps
    python -m lessons data-parallel --plot curves.svg          the picture as well
    python -m lessons data-parallel --impl ../homework/ddp.py  yours: its train, or its DataParallel, or its functions

Source: Li et al. 2020 (PyTorch Distributed), section 2.2.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

from fixtures.world.outcome import RanksFailed
from impls.locate import ImplementationError, locate
from impls.words import number_of
from lessons.ddp import MOST_RANKS, MOST_ROWS, MOST_STEPS, too_large
from lessons.ddp_observed import Run, Seen, faults, loss_faults, seen_of, shown
from lessons.ddp_worker import Settings, work
from lessons.paths import PICTURES, trouble
from lessons.progress import counted
from lessons.ranks import came_to_no_end, ranks_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--world-size", type=int, default=4, metavar="N", help="ranks, 2 to 8 (default 4)")
    parser.add_argument("--num-steps", type=int, default=20, metavar="STEPS", help="optimizer steps (default 20)")
    parser.add_argument("--batch-size", type=int, default=8, metavar="ROWS", help="rows per rank and step (default 8)")
    parser.add_argument("--seed", type=int, default=77, help="of the model and of the data (default 77)")
    parser.add_argument("--impl", default="reference", metavar="NAME", help="whose block: a name or a path")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the curves as a picture as well (.svg or .png)")


def run(options: argparse.Namespace) -> int:
    """Print both curves; 0 when they are one, 1 when not, 2 for options of no use."""
    if reason := _unusable(options):
        print(reason, file=sys.stderr)
        return 2
    try:
        with ranks_of(options.impl) as on_ranks:
            seen = observe(_settings(options), on_ranks)
    except RanksFailed as failed:
        print(came_to_no_end(failed), file=sys.stderr)
        return 1
    print("\n".join(told(seen)))
    if options.plot:
        from lessons.data_parallel_picture import draw

        draw(seen, options.plot)
        print(f"\nThe picture is in {options.plot}")
    wrong = [*faults(seen), *loss_faults(seen)]
    print("\n" + "\n".join(wrong or ["The ranks train like one process."]))
    return 1 if wrong else 0


def observe(settings: Settings, on_ranks: Run) -> Seen:
    """Train on ranks; the single process follows from where they start."""
    limit_s = 60.0 + 0.05 * settings.num_steps
    with counted("step", settings.num_steps) as progress:
        arguments = dataclasses.asdict(settings), str(Path.cwd()), progress
        outcomes = on_ranks(work, settings.world_size, *arguments, bare=True, deadline_s=limit_s)
    return seen_of(outcomes.values, settings)


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        world_size=options.world_size,
        backend="gloo",
        num_steps=options.num_steps,
        batch_size=options.batch_size,
        seed=options.seed,
    )


def _unusable(options: argparse.Namespace) -> str:
    if not 2 <= options.world_size <= MOST_RANKS:
        return f"--world-size {options.world_size}: this lesson compares one process with 2 to {MOST_RANKS} ranks"
    for name, most in (("num_steps", MOST_STEPS), ("batch_size", MOST_ROWS)):
        if not 1 <= getattr(options, name) <= most:
            given = f"--{name.replace('_', '-')} {getattr(options, name)}"
            return f"{given}: this lesson takes a whole number from 1 to {most:,}"
    if reason := too_large(_settings(options)):
        return reason
    if options.plot and (reason := trouble("--plot", options.plot, PICTURES)):
        return reason
    try:
        locate(options.impl)
    except ImplementationError as error:
        return str(error)
    return ""


def told(seen: Seen) -> Iterator[str]:
    """Both curves as text, and how far they are apart."""
    settings = seen.settings
    yield (
        f"SGD on global batches of {settings.world_size * settings.batch_size} rows: one process, and "
        f"{number_of(settings.world_size, 'rank')} with {settings.batch_size} each"
    )
    yield ""
    yield f"{'step':>5} {'one process':>14} {number_of(settings.world_size, 'rank'):>14} {'difference':>12}"
    pairs = list(zip(seen.single_losses, seen.losses, strict=False))
    for step in shown(len(pairs)):
        alone, together = pairs[step]
        yield f"{step + 1:>5} {alone:>14.8f} {together:>14.8f} {abs(alone - together):>12.1e}"
    yield ""
    yield f"they differ by {seen.loss_difference:.1e} at most, the bound for rounding is {seen.loss_bound:.1e}"
