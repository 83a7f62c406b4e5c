"""One way to run a training step of any implementation's pipeline: a function or a class, whatever it asks for.

    driver = pipeline(impl, [stage], loss_fn, schedule="1f1b", rank=rank, world_size=world_size)
    losses = driver.step(microbatches, targets)  # the gradients are in the .grad of the stage's parameters

What is understood beside the contract's ``train_step``: functions for one schedule each (`SCHEDULE_FUNCTIONS`), a class
whose object has one of `STEP_METHODS` or a method for one schedule each, a whole batch with the number of microbatches
in place of a list of them, and a stage that is an object of a class of one's own (see `step_forms`).
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from impls import mesh
from impls.contract import ENTRIES, Entry
from impls.contract.names import SCHEDULE_FUNCTIONS
from impls.contract.parameters import BATCH_PARAMETERS, COUNT_PARAMETERS, LIST_PARAMETERS, STAGE_LIST_PARAMETERS
from impls.definitions import is_stub
from impls.handover import NotProvided, arguments, takes, takes_any_keyword
from impls.loading import Implementation
from impls.normalise import UnusableResult
from impls.step_forms import STEP, schedule_methods, stage_class, step_method

Copies = Mapping[nn.Parameter, Sequence[int]]
USUAL = "1f1b"
OWN_CHOICE = ("gpipe", USUAL)  # what a pipeline that is not told a schedule may be running
_TORCH, _MESH = Path(torch.__file__).parent, Path(mesh.__file__)
NOT_OFFERED = "and nothing of the kind for"  # a schedule


def pipeline(
    impl: Implementation,
    stages: Sequence[nn.Module],
    loss_fn: Callable[[Any, Any], Tensor],
    *,
    schedule: str,
    rank: int,
    world_size: int,
    group: dist.ProcessGroup | None = None,
    tied: Copies | None = None,
) -> Driver:
    """The implementation's pipeline over `stages`, this rank's modules in order of stage number, under `schedule`.

    `tied` is None where no weight is tied, on every rank alike, and may be empty on ranks that hold no copy. Raises
    `NotProvided` for a schedule or an argument that the implementation does not take; what it says of a schedule only
    when it runs comes from `Driver.step`.
    """
    if (reason := impl.reason("train_step")) is not None:
        raise NotProvided(reason)
    target, named = _target(impl, schedule)
    available = {
        "stage": list(stages) if len(stages) > 1 else stages[0],
        "loss_fn": loss_fn,
        "schedule": schedule,
        "rank": rank,
        "world_size": world_size,
        "group": group,
        "tied": tied or None,
        "num_stages": world_size * (1 if schedule == "dualpipe" else len(stages)),
        "is_first": rank == 0,
        "is_last": rank == world_size - 1,
        "stage_index": rank,
    }
    driver = Driver(impl, target, available, schedule if named else "")
    if not named and not driver.takes("schedule"):
        if schedule not in OWN_CHOICE or len(stages) > 1:
            raise NotProvided(f"{impl.name}'s {_name(target)} takes no schedule, so it cannot be asked for {schedule}")
    elif driver.takes("schedule"):
        driver.schedule_name = schedule
    if tied is not None and not driver.takes("tied"):
        raise NotProvided(f"{impl.name}'s {_name(target)} takes no tied, so it cannot know of weights that ranks share")
    return driver


class Driver:
    """A pipeline of one rank. `schedule_name` is what it was asked for; empty where it runs an order of its own."""

    def __init__(
        self, impl: Implementation, target: Callable[..., Any], available: Mapping[str, Any], schedule_name: str
    ) -> None:
        self.schedule_name = schedule_name
        self._impl, self._target, self._available = impl, target, dict(available)
        self._method = None
        if inspect.isclass(target):  # its author's step, under this schedule where it is called after it
            self._method = schedule_methods(target).get(schedule_name) or step_method(target)
        self._stage_class = stage_class(target) if self._method is None else None
        self._objects: dict[int, Any] = {}  # of a class, by number of microbatches

    def takes(self, parameter: str) -> bool:
        """Whether the function, or the class or its method, asks for `parameter`."""
        return any(takes(each, parameter) or takes_any_keyword(each) for each in self._callables())

    def stands_in_for(self, schedule: str) -> str:
        """Why there is nothing more to examine: it runs one order whatever is asked for. Empty where there is."""
        if self.schedule_name or schedule == USUAL:
            return ""
        return (
            f"{self._impl.name}'s {_name(self._target)} takes no schedule: what it trains is examined once, as {USUAL}"
        )

    def step(self, microbatches: Sequence[Any], targets: Sequence[Any]) -> list[Tensor]:
        """Forward and backward of all microbatches: the losses that were returned here, or their mean alone.

        Raises what the implementation raises, ValueError for a number of microbatches that its schedule does not allow;
        `NotProvided` for its NotImplementedError, and for microbatches that cannot be handed over in its form.
        """
        count = len(microbatches)
        available = self._available | self._data(microbatches, targets)
        if self._stage_class is not None:
            if count not in self._objects:
                self._objects[count] = self._call(self._stage_class, ENTRIES["train_step"], available)
            available["stage"] = self._objects[count]
        if self._method is None:
            return losses_of(self._call(self._target, ENTRIES["train_step"], available), _name(self._target))
        if count not in self._objects:
            self._objects[count] = self._call(self._target, ENTRIES["train_step"], available)
        method = getattr(self._objects[count], self._method)
        return losses_of(self._call(method, STEP, available), f"{_name(self._target)}.{self._method}")

    def _callables(self) -> list[Callable[..., Any]]:
        return [self._target] if self._method is None else [self._target, getattr(self._target, self._method)]

    def _call(self, target: Callable[..., Any], entry: Entry, available: Mapping[str, Any]) -> Any:
        listed = next((name for name in STAGE_LIST_PARAMETERS if name in _parameters(target)), None)
        if listed is not None and isinstance(available["stage"], nn.Module):
            available = {**available, listed: [available["stage"]]}
        args, kwargs = arguments(target, entry, available)
        return self._impl.invoke(target, *args, **kwargs)

    def _data(self, microbatches: Sequence[Any], targets: Sequence[Any]) -> dict[str, Any]:
        """Inputs and targets under the names that are asked for: lists, or whole batches beside their number."""
        names = [name for each in self._callables() for name in _parameters(each)]
        whole = next((name for name in BATCH_PARAMETERS if name in names), None)
        counted = [name for name in COUNT_PARAMETERS if name in names]
        if whole is None or not counted or any(name in names for name in LIST_PARAMETERS):
            counts = dict.fromkeys((name for name in counted if name != "chunks"), len(microbatches))
            return {"microbatches": list(microbatches), "targets": list(targets), **counts}
        sizes = {len(each) for each in microbatches if isinstance(each, Tensor)}
        if len(sizes) != 1 or not all(isinstance(each, Tensor) for each in (*microbatches, *targets)):
            raise NotProvided(
                f"{self._impl.name}'s {_name(self._target)} takes one batch and a number of microbatches: "
                "it cannot be given microbatches of several sizes or of several tensors"
            )
        return {
            whole: torch.cat(list(microbatches)),
            "targets": torch.cat(list(targets)),
            **dict.fromkeys(counted, len(microbatches)),
        }


@contextlib.contextmanager
def refusals(what: str) -> Iterator[None]:
    """Around steps that an implementation may refuse, by a ValueError of its own: that becomes `NotProvided`."""
    try:
        yield
    except ValueError as error:
        if not was_meant(error):
            raise
        raise NotProvided(f"{what} is refused: {error}") from error


def was_meant(error: ValueError) -> bool:
    """Whether a ValueError is a refusal: raised by a statement of whoever wrote the pipeline, or of torch's pipelines.

    One that Python, a mesh or the rest of PyTorch raises on the way (a wrong peer, a short list) is a crash.
    """
    traceback = error.__traceback__
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    file = Path(traceback.tb_frame.f_code.co_filename)
    pipelines_of_torch = _TORCH / "distributed" / "pipelining"
    if file == _MESH or (file.is_relative_to(_TORCH) and not file.is_relative_to(pipelines_of_torch)):
        return False
    line = linecache.getline(str(file), traceback.tb_lineno)
    return line.lstrip().startswith("raise") or "ValueError(" in line


def losses_of(result: Any, name: str = "it") -> list[Tensor]:
    """The losses that a step returned, as tensors without dimensions: a list, one tensor, numbers, or one mean."""
    if result is None:
        return []
    if isinstance(result, Mapping):
        found = next((result[key] for key in ("losses", "loss") if key in result), None)
        return losses_of(found, name)
    if isinstance(result, Tensor):
        return list(result.detach().flatten().unbind())
    if isinstance(result, (int, float)):
        return [torch.tensor(float(result), dtype=torch.float64)]
    if isinstance(result, (list, tuple)):
        return [loss for each in result for loss in losses_of(each, name)]
    raise UnusableResult(f"{name} returned a {type(result).__name__}: losses are a list, a tensor, numbers, or None")


def _target(impl: Implementation, schedule: str) -> tuple[Callable[..., Any], bool]:
    """What is called for `schedule`, and whether its very name says so."""
    found = impl.get("train_step")
    if inspect.isclass(found) and (methods := schedule_methods(found)):
        if schedule in methods:
            return found, True
        if not step_method(found):
            has = ", ".join(methods.values())
            raise NotProvided(f"{impl.name} has {has} of {_name(found)}, {NOT_OFFERED} {schedule}")
        return found, False
    named = {name: each for each, names in SCHEDULE_FUNCTIONS.items() for name in names}
    if _name(found) not in named:
        return found, False
    for module in impl.modules:
        for name in SCHEDULE_FUNCTIONS.get(schedule, ()):
            value = getattr(module, name, None)
            if callable(value) and not is_stub(value):
                return value, True
    if takes(found, "schedule"):
        return found, False
    raise NotProvided(f"{impl.name} has {_name(found)}, {NOT_OFFERED} {schedule}")


def _parameters(target: Any) -> list[str]:
    """The names that a signature has, the unknown ones included."""
    try:
        return list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return []


def _name(target: Any) -> str:
    return str(getattr(target, "__name__", type(target).__name__))
