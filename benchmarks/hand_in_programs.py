"""Two hundred hand-ins as data: right ones in several styles, each usual fault, and all that students upload besides.

Nothing here runs one. ``class_of(200)`` is the same list every time, so that two runs can be compared.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

Kind = Literal["right", "wrong", "odd"]

WRAPPER = """
class DDP(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for tensor in (*module.parameters(), *module.buffers()):
            dist.broadcast(tensor.data, src=0)

    def forward(self, *inputs, **named):
        return self.module(*inputs, **named)

    def finish_gradient_synchronization(self):
        for parameter in self.module.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
"""

FLAT = """
class DistributedDataParallel(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for value in module.state_dict().values():
            dist.broadcast(value, 0)

    def forward(self, *inputs, **named):
        return self.module(*inputs, **named)

    def sync_gradients(self):
        world_size = dist.get_world_size()
        by_dtype = {}
        for parameter in self.module.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                by_dtype.setdefault(parameter.grad.dtype, []).append(parameter.grad)
        for grads in by_dtype.values():
            flat = torch.cat([grad.reshape(-1) for grad in grads])
            dist.all_reduce(flat, op=dist.ReduceOp.SUM)
            flat = flat / world_size
            for grad, part in zip(grads, flat.split([grad.numel() for grad in grads])):
                grad.copy_(part.view_as(grad))
"""

LIST_OF_GRADS = """
class DataParallel(nn.Module):
    def __init__(self, module, process_group=None):
        super().__init__()
        self.module, self.group = module, process_group
        with torch.no_grad():
            for tensor in list(module.parameters()) + list(module.buffers()):
                dist.broadcast(tensor, src=0, group=process_group)

    def forward(self, *inputs, **named):
        return self.module(*inputs, **named)

    def finish_gradient_synchronization(self):
        waiting = []
        for parameter in self.parameters():
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            waiting.append((parameter, dist.all_reduce(parameter.grad, group=self.group, async_op=True)))
        for parameter, work in waiting:
            work.wait()
            parameter.grad.div_(dist.get_world_size(self.group))
"""

MESH_RING = """
def ring_allreduce(mesh, rank, world_size, tensor):
    flat = tensor.clone().flatten()
    parts = list(flat.tensor_split(world_size))
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        mesh.send(right, parts[(rank - step) % world_size])
        at = (rank - step - 1) % world_size
        parts[at] = parts[at] + mesh.recv(left)
    for step in range(world_size - 1):
        mesh.send(right, parts[(rank + 1 - step) % world_size])
        parts[(rank - step) % world_size] = mesh.recv(left)
    return torch.cat(parts).view_as(tensor)
"""

GLOO_RING = """
def ring_allreduce(tensor, group=None):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    parts = [part.clone() for part in tensor.reshape(-1).tensor_split(world_size)]

    def shift(give, take):
        got = torch.empty_like(parts[take])
        sending = dist.isend(parts[give], right)
        dist.recv(got, left)
        sending.wait()
        return got

    for step in range(world_size - 1):
        take = (rank - step - 1) % world_size
        parts[take] = parts[take] + shift((rank - step) % world_size, take)
    for step in range(world_size - 1):
        take = (rank - step) % world_size
        parts[take] = shift((rank + 1 - step) % world_size, take)
    return torch.cat(parts).view_as(tensor)
"""

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch import nn\n"
WRAPPERS = {"wrapper": WRAPPER, "flat": FLAT, "asynchronous": LIST_OF_GRADS}
RINGS = {"mesh": MESH_RING, "gloo": GLOO_RING}

# What is written instead of what, each a fault that comes back every year.
FAULTS: Mapping[str, tuple[str, str]] = {
    "no division": ("                parameter.grad /= dist.get_world_size()\n", ""),
    "divided by two": ("/= dist.get_world_size()", "/= 2"),
    "divided twice": ("/= dist.get_world_size()", "/= dist.get_world_size() ** 2"),
    "no broadcast": ("            dist.broadcast(tensor.data, src=0)", "            pass"),
    "broadcast from oneself": ("src=0", "src=dist.get_rank()"),
    "unused parameters skipped": ("parameter.grad = torch.zeros_like(parameter)", "continue"),
    "first parameter only": (
        "parameter.grad /= dist.get_world_size()",
        "parameter.grad /= dist.get_world_size()\n                break",
    ),
    "rank 0 leaves early": (
        "        for parameter in self.module.parameters():\n            if parameter.requires_grad",
        "        if dist.get_rank() == 0:\n            return\n"
        "        for parameter in self.module.parameters():\n            if parameter.requires_grad",
    ),
    "one step too few": ("range(world_size - 1):\n        mesh.send(right, parts[(rank -", "range(world_size - 2):\n"
    "        mesh.send(right, parts[(rank -"),
    "chunks that are missing": ("flat.tensor_split(world_size)", "flat.chunk(world_size)"),
    "receives first": (
        "        mesh.send(right, parts[(rank - step) % world_size])\n        at = (rank - step - 1) % world_size\n"
        "        parts[at] = parts[at] + mesh.recv(left)\n",
        "        at = (rank - step - 1) % world_size\n        got = mesh.recv(left)\n"
        "        mesh.send(right, parts[(rank - step) % world_size])\n        parts[at] = parts[at] + got\n",
    ),
    "replaces instead of adding": ("parts[at] = parts[at] + mesh.recv(left)", "parts[at] = mesh.recv(left)"),
    "the mean instead of the sum": (
        "torch.cat(parts).view_as(tensor)", "(torch.cat(parts) / world_size).view_as(tensor)"
    ),
}  # fmt: skip

LOOP = "\ndef ring_allreduce(mesh, rank, world_size, tensor):\n    while True:\n        pass\n"
FLOOD = "import sys\nfor number in range(200_000):\n    print('line', number, '<script>\\x1b[2J', file=sys.stderr)\n"

# name: (file, what it says); its end is told by the row's text in EXPECTED where it is not "nothing is earned"
ODD: Mapping[str, Mapping[str, str | bytes]] = {
    "syntax error.py": {"": HEAD + WRAPPER + "\ndef ring_allreduce(mesh, rank:\n"},
    "tabs and spaces.py": {"": HEAD + "if True:\n\tx = 1\n        y = 2\n"},
    "nul byte.py": {"": b"import torch\x00\n"},
    "latin-1.py": {"": "name = 'Núñez'\n".encode("latin-1") + MESH_RING.encode()},
    "utf-16.py": {"": (HEAD + MESH_RING).encode("utf-16")},
    "a picture.py": {"": bytes(range(256)) * 40},
    "empty.py": {"": ""},
    "only comments.py": {"": "# TODO: write the assignment\n"},
    "todo.py": {"": HEAD + "def ring_allreduce(mesh, rank, world_size, tensor):\n    raise NotImplementedError\n"},
    "other names.py": {"": HEAD + MESH_RING.replace("ring_allreduce", "my_solution")},
    "loops at import.py": {"": HEAD + WRAPPER + "while True:\n    pass\n"},
    "sleeps at import.py": {"": HEAD + WRAPPER + "import time\ntime.sleep(3600)\n"},
    "loops in the ring.py": {"": HEAD + WRAPPER + LOOP},
    "exits at import.py": {"": HEAD + "import sys\n" + WRAPPER + MESH_RING + "sys.exit(0)\n"},
    "exits hard.py": {"": HEAD + "import os\n" + WRAPPER + MESH_RING + "os._exit(0)\n"},
    "exits in the ring.py": {"": HEAD + WRAPPER + MESH_RING.replace("    flat =", "    exit(0)\n    flat =")},
    "kills itself.py": {"": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n" + HEAD + MESH_RING},
    "kills its parent.py": {"": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n" + HEAD + MESH_RING},
    "asks the keyboard.py": {"": HEAD + "n = int(input('How many ranks? '))\n" + WRAPPER + MESH_RING},
    "memory hog at import.py": {"": HEAD + "import numpy\nhog = numpy.ones(600 * 2**20, dtype='uint8')\n" + WRAPPER},
    "memory hog in the ring.py": {
        "": HEAD + WRAPPER + MESH_RING.replace("    flat =", "    hog = torch.ones(700 * 2**18)\n    flat =")
    },
    "grows without end.py": {
        "": HEAD + WRAPPER + MESH_RING.replace("    flat =", "    hog = []\n    while True:\n"
        "        hog.append(torch.ones(2**22))\n    flat =")
    },
    "prints a flood.py": {"": FLOOD + HEAD + WRAPPER + MESH_RING},
    "prints a flood in the ring.py": {
        "": HEAD + WRAPPER + MESH_RING.replace("    flat =", "    for n in range(3000):\n        print(n)\n    flat =")
    },
    "imports what is missing.py": {"": "import horovod.torch as hvd\n" + HEAD + WRAPPER + MESH_RING},
    "imports the helper that was not uploaded.py": {"": "from helper import chunks\n" + HEAD + MESH_RING},
    "leaves processes.py": {
        "": "import subprocess\nsubprocess.Popen(['sleep', '7531'], start_new_session=True)\n"
        + HEAD + WRAPPER + MESH_RING
    },
    "leaves files.py": {
        "": "import tempfile, os\nfrom multiprocessing import shared_memory\n"
        "open(tempfile.mktemp(prefix='left-by-a-hand-in-'), 'w').write('x' * 10**6)\n" + HEAD + WRAPPER + MESH_RING
    },
    "threads.py": {
        "": "import threading, time\nthreading.Thread(target=time.sleep, args=(7531,)).start()\n"
        + HEAD + WRAPPER + MESH_RING
    },
    "prints its own points.py": {"": HEAD + "print('hand-in: 25 of 25 points')\n" + WRAPPER},
    "a notebook/ring.ipynb": {"": '{"cells": []}'},
    "an empty folder/.keep": {"": ""},
    "too deep/src/lab2/ring.py": {"": HEAD + MESH_RING},
    "wrong suffix/ring.txt": {"": HEAD + MESH_RING},
}  # fmt: skip

# right hand-ins under the names that break programs
NAMES = (
    "Ana María Núñez.py", "مریم کریمی.py", "李雷.py", "O'Brien, Pat.py", 'the "best" one.py', "=cmd|' calc'!A0.py",
    "+SUM(1).py", "-2+3.py", "@now.py", "tab\tin it.py", "line\nbreak.py", "a;b.py", "$(touch pwned).py", "`id`.py",
    "colon: 7.py", "what?adapters=none.py", "100%.py", "[brackets].py", "*.py", "two  spaces .py", "🚀.py",
    "\u202eyp.desrever.py", "torch.py", "conftest.py", "test_mine.py", "impls.py", "long " + "x" * 200 + ".py",
    "and&amp;.py", "<b>bold.py", "reference.py", "suite.py",
)  # fmt: skip
FOLDERS = (
    "class",
    "hand-ins",
    "grades.csv",
    "graded.jsonl",
    "ends with a space ",
    "dots..",
    "مریم/submission",
    "a b/c d",
    "torch",
)
LINKS = ("link to a neighbour.py", "link into itself", "link in a circle")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandIn:
    """One entry of the folder: files by their path below it ("" for the entry itself), links by theirs."""

    name: str
    kind: Kind
    about: str
    files: Mapping[str, str | bytes]
    links: Mapping[str, str] = dataclasses.field(default_factory=dict)


def class_of(number: int) -> list[HandIn]:
    """So many hand-ins, at least one of each; what is left over are more students with right ones and usual faults."""
    fixed = [*_odd(), *_names(), *_folders(), *_links()]
    return [*fixed, *itertools.islice(_students(), max(0, number - len(fixed)))]


def write(hand_ins: list[HandIn], folder: Path) -> None:
    """Write them below a folder."""
    for hand_in in hand_ins:
        home = folder / hand_in.name
        for below, content in hand_in.files.items():
            path = home / below if below else home
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for below, to in hand_in.links.items():
            path = home / below if below else home
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(to)


def _right(number: int) -> tuple[str, str]:
    wrapper = list(WRAPPERS)[number % len(WRAPPERS)]
    ring = list(RINGS)[number % len(RINGS)]
    return f"{wrapper}, {ring} ring", f"# student {number}\n{HEAD}{WRAPPERS[wrapper]}{RINGS[ring]}"


def _odd() -> Iterator[HandIn]:
    for name, files in ODD.items():
        head, _, below = name.partition("/")
        yield HandIn(name=head, kind="odd", about=head, files={below: files[""]})


def _names() -> Iterator[HandIn]:
    for number, name in enumerate(NAMES):
        about, text = _right(number)
        yield HandIn(name=name, kind="right", about=about, files={"": text})


def _folders() -> Iterator[HandIn]:
    for number, path in enumerate(FOLDERS):
        head, _, below = path.partition("/")
        about, text = _right(100 + number)
        wrapper, _, ring = text.partition("\ndef ring_allreduce")
        files = {"ddp.py": wrapper, "ring.py": f"{HEAD}\ndef ring_allreduce{ring}", "notes/plan.md": "# plan\n"}
        yield HandIn(
            name=head, kind="right", about=about, files={f"{below}/{name}".lstrip("/"): t for name, t in files.items()}
        )
    package = {
        "__init__.py": "from .parallel.ddp import DDP\nfrom .parallel.ring import ring_allreduce\n",
        "parallel/__init__.py": "",
        "parallel/sizes.py": "def parts(t, n):\n    return list(t.tensor_split(n))\n",
        "parallel/ddp.py": HEAD + WRAPPER,
        "parallel/ring.py": HEAD
        + "from .sizes import parts as cut\n"
        + MESH_RING.replace("list(flat.tensor_split(world_size))", "cut(flat, world_size)"),
    }
    yield HandIn(name="a package", kind="right", about="relative imports", files=package)


def _links() -> Iterator[HandIn]:
    _, text = _right(300)
    yield HandIn(name=LINKS[0], kind="right", about="a link at the top", files={}, links={"": "Ana María Núñez.py"})
    yield HandIn(
        name=LINKS[1], kind="right", about="ring.py is a link", files={"own.py": text}, links={"x.py": "own.py"}
    )
    yield HandIn(
        name=LINKS[2], kind="right", about="a link to itself beside", files={"own.py": text}, links={"loop": "loop"}
    )


def _students() -> Iterator[HandIn]:
    """Without end: in turn a right one, a fault, and now and then the same text as the one before."""
    faults = itertools.cycle(FAULTS.items())
    for number in itertools.count():
        name = f"student {number:03d}.py"
        if number % 5 < 2:
            about, text = _right(number)
            yield HandIn(name=name, kind="right", about=about, files={"": text})
        else:
            fault, (old, new) = next(faults)
            text = HEAD + WRAPPER + MESH_RING  # to the letter what another one handed in
            assert old in text, fault
            yield HandIn(name=name, kind="wrong", about=fault, files={"": text.replace(old, new, 1)})
