"""Asking for advice on many configurations at once, and judging it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.checks import Judge, Subject
from conformance.choose.advice_programs import ask, asks_for
from conformance.choose.configurations import Configuration, shared
from conformance.verdict import Witness
from impls.words import number_of

Advice = Mapping[str, Any]
GB = 1e9


def advice_for(subject: Subject, configurations: Sequence[Configuration]) -> list[Advice | None]:
    """What the implementation advises for each."""
    (answers,) = subject.run(ask, 1, configurations, bare=True, trace=False, deadline_s=60.0).values
    return list(answers)


def judge_each(
    subject: Subject,
    judge: Judge,
    configurations: Sequence[Configuration],
    fault: Callable[[Configuration, Advice | None], str],
    *,
    condition: str,
    expected: str,
    decided_by: str = "",
) -> list[Advice | None]:
    """Every configuration gets advice without fault; the condition is named in the evidence.

    An advisor that does not ask for the figure in `decided_by` says nothing about what this figure alone decides.
    """
    answers = advice_for(subject, configurations)
    for given, advice in zip(configurations, answers, strict=True):
        if why := fault(given, advice):
            if decided_by and not subject.run(asks_for, 1, decided_by, given, bare=True, trace=False).values[0]:
                judge.not_provided(f"advise does not ask for {decided_by}, which decides here: {why}")
            judge.violated(
                f"{why}: {described(given)}",
                expected=f"{expected}, where {condition}",
                observed=told(advice),
                witness=Witness.MODEL,
                data={"configuration": given},
            )
    judge.holds(
        expected=f"{expected}, where {condition}",
        observed=_counted(answers),
        witness=Witness.MODEL,
        examples=len(configurations),
        message=f"{len(configurations)} configurations in which {condition}",
    )
    return answers


def is_replicated(advice: Advice) -> bool:
    """Whether nothing but data parallelism is advised."""
    return bool(advice["tp"] == advice["pp"] == 1)


def is_piped(advice: Advice) -> bool:
    """Whether a pipeline is advised, of a degree that may be unknown."""
    return bool(advice["pp"] is None or advice["pp"] > 1)


def impossible(given: Configuration, advice: Advice | None) -> str:
    """Why the devices cannot do as advised, if the model is cut up; empty where they can, or no degree is said."""
    if advice is None or advice["tp"] is None or advice["pp"] is None or is_replicated(advice):
        return ""
    cut, size = advice["tp"] * advice["pp"], given["world_size"]
    if not (advice["tp"] >= 1 and advice["pp"] >= 1 and cut * max(1, advice["dp"]) <= size):
        return f"there are {number_of(size, 'device')}"
    if advice["pp"] > given["num_layers"]:
        return f"there are {number_of(given['num_layers'], 'layer')}, less than stages"
    held = shared(advice["stage"], size / cut) * given["num_parameters"] / cut
    if held > given["device_bytes"]:
        return f"the states alone take {held / given['device_bytes']:.2f} devices' memory"
    return ""


def told(advice: Advice | None) -> str:
    """Advice in a few words."""
    if advice is None:
        return "nothing fits"
    schedule = f", {advice['schedule']}" if advice["schedule"] else ""
    degrees = ", ".join(f"{name} {'?' if advice[name] is None else advice[name]}" for name in ("tp", "pp"))
    return f"stage {advice['stage']}, {degrees}{schedule}"


def described(given: Configuration) -> str:
    """A configuration in a few words."""
    return (
        f"{given['num_parameters']:.3g} parameters, {number_of(given['world_size'], 'device')} of "
        f"{given['device_bytes'] / GB:g} GB "
        f"in nodes of {given['ranks_per_node']}, activations {given['activation_bytes'] / GB:.3g} GB, "
        f"{given['between_bandwidth'] / GB:g} GB/s between nodes, "
        f"{number_of(given['num_microbatches'], 'microbatch')}, "
        f"all-to-all {given['all_to_all_share']:.0%}"
    )


def _counted(answers: Sequence[Advice | None]) -> str:
    kinds: dict[str, int] = {}
    for advice in answers:
        key = "nothing fits" if advice is None else _kind(advice)
        kinds[key] = kinds.get(key, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items(), key=lambda item: -item[1]))


def _kind(advice: Advice) -> str:
    words = [f"stage {advice['stage']}"] + [name for name in ("tp", "pp") if advice[name] != 1]
    return " ".join([*words, advice["schedule"]]).strip()
