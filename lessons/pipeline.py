"""Lesson 79: a pipeline schedule as a Gantt chart, and its bubble.

N ranks, M microbatches. Each rank works off its list of actions, and idles where it needs what another rank has not
made yet. With equal stages 1F1B and GPipe idle for (N-1)/(M+N-1) of the total time, 27.3 % at the usual 4 and 8; zero
bubble schedules and DualPipe for less. All times are those of the simulated schedule, in any unit; --execute runs it on
real ranks as well.

    python -m lessons pipeline                                       1F1B, 4 ranks, 8 microbatches
    python -m lessons pipeline --schedule dualpipe --pair 5/2        a pair takes less than its two parts
    python -m lessons pipeline --compare                             all schedules at one size
    python -m lessons pipeline --curve                               the bubble by N and M
    python -m lessons pipeline --impl mine --schedule zb_h1          yours

Sources: GPipe (1811.06965); Megatron-LM (2104.04473); Zero Bubble (2401.10241); DeepSeek-V3 (2412.19437), 3.2.1.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from fixtures.world.outcome import RanksFailed
from fixtures.world.pool import WorldPool
from fixtures.world.server import Server
from impls.loading import load
from impls.locate import ImplementationError, locate
from impls.reference.pipeline.bubbles import NUM_MICROBATCHES, NUM_STAGES
from impls.reference.pipeline.costs import Costs, Number
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.simulate import Timeline, simulate
from impls.schedule_calls import NUM_CHUNKS
from lessons import pipeline_text as text
from lessons.paths import PICTURES, trouble
from lessons.pipeline_cells import Cell, simulated
from lessons.pipeline_executed import MOST_RANKS, executed, other_order, told
from lessons.pipeline_legal import Illegal, out_of_place, require
from lessons.pipeline_observed import Observed, constants, look, observed, of, sizes_of
from lessons.ranks import came_to_no_end

REFERENCE = "reference"
DEADLINE_S = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--schedule", choices=SCHEDULES, type=str.lower, default="1f1b", help="default 1f1b")
    parser.add_argument("--stages", type=int, metavar="N", help="ranks (default NUM_STAGES: 4)")
    parser.add_argument("--microbatches", type=int, metavar="M", help="of a step (default NUM_MICROBATCHES: 8)")
    parser.add_argument("--chunks", type=int, metavar="V", help="stages on each rank, interleaved_1f1b (default 2)")
    costs = parser.add_argument_group("what 1/N of the model takes for one microbatch (1, 5/2, 0.4)")
    costs.add_argument("--forward", type=_cost, default=Fraction(1), metavar="F", help="default 1")
    costs.add_argument("--input-gradient", type=_cost, default=Fraction(1), metavar="I", help="default 1")
    costs.add_argument("--weight-gradient", type=_cost, default=Fraction(1), metavar="W", help="default 1")
    costs.add_argument("--pair", type=_cost, metavar="FB", help="an overlapped pair (default F + I + W)")
    costs.add_argument("--latency", type=_cost, default=Fraction(0), metavar="C", help="of a message (default 0)")
    parser.add_argument("--impl", default=REFERENCE, metavar="NAME", help="whose schedule and bubble: a name or a path")
    parser.add_argument("--compare", action="store_true", help="all schedules at this size, in one table")
    parser.add_argument("--curve", action="store_true", help="the bubble by number of ranks and of microbatches")
    parser.add_argument("--execute", action="store_true", help="run it on gloo ranks too, and draw what they did")
    parser.add_argument("--width", type=int, metavar="COLUMNS", help="of the chart (default: the terminal's; 0: all)")
    parser.add_argument("--svg", type=Path, metavar="PATH", help="draw the chart as a picture as well (.svg or .png)")
    parser.add_argument("--trace", type=Path, metavar="PATH", help="write it for ui.perfetto.dev as well (.json)")


def run(options: argparse.Namespace) -> int:
    """Print what was asked for; 0, 1 when it is not as it should be, 2 for options of no use."""
    if reason := _unusable(options) or out_of_place(options):
        print(reason, file=sys.stderr)
        return 2
    options.chunks = NUM_CHUNKS if options.chunks is None else options.chunks
    try:
        if options.curve or options.compare:
            return _tables(options)
        return _one(options, _observe(options))
    except Illegal as error:
        print(error, file=sys.stderr)
        return 2
    except RanksFailed as failed:
        print(came_to_no_end(failed), file=sys.stderr)
        return 1


def _one(options: argparse.Namespace, seen: Observed) -> int:
    figures = costs(options)
    timeline, usual = timed(seen, figures), figures == Costs()
    charts: dict[str, list[Cell]] = {}
    if timeline is not None:
        print("\n".join(text.told(seen, timeline, _width(options), usual=usual)))
        charts["simulated"] = simulated(timeline)
    faults = list(text.troubles(seen, timeline, usual=usual))
    if options.execute and timeline is not None and not faults:
        if done := executed(options, timeline):
            charts["executed"] = done
            print("\n" + "\n".join(told(done, timeline, _width(options))))
            if seen.own and other_order(done, timeline.schedule):  # its own list; of another's, more than one is right
                faults.append(f"executed: not the order of its own {seen.name}")
        else:
            faults.append("executed: no stage has computed anything. See: pytest --claim=pipeline.equivalence")
    if charts:
        _write(seen, charts, options)
    if faults:
        print("\n" + "\n".join(faults))
    return 1 if faults else 0


def _write(seen: Observed, charts: dict[str, list[Cell]], options: argparse.Namespace) -> None:
    """The files that were asked for."""
    if not (options.svg or options.trace):
        return
    from lessons.pipeline_picture import draw, write_trace  # imports matplotlib

    if options.svg:
        draw({f"{seen.name}, {how}": chart for how, chart in charts.items()}, options.svg)
    if options.trace:
        write_trace(charts, options.trace)


def timed(seen: Observed, figures: Costs) -> Timeline | None:
    """The schedule's times; None for one that is not there, or in which ranks wait for ever."""
    if seen.schedule is None:
        return None
    try:
        return simulate(seen.schedule, figures.of_rank(seen.schedule))
    except ValueError:  # `troubles` tells what for
        return None


def costs(options: argparse.Namespace) -> Costs:
    """What was asked for."""
    return Costs(
        forward=options.forward,
        input=options.input_gradient,
        weight=options.weight_gradient,
        pair=options.pair,
        latency=options.latency,
    )


def _observe(options: argparse.Namespace) -> Observed:
    """The implementation's schedule, from a rank process; the reference needs none."""
    if options.impl == REFERENCE:
        reference = load(REFERENCE)
        return observed(of(reference, *_wanted(options, sizes_of(reference))))
    with Server.at_hand() as server, WorldPool(server) as pool:
        world = pool.world(1, impl=options.impl, trace=False)
        wanted = _wanted(options, world.run(constants, deadline_s=DEADLINE_S).values[0])
        return observed(world.run(look, *wanted, deadline_s=DEADLINE_S).values[0])


def _wanted(options: argparse.Namespace, usual: Mapping[str, int]) -> tuple[str, int, int, int]:
    """Name, N, M and chunks; `Illegal` where there is no such schedule."""
    sizes = (options.stages or usual["num_stages"], options.microbatches or usual["num_microbatches"])
    require(options.schedule, *sizes, options.chunks)
    return (options.schedule, *sizes, options.chunks)


def _tables(options: argparse.Namespace) -> int:
    from lessons import pipeline_tables as tables

    if options.curve:
        told = tables.curve(costs(options))
    else:
        told = tables.compared(
            options.stages or NUM_STAGES, options.microbatches or NUM_MICROBATCHES, options.chunks, costs(options)
        )
    print("\n".join(told))
    return 0


def _unusable(options: argparse.Namespace) -> str:
    for option, value in (("--stages", options.stages), ("--microbatches", options.microbatches)):
        if value is not None and value < 1:
            return f"{option} {value}: at least 1 is needed"
    try:
        locate(options.impl)
    except ImplementationError as error:
        return str(error)
    if options.execute and (options.stages or NUM_STAGES) > MOST_RANKS:
        return (
            f"--execute --stages {options.stages}: {MOST_RANKS} ranks can be run at most; without it there may be more"
        )
    for option, path, endings in (("--svg", options.svg, PICTURES), ("--trace", options.trace, (".json",))):
        if path and (reason := trouble(option, path, endings)):
            return reason
    return ""


def _width(options: argparse.Namespace) -> int | None:
    """Columns of the chart; None for as many as it takes."""
    if options.width is not None:
        return options.width or None
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _cost(given: str) -> Number:
    try:
        value = Fraction(given)
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{given!r} is no cost; write it like 1, 5/2 or 0.4") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{given!r} is below 0; a cost is at least 0")
    return value
