"""A pipeline written as a class: which of its methods is a training step, and what is said of one that has none.

A class with ``forward`` and ``backward`` of one microbatch is half a pipeline: the order of the two, and who sends
what, lie with its caller. A function that is annotated with it (``stage: PipelineStage``) is one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from impls.contract import ENTRIES, Entry
from impls.contract.methods import STEP_METHODS
from impls.contract.names import SCHEDULE_FUNCTIONS
from impls.contract.parameters import SYNONYMS
from impls.definitions import is_library, is_stub
from impls.handover import bindings, cannot_be_called

STEP = Entry(
    name="step", block="pipeline", aliases=STEP_METHODS, orders=(("microbatches", "targets", "loss_fn"),), doc=""
)
_OF_ONE_MICROBATCH = ("forward", "backward")
_CALLER = "train_step(stage, microbatches, targets, loss_fn, rank, world_size)"
_STAGE_NAMES = ("stage", *SYNONYMS["stage"])


def step_method(cls: type) -> str:
    """The method that does a training step; what a class of PyTorch's brings along (``nn.Module.train``) is none."""
    return next((name for name in STEP_METHODS if _is_written(cls, name)), "")


def schedule_methods(cls: type) -> Mapping[str, str]:
    """By schedule, the method that is called after it: ``train_gpipe``, ``run_1f1b``."""
    found = {name: [each for each in names if _is_written(cls, each)] for name, names in SCHEDULE_FUNCTIONS.items()}
    return {name: methods[0] for name, methods in found.items() if methods}


def is_of_one_microbatch(value: Any) -> bool:
    """Whether it is a class that has ``forward`` and ``backward`` of its own, and no step made of them."""
    return (
        inspect.isclass(value)
        and all(_is_written(value, name) for name in _OF_ONE_MICROBATCH)
        and not step_method(value)
        and not schedule_methods(value)
    )


def no_step(cls: type) -> str:
    """Why a class cannot be asked for a training step, and the smallest thing that would do; empty where it can."""
    if step_method(cls) or schedule_methods(cls):
        return ""
    if not is_of_one_microbatch(cls):
        return f"{cls.__name__} has no method {', '.join(STEP_METHODS)}"
    forward, backward = (f"{name}{_told_parameters(vars_of(cls)[name])}" for name in _OF_ONE_MICROBATCH)
    return (
        f"{cls.__name__} has {forward} and {backward} for one microbatch, and no step of all: their order, the loss "
        f"and the messages between stages are left to a caller, and none is here. Add a method "
        f"step(self, microbatches, targets, loss_fn) that returns the losses, or beside the class a function "
        f"{_CALLER} that makes the object by {_made(cls)}"
    )


def stage_class(target: Callable[..., Any]) -> type | None:
    """The class of this name of one's own that a function wants its stage to be, as its annotation says."""
    parameter = _stage_parameter(target)
    wanted = parameter.annotation if parameter is not None else None
    return wanted if inspect.isclass(wanted) and is_of_one_microbatch(wanted) and _can_be_made(wanted) else None


def which_stage(target: Callable[..., Any], classes: list[type]) -> str:
    """What has to be said of a function beside such a class: whether its stage is a module, or an object of the class.

    Empty where the function says so: by its annotation, or by making the object itself.
    """
    parameter = _stage_parameter(target) if inspect.isfunction(target) else None
    if parameter is None or parameter.annotation is not parameter.empty:
        return ""
    beside = [cls for cls in classes if is_of_one_microbatch(cls) and cls.__name__ not in target.__code__.co_names]
    if not beside:
        return ""
    name, cls = target.__name__, beside[0].__name__
    return (
        f"{name} may take the module of a stage as {parameter.name!r}, or a {cls} made of it, and nothing tells which. "
        f"Annotate it, as in {name}({parameter.name}: {cls}, ...), or say that it is the module: "
        f'adapters = {{"train_step": "{name}"}}'
    )


def vars_of(cls: type) -> dict[str, Any]:
    """What a class and its bases outside of libraries define, by name."""
    return {name: v for base in reversed(cls.__mro__) if not is_library(base) for name, v in vars(base).items()}


def _is_written(cls: type, name: str) -> bool:
    value = vars_of(cls).get(name)
    return callable(value) and not is_stub(value)


def _stage_parameter(target: Callable[..., Any]) -> inspect.Parameter | None:
    try:
        found = inspect.signature(target, eval_str=True).parameters
    except (TypeError, ValueError, NameError, AttributeError, SyntaxError):
        return None
    return next((found[name] for name in _STAGE_NAMES if name in found), None)


def _can_be_made(cls: type) -> bool:
    return cannot_be_called(cls, ENTRIES["train_step"]) is None


def _made(cls: type) -> str:
    filled = [f"{name}={given}" for name, given in bindings(cls, ENTRIES["train_step"]).items() if given]
    return f"{cls.__name__}({', '.join(filled) or '...'})"


def _told_parameters(function: Any) -> str:
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return f"({', '.join(names)})"
