"""What is saved of a training, and loaded into a fresh one. Imports no pytest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from conformance.zero.plan import Plan
from impls.handover import NotProvided
from impls.stages import Trainer


def loaded(plan: Plan, held: Mapping[str, Tensor]) -> nn.Module:
    """A fresh module with these parameters."""
    module = plan.build(plan.seed + 1)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(held[name])
    return module


def state_of(trainer: Trainer) -> dict[str, Any]:
    """The optimizer's state dict. Raises `NotProvided` for one that nobody wrote and that has nothing in it."""
    method = getattr(trainer.optimizer, "state_dict", None)
    if method is None or getattr(trainer.optimizer, "load_state_dict", None) is None:
        raise NotProvided(f"{type(trainer.optimizer).__name__} has no state_dict() and load_state_dict()")
    state: dict[str, Any] = method()
    if getattr(method, "__func__", None) is torch.optim.Optimizer.state_dict and not state["state"]:
        raise NotProvided(
            f"state_dict() of {type(trainer.optimizer).__name__} is torch's own, and there is no state in it"
        )
    return state


def full_state(trainer: Trainer) -> Any:
    """What ``full_state(optimizer)`` of a sharded module gives."""
    method = getattr(trainer.wrapper, "full_state", None)
    if method is None or getattr(trainer.wrapper, "load_full_state", None) is None:
        raise NotProvided(f"{type(trainer.wrapper).__name__} has no full_state() and load_full_state()")
    return method(trainer.optimizer)


def assert_whole(trainer: Trainer, state: dict[str, Any]) -> None:
    """Raises `NotProvided` for a state dict in which a parameter that learns has no state of its own shape."""
    if trainer.name == "3":
        return
    entries = state.get("state", {}).values() if isinstance(state.get("state"), Mapping) else ()
    found = [value.shape for entry in entries for value in entry.values() if isinstance(value, Tensor) and value.dim()]
    for name, parameter in trainer.module.named_parameters():
        if parameter.requires_grad and parameter.shape not in found:
            raise NotProvided(f"the state dict has nothing of the shape of {name}: a rank's own share, it seems")
