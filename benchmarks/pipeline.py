"""Pipeline schedules at size, written and simulated: seconds, memory, and that the cost is linear in the actions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Ratio, benchmark, interleaved, seconds
from impls.reference.pipeline.names import SCHEDULES
from impls.reference.pipeline.simulate import simulate

ROOT = Path(__file__).resolve().parents[1]
RANKS, MICROBATCHES = 1024, 8192
ALONE = """
from pathlib import Path
from benchmarks.pipeline import written_and_simulated
written_and_simulated({name!r}, {ranks}, {microbatches})
status = Path("/proc/self/status").read_text()
print(status.split("VmHWM:")[1].split()[0])
"""


def written_and_simulated(name: str, num_ranks: int, num_microbatches: int) -> None:
    """What is measured: from the name of a schedule to its makespan and its bubble."""
    timeline = simulate(SCHEDULES[name](num_ranks, num_microbatches))
    assert timeline.bubble_share() > 0


def peak_bytes(name: str) -> int:
    """The most memory of a process that does this and nothing else, torch's own included.

    Not ru_maxrss: that of a fresh process begins with what its parent had.
    """
    program = ALONE.format(name=name, ranks=RANKS, microbatches=MICROBATCHES)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024  # in kB, which are KiB


@benchmark("pipeline")
def schedules_at_size() -> Iterator[Ratio]:
    """All eight schedules on 1024 ranks with 8192 microbatches, 16 to 50 million actions each."""
    actions = {name: int(SCHEDULES[name](RANKS, MICROBATCHES).lengths.sum()) for name in SCHEDULES}
    took = {}
    for name, count in actions.items():
        took[name] = seconds(lambda name=name: written_and_simulated(name, RANKS, MICROBATCHES), repeat=3)  # type: ignore[misc]
        yield Ratio(
            name=f"pipeline.{name}-1024x8192",
            value=took[name],
            unit="s",
            against=f"nothing; {count / 1e6:.1f} M actions, {took[name] / count * 1e9:.0f} ns each",
            target="<= 1.5" if name in {"gpipe", "1f1b"} else "",
        )
    yield Ratio(name="pipeline.all-1024x8192", value=sum(took.values()), unit="s", against="nothing", target="<= 15")
    for name in ("gpipe", "1f1b"):
        value = peak_bytes(name) / 1e9
        yield Ratio(
            name=f"pipeline.{name}-memory", value=value, unit="GB", against="nothing; torch included", target="<= 1"
        )
    for name in SCHEDULES:
        yield linear(name)


def linear(name: str) -> Ratio:
    """Time per action for four times the microbatches, against that for few."""
    few, many = MICROBATCHES // 4, MICROBATCHES

    def per_action(num_microbatches: int) -> float:
        count = int(SCHEDULES[name](RANKS, num_microbatches).lengths.sum())
        return seconds(lambda: written_and_simulated(name, RANKS, num_microbatches), repeat=1) / count

    at_few, at_many = interleaved(lambda: per_action(few), lambda: per_action(many), repeat=3)
    return Ratio(
        name=f"pipeline.{name}-per-action",
        value=at_many / at_few,
        unit="times the time",
        against=f"{few} microbatches ({at_few * 1e9:.0f} ns)",
        target="<= 1.3",
    )
