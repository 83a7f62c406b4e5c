"""Which strategy to train a model with on the devices that there are, and why.

First memory: 16 bytes per parameter in mixed precision with Adam, of which ZeRO shards 12, 14 or all, and activations.
Then the links: a step's computation and its collectives are simulated on a network of two levels, quick inside a node
and slower between nodes. The advice is the simplest layout that is not much slower than the quickest:

    1. replicas while they fit, sharding no more than has to be     choose.ddp, choose.zero1, choose.zero23
    2. FSDP alone where its gathering hides behind computation      choose.fsdp
    3. tensor parallelism inside a node                             choose.tensor
    4. a pipeline between nodes                                     choose.pipeline, choose.dualpipe, choose.dualpipev

For example 70 billion parameters on 64 devices of 80 GB, in nodes of 8:

    python -m lessons advise --params 70e9 --layers 80 --device-memory 80e9 --devices 64 --devices-per-node 8

Figures are of a model, not of your cluster: what is nearly as quick in the table may be quicker for you.
Sources: Rajbhandari et al. 2020 (ZeRO); Korthikanti et al. 2022 (activations); Narayanan et al. 2021 (degrees).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from impls.reference.advisor.choose import Advice, advise, told
from impls.reference.advisor.layouts import Option
from impls.reference.advisor.request import CHECKPOINTED
from impls.reference.network.presets import PRESETS
from impls.words import number_of
from lessons import quantities

GB = 1e9
SHOWN = 12  # rows of the table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    inside = [name for name, preset in PRESETS.items() if preset.inside]
    between = [name for name, preset in PRESETS.items() if not preset.inside]
    add("--params", required=True, metavar="P", help="parameters of the model, such as 70e9 or 7B")
    add("--layers", required=True, metavar="L", help="its layers")
    add("--hidden", metavar="H", help="width between layers (default: that of a transformer of this size)")
    add("--tokens", default="4096", metavar="T", help="in a microbatch of one replica (default 4096)")
    add("--microbatches", default="8", metavar="M", help="of one replica in a step (default 8)")
    add("--checkpointing", action="store_true", help="recompute activations: a layer keeps its input only")
    add("--device-memory", default="80GB", metavar="BYTES", help="of each device, such as 80e9 or 24GiB (default 80GB)")
    add("--devices", required=True, metavar="N", help="how many there are")
    add("--devices-per-node", default="8", metavar="N", help="as many are joined by the quick links (default 8)")
    add("--inside", default="nvlink4", choices=inside, help="links inside a node (default nvlink4)")
    add("--between", default="ib-ndr", choices=between, help="links between nodes (default ib-ndr)")
    add("--all-to-all", default="0", metavar="SHARE", help="experts' all-to-all as a share of computation (default 0)")


def run(options: argparse.Namespace) -> int:
    """Print the advice; 0, 1 when nothing fits, 2 for an option of no use."""
    try:
        figures = _figures(options)
        found = advise(**figures)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if found is None:
        print("Nothing fits: more devices, larger ones, fewer tokens in a microbatch, or --checkpointing.")
        return 1
    print("\n".join([*_heading(figures), "", *told_advice(found), "", *table(found)]))
    return 0


def _figures(options: argparse.Namespace) -> dict[str, Any]:
    near, far = PRESETS[options.inside].link, PRESETS[options.between].link
    figures: dict[str, Any] = {
        "num_parameters": quantities.read("--params", quantities.parameters, options.params),
        "num_layers": quantities.read("--layers", quantities.count, options.layers),
        "tokens": quantities.read("--tokens", quantities.count, options.tokens),
        "num_microbatches": quantities.read("--microbatches", quantities.count, options.microbatches),
        "device_bytes": quantities.read("--device-memory", quantities.num_bytes, options.device_memory),
        "world_size": quantities.read("--devices", quantities.count, options.devices),
        "ranks_per_node": quantities.read("--devices-per-node", quantities.count, options.devices_per_node),
        "latency_s": near.latency_s,
        "bandwidth": near.bandwidth,
        "between_latency_s": far.latency_s,
        "between_bandwidth": far.bandwidth,
        "all_to_all_share": quantities.read("--all-to-all", _share, options.all_to_all),
    }
    figures["ranks_per_node"] = min(figures["ranks_per_node"], figures["world_size"])
    width = max(1, round((figures["num_parameters"] / 12 / figures["num_layers"]) ** 0.5))
    figures["hidden"] = quantities.read("--hidden", quantities.count, options.hidden) if options.hidden else width
    if options.checkpointing:
        kept = CHECKPOINTED * figures["tokens"] * figures["hidden"] * figures["num_layers"]
        figures["activation_bytes"] = float(kept)
    return figures


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise ValueError(f"{text!r} is not a share; write it like 0.5 or 50%") from None


def _heading(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{number_of(figures['num_parameters'], 'parameter')} in {number_of(figures['num_layers'], 'layer')} of "
        f"width {figures['hidden']:,}; "
        f"{number_of(figures['num_microbatches'], 'microbatch')} of {figures['tokens']:,} tokens"
    )
    yield (
        f"{number_of(figures['world_size'], 'device')} of {figures['device_bytes'] / GB:,.6g} GB in nodes of "
        f"{figures['ranks_per_node']}; {figures['bandwidth'] / GB:g} GB/s inside, "
        f"{figures['between_bandwidth'] / GB:g} GB/s between"
    )


def told_advice(found: Advice) -> Iterator[str]:
    """The advice, its reasons, the claims that it follows, and the runner-up."""
    yield f"advice: {told(found.option)}" + (f", schedule {found.schedule}" if found.schedule else "")
    yield from (f"  - {reason}" for reason in found.reasons)
    yield f"follows: {', '.join(found.claims) or 'no claim of the cheatsheet'}"
    if found.runner_up is not None:
        ratio = found.runner_up.s_per_token / found.option.s_per_token
        yield f"runner-up: {told(found.runner_up)}, {ratio:.2f} times as long per token"


def table(found: Advice) -> Iterator[str]:
    """What was considered: data parallelism in every stage, and the quickest of what fits otherwise."""
    plain = [option for option in found.considered if option.layout.tp == option.layout.pp == 1]
    others = sorted((option for option in found.considered if option not in plain), key=lambda o: o.s_per_token)
    yield f"{'layout':<30} {'states':>9} {'beside':>9} {'fits':>5} {'step':>9} {'computes':>8} {'per token':>10}"
    yield from (_row(option, found) for option in [*plain, *_with(found.option, others[:SHOWN])])
    yield ""
    yield "states, and activations and gathered layers beside them, are GB on a device; computes: the share of a step"
    yield "in which a device does; per token: the time that all devices together take, against the advice"


def _with(chosen: Option, others: Sequence[Option]) -> list[Option]:
    is_plain = chosen.layout.tp == chosen.layout.pp == 1
    return list(others) if is_plain or chosen in others else [*others, chosen]


def _row(option: Option, found: Advice) -> str:
    mark = "  <- advised" if option == found.option else ""
    return (
        f"{told(option):<30} {option.states_bytes / GB:>9,.1f} {option.other_bytes / GB:>9,.1f} "
        f"{'yes' if option.fits else 'no':>5} {option.time.total_s:>8.3g}s "
        f"{option.time.compute_s / option.time.total_s:>8.0%} "
        f"{option.s_per_token / found.option.s_per_token:>9.2f}x{mark}"
    )
