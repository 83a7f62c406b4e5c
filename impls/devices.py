"""Code that asks for cuda on a machine that has none: said so, with the line; or its requests moved to the CPU.

The first is always so, the second (`shim`) when it is asked for. Knows torch's ways of asking, and no implementation.
"""

from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch

from impls.spec import Spec

_NO_CUDA = re.compile(
    r"not compiled with CUDA|Found no NVIDIA driver|No CUDA GPUs are available|doesn't have NCCL built in|"
    r"NCCL.*(not (available|supported)|no GPUs found)|CUDA driver|Invalid device.*cuda|"
    r"Cannot access accelerator device when none is available|_cuda_(setDevice|getDevice)|NVTX functions not installed",
    re.IGNORECASE,
)
_NVTX = "torch.cuda.nvtx"


class NoSuchDevice(RuntimeError):
    """An implementation asked for a device that this machine lacks; the text says where, and what can be done."""


@contextlib.contextmanager
def without_cuda(own: Path) -> Iterator[None]:
    """Around what an implementation does: a request for cuda where there is none is told as such.

    `own` is its file or folder: the line that is told is the innermost there.
    """
    try:
        yield
    except NoSuchDevice:
        raise
    except Exception as error:
        if torch.cuda.is_available() or not (_NO_CUDA.search(str(error)) or _counted_none(error)):
            raise
        raise NoSuchDevice(_told(error, own)) from error


def _counted_none(error: Exception) -> bool:
    """Whether something was divided by the number of devices."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, ZeroDivisionError) and "device_count" in (frames[-1].line or "")


def _told(error: Exception, own: Path) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(own)]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: {frames[-1].line}" if frames else "its code"
    if "NVTX" in str(error):
        ways = f'adapters = {{"stub": ["{_NVTX}"]}} replaces {_NVTX}, and --device-shim whatever else asks for cuda'
    else:
        ways = "--device-shim moves its requests for cuda to the CPU"
    return f"{where} asks for cuda, which this machine does not have ({_first_line(error)}). {ways}."


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def prepare(spec: str) -> None:
    """In a rank, before anything of an implementation is imported: move its requests, where that was asked for."""
    if Spec.parse(spec).device_shim and not torch.cuda.is_available():
        from impls.device_shim import install

        install()
