"""What is called beside a name of the contract, in words: before a step, after backward, once at the beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from impls.contract import ENTRIES
from impls.contract.methods import (
    AFTER_BACKWARD,
    BATCH_START,
    BEGIN_METHODS,
    FSDP_SYNC_FUNCTIONS,
    GATHER_FUNCTIONS,
    GATHER_METHODS,
    SYNC_METHODS,
    SYNC_SWITCHES,
)
from impls.definitions import is_library, is_stub
from impls.handover import bindings
from impls.step_forms import schedule_methods, stage_class, step_method

if TYPE_CHECKING:
    from impls.loading import Implementation


def calls(impl: Implementation) -> dict[str, list[str]]:
    """By name of the contract that is provided, one sentence for each further call."""
    found = {}
    for name, tell in (("DataParallel", _wrapper), ("fully_shard", _sharded), ("train_step", _pipeline)):
        if (value := impl.get(name)) is not None:
            found[name] = tell(impl, value)
    if (state := impl.state_function) is not None:
        found[""] = [f"once, before anything else: {state.__name__}()"]
    return found


def _wrapper(impl: Implementation, value: Any) -> list[str]:
    course = getattr(value, "__name__", "").removeprefix("get_")
    begin = _method(value, BEGIN_METHODS) or _function(impl, (course + BATCH_START,))
    finish = _method(value, SYNC_METHODS) or _function(impl, (course + AFTER_BACKWARD,))
    deferred = _method(value, ("no_sync",)) or _method(value, SYNC_SWITCHES)
    told = [f"before a step: {begin}"] if begin else []
    told.append(f"after backward: {finish}" if finish else _unseen(value))
    return [*told, f"microbatches before the last: {deferred}"] if deferred else told


def _unseen(value: Any) -> str:
    if not isinstance(value, type):
        return "after backward: what its result has for that, if anything"
    return "after backward: nothing, as it has none of the methods that are known; hooks are taken to do it all"


def _sharded(impl: Implementation, value: Any) -> list[str]:
    finish = _method(value, SYNC_METHODS) or _function(impl, FSDP_SYNC_FUNCTIONS)
    whole = _method(value, GATHER_METHODS) or _function(impl, GATHER_FUNCTIONS)
    return [
        f"after backward: {finish}" if finish else "after backward: nothing",
        f"whole parameters: {whole}" if whole else "whole parameters: read in each layer's forward pass",
    ]


def _pipeline(impl: Implementation, value: Any) -> list[str]:
    if not isinstance(value, type):
        made = stage_class(value)
        return [f"its stage: {made.__name__}({_handed(made)})"] if made else []
    by_schedule = [f"a step of {schedule}: {name}()" for schedule, name in schedule_methods(value).items()]
    step = step_method(value)
    return [*by_schedule, *([f"a step: {step}()"] if step else [])]


def _handed(made: type) -> str:
    given = {name: key for name, key in bindings(made, ENTRIES["train_step"]).items() if key}
    return ", ".join(name if name == key else f"{name}={key}" for name, key in given.items())


def _method(value: Any, names: tuple[str, ...]) -> str:
    if not isinstance(value, type):
        return ""
    own = {name: each for base in reversed(value.__mro__) if not is_library(base) for name, each in vars(base).items()}
    found = next((name for name in names if callable(own.get(name)) and not is_stub(own[name])), "")
    return f"{found}()" if found else ""


def _function(impl: Implementation, names: tuple[str, ...]) -> str:
    homes = ((name, getattr(module, name, None)) for name in names for module in impl.modules)
    return next((f"{name}()" for name, value in homes if callable(value) and not is_stub(value)), "")
