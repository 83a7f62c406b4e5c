"""Lesson 48: data parallelism, with two ranks that start apart, are broadcast together, and stay so.

Each of N ranks has the whole model and reads rows of its own. They begin with different parameters; a broadcast makes
all of them rank 0's. After each backward an all-reduce adds up the gradients, and dividing by N gives

    g = (g_0 + g_1 + ... + g_{N-1}) / N

the gradient of one process on the global batch of N times the rows. Equal parameters and equal gradients stay equal: at
the end the spread, the largest difference between the ranks' sums of parameters, is below 1e-3. Without the all-reduce
it is not, and the lesson shows by how much. At last a model is sharded as FSDP does, and gathered again.

    python -m lessons ddp                               two ranks, six steps; writes outputs/ddp-demo.json
    python -m lessons ddp --world-size 4 --no-write     four ranks, no file
    python -m lessons ddp --impl ../homework/ddp.py     yours: its train, or its DataParallel, or its functions

An option that is not given has the value that the implementation defines (DEFAULT_WORLD_SIZE, DEFAULT_BACKEND,
DEFAULT_NUM_STEPS, DEFAULT_BATCH_SIZE), or else the one named below. The file follows lessons/ddp-demo.schema.json, and
is written only when all is as it should be. Source: Li et al. 2020 (PyTorch Distributed), sections 2.2 and 3.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fixtures.world.outcome import RanksFailed
from impls.locate import ImplementationError, locate
from impls.words import number_of
from lessons.ddp_file import as_json, write
from lessons.ddp_observed import MAX_SPREAD, Run, Seen, faults, gradient_faults, seen_of, shown
from lessons.ddp_worker import Settings, constants, round_trip, work
from lessons.paths import trouble
from lessons.progress import counted
from lessons.ranks import Say, came_to_no_end, ranks_of

OUTPUT = Path("outputs/ddp-demo.json")
MOST_RANKS, MOST_STEPS, MOST_ROWS = 8, 1_000, 4_096
MOST_IN_ALL = 1_000_000  # rows of the data set, which every rank has
USUAL: Mapping[str, Any] = {"world_size": 2, "backend": "gloo", "num_steps": 6, "batch_size": 8}
BACKENDS = ("gloo", "nccl")


class Unusable(ValueError):
    """Options, or defaults of the implementation, with which the lesson cannot be run; says what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--world-size", type=int, metavar="N", help="ranks, 1 to 8 (default 2)")
    parser.add_argument("--backend", choices=BACKENDS, help="nccl needs a CUDA device for each rank (default gloo)")
    parser.add_argument("--num-steps", type=int, metavar="STEPS", help="optimizer steps (default 6)")
    parser.add_argument("--batch-size", type=int, metavar="ROWS", help="rows per rank and step (default 8)")
    parser.add_argument("--seed", type=int, default=48, help="of the model and of the data (default 48)")
    parser.add_argument("--impl", default="reference", metavar="NAME", help="whose block: a name or a path")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="PATH", help=f"default {OUTPUT}")
    parser.add_argument("--no-write", action="store_true", help="print, and leave the file alone")


def run(options: argparse.Namespace) -> int:
    """Train, print, write; 0, 1 when the ranks are not as they should be, 2 for options of no use."""
    try:
        _check(options)
        _check_output(options, Path.cwd())
        locate(options.impl)
        with ranks_of(options.impl) as on_ranks:
            return perform(options, on_ranks)
    except (Unusable, ImplementationError) as error:
        print(error, file=sys.stderr)
        return 2
    except RanksFailed as failed:
        print("\n".join(filter(None, [came_to_no_end(failed), _untouched(options)])), file=sys.stderr)
        return 1


def perform(options: argparse.Namespace, on_ranks: Run, home: Path | None = None, say: Say = print) -> int:
    """The lesson on ranks that are there, in the folder `home` (default: where we are): 0, or 1 for what is wrong.

    Raises `Unusable`.
    """
    home = home or Path.cwd()
    _check(options)
    _check_output(options, home)
    settings = resolved(options, on_ranks)
    seen, trip = observe(settings, on_ranks, home)
    say("\n".join(told(seen, trip)))
    wrong = [*faults(seen), *gradient_faults(seen), *faults_of_round_trip(trip)]
    if not wrong and not options.no_write:
        path = home / options.output
        try:
            write(as_json(seen, trip, options.impl), path)
        except OSError as error:
            wrong.append(f"{path} cannot be written: {error.strerror}. Give another path with --output, or --no-write")
        else:
            say(f"\nThe figures are in {path}")
    if wrong:
        say("\n" + "\n".join(filter(None, [*wrong, _untouched(options)])))
    return 1 if wrong else 0


def observe(settings: Settings, on_ranks: Run, home: Path) -> tuple[Seen, dict[str, Any]]:
    """Train on ranks, then send a model through FSDP and back."""
    limit_s = 60.0 + 0.05 * settings.num_steps
    with counted("step", settings.num_steps) as progress:
        outcomes = on_ranks(
            work,
            settings.world_size,
            dataclasses.asdict(settings),
            str(home),
            progress,
            bare=True,
            deadline_s=limit_s,
        )
    trips = on_ranks(round_trip, settings.world_size, settings.seed, deadline_s=60.0).values
    worst = max(trips, key=lambda trip: (bool(trip["reason"]), not trip.get("equal", True)))
    return seen_of(outcomes.values, settings), worst


# -- options -----------------------------------------------------------------------------------------------------------


def resolved(options: argparse.Namespace, on_ranks: Run) -> Settings:
    """The options, and for those not given the implementation's defaults or else the usual ones. Raises `Unusable`."""
    given = {name: getattr(options, name) for name in USUAL if getattr(options, name) is not None}
    if missing := [name for name in USUAL if name not in given]:
        own = on_ranks(constants, 1).values[0]
        for name in missing:
            given[name] = own.get(f"DEFAULT_{name.upper()}", USUAL[name])
    _check(argparse.Namespace(**{**vars(options), **given}), whose=f"{options.impl}'s default of ")
    settings = Settings(seed=options.seed, **given)
    if reason := too_large(settings):
        raise Unusable(reason)
    return settings


def _check(options: argparse.Namespace, whose: str = "") -> None:
    """Raise `Unusable` for what cannot be run; looks for CUDA devices before any process starts."""
    for name, most in (("world_size", MOST_RANKS), ("num_steps", MOST_STEPS), ("batch_size", MOST_ROWS)):
        value = getattr(options, name)
        if value is not None and not (type(value) is int and 1 <= value <= most):
            raise Unusable(f"{whose}{_option(name)} {value}: this lesson takes a whole number from 1 to {most:,}")
    if options.backend is not None and options.backend not in BACKENDS:
        raise Unusable(f"{whose}--backend {options.backend}: this lesson runs on {' or '.join(BACKENDS)}")
    if options.backend == "nccl" and (have := _num_devices()) < (options.world_size or 1):
        raise Unusable(
            f"{whose}--backend nccl: NCCL moves tensors between CUDA devices, one for each rank, and this machine has "
            f"{have}. Use --backend gloo, which runs on any "
            f"CPU{', or at most ' + number_of(have, 'rank') if have else ''}"
        )


def _check_output(options: argparse.Namespace, home: Path) -> None:
    """Raise `Unusable` for a file that could not be written in the end."""
    if not options.no_write and (wrong := trouble("--output", home / options.output, makes_folders=True)):
        raise Unusable(f"{wrong}, or --no-write")


def too_large(settings: Settings) -> str:
    """Why there are too many rows to be kept on every rank; empty when there are not."""
    if settings.num_rows <= MOST_IN_ALL:
        return ""
    return (
        f"{number_of(settings.num_steps, 'step')} of {number_of(settings.world_size, 'rank')} with --batch-size "
        f"{settings.batch_size} read "
        f"{number_of(settings.num_rows, 'row')}; this lesson has {MOST_IN_ALL:,} at most: take fewer steps or rows"
    )


def _num_devices() -> int:
    import torch

    return torch.cuda.device_count()


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _untouched(options: argparse.Namespace) -> str:
    return "" if options.no_write else f"Nothing was written: {options.output} is as it was before."


# -- text --------------------------------------------------------------------------------------------------------------


def told(seen: Seen, trip: Mapping[str, Any]) -> Iterator[str]:
    """What was observed, line by line."""
    settings = seen.settings
    yield (
        f"{number_of(settings.world_size, 'rank')} on {settings.backend}, {number_of(settings.num_steps, 'step')} "
        f"of SGD, {settings.batch_size} "
        f"rows per rank: a global batch of {settings.world_size * settings.batch_size}"
    )
    yield ""
    yield f"{'step':>5} {'loss':>10} {'|gradient|':>11}   after the all-reduce"
    count = min(len(seen.losses), len(seen.gradient_norms))
    for step in shown(count):
        yield f"{step + 1:>5} {seen.losses[step]:>10.6f} {seen.gradient_norms[step]:>11.6f}"
    yield ""
    for rank, total in enumerate(seen.parameter_sums):
        yield f"rank {rank}: sum of parameters {total:+.9f}"
    yield f"spread {seen.spread:.3g}, below {MAX_SPREAD:g}; without the all-reduce {seen.spread_without_all_reduce:.3g}"
    yield (
        f"the gradient differs from that of one process on the global batch by {seen.gradient_difference:.1e} at most; "
        f"rounding explains {seen.gradient_bound:.1e}"
    )
    yield (
        f"FSDP: {trip['reason']}"
        if trip["reason"]
        else f"FSDP: {number_of(trip['num_parameters'], 'parameter')} sharded and gathered "
        + ("are the same" if trip["equal"] else f"differ by {trip['largest_difference']:.3g}")
    )


def faults_of_round_trip(trip: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the parameters that were sharded and gathered."""
    if not trip["reason"] and not trip["equal"]:
        yield (
            f"parameters that FSDP sharded and gathered are not what they were: they differ by "
            f"{trip['largest_difference']:.3g}. See: pytest --claim=strategies.fsdp.*"
        )
