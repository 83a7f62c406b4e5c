"""Programs that ranks run in the tests of the world: one for each thing that a student's file may do."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import torch
import torch.distributed as dist

from fixtures.world.context import RankContext

FOR_EVER_S = 3600.0
left_behind: list[object] = []


def nothing(ctx: RankContext) -> None:
    pass


def rank_of(ctx: RankContext) -> int:
    return ctx.rank


def echo(ctx: RankContext, value: object) -> object:
    return value


def arguments(ctx: RankContext, *args: object, **kwargs: object) -> object:
    return [list(args), kwargs]


def summed(ctx: RankContext, tensor: torch.Tensor) -> float:
    return float(tensor.sum())


def what_lies_in_memory(ctx: RankContext, own: str, text: str) -> list[str]:
    """What begins with the text and one digit, anywhere in the writable memory of this process."""
    found = set()
    pattern = re.compile(re.escape(text.encode()) + rb"\d")
    with Path("/proc/self/maps").open() as maps, Path("/proc/self/mem").open("rb", 0) as memory:
        for line in maps:
            place, mode, *_ = line.split()
            begin, end = (int(edge, 16) for edge in place.split("-"))
            if mode.startswith("rw") and "[v" not in line:
                memory.seek(begin)
                found |= set(pattern.findall(memory.read(end - begin)))
    return sorted(each.decode() for each in found)


def sum_of_ranks(ctx: RankContext) -> float:
    tensor = torch.tensor([float(ctx.rank)])
    dist.all_reduce(tensor)
    return float(tensor)


# -- exceptions --------------------------------------------------------------------------------------------------------


class CannotBePrinted(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class CannotBePickled(Exception):
    def __init__(self) -> None:
        super().__init__("held by a lock")
        self.lock = threading.Lock()


def raise_on_one(ctx: RankContext) -> int:
    if ctx.rank == 1:
        raise ValueError("only here")
    return ctx.rank


def raise_unprintable(ctx: RankContext) -> None:
    raise CannotBePrinted


def raise_unpicklable(ctx: RankContext) -> None:
    raise CannotBePickled


def raise_deep(ctx: RankContext) -> None:
    raise_deep(ctx)


def leave_by_sys_exit(ctx: RankContext) -> None:
    sys.exit(3)


def interrupt_oneself(ctx: RankContext) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(FOR_EVER_S)


def sys_exit_in_a_thread(ctx: RankContext) -> str:
    thread = threading.Thread(target=sys.exit, args=(3,))
    thread.start()
    thread.join()
    return "back"


# -- endings -----------------------------------------------------------------------------------------------------------


def exit_at_once(ctx: RankContext, status: int) -> None:
    os._exit(status)


def abort(ctx: RankContext) -> None:
    os.abort()


def read_null(ctx: RankContext) -> None:
    ctypes.string_at(0)


def kill_one(ctx: RankContext) -> int:
    if ctx.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.rank


def become_another_program(ctx: RankContext) -> None:
    os.execv("/bin/true", ["true"])


def kill_the_supervisor(ctx: RankContext) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(FOR_EVER_S)


# -- never coming back -------------------------------------------------------------------------------------------------


def loop_for_ever(ctx: RankContext) -> None:
    while True:
        pass


def loop_on_one(ctx: RankContext) -> int:
    while ctx.rank == 1:
        pass
    return ctx.rank


def share_a_core(ctx: RankContext, seconds: float) -> int:
    """Each rank computes for this long, all on one core; the next program has all cores again."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    os.sched_setaffinity(0, cores)
    return ctx.rank


def stop_oneself(ctx: RankContext) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def one_leaves_early(ctx: RankContext) -> None:
    if ctx.rank == 2:
        return
    dist.all_reduce(torch.ones(8))


def one_raises_early(ctx: RankContext) -> None:
    if ctx.rank == 1:
        raise ValueError("before the collective")
    dist.all_reduce(torch.ones(8))


# -- output ------------------------------------------------------------------------------------------------------------


def print_much(ctx: RankContext, num_bytes: int) -> None:
    line = "x" * 1023 + "\n"
    print("first line")
    for _ in range(num_bytes // len(line)):
        sys.stdout.write(line)
    print("last line")


def print_for_ever(ctx: RankContext) -> None:
    while True:
        os.write(1, b"x" * 65536)


def lock_beside_a_printer(ctx: RankContext) -> None:
    """Ranks 0 and 1 send to each other first; the last rank prints and prints."""
    if ctx.rank == 2:
        print_for_ever(ctx)
    dist.send(torch.ones(1), 1 - ctx.rank)


def print_everywhere(ctx: RankContext) -> None:
    print("from python")
    print("from stderr", file=sys.stderr)
    ctypes.CDLL(None).puts(b"from libc")
    os.write(1, b"from the kernel\xff\n")


def close_stdout(ctx: RankContext) -> None:
    sys.stdout.close()
    os.close(1)


def close_many_descriptors(ctx: RankContext) -> None:
    os.closerange(0, 256)


def close_all_descriptors(ctx: RankContext) -> None:
    os.closerange(0, 1 << 20)
    time.sleep(FOR_EVER_S)


def speak_out_of_turn(ctx: RankContext) -> None:
    """Write garbage into every socket that is open, the one to the client too."""
    for descriptor in range(3, 1 << 17):
        try:
            os.write(descriptor, b"garbage, and more than a head of it")
        except OSError:
            continue
    time.sleep(FOR_EVER_S)


# -- values ------------------------------------------------------------------------------------------------------------


def send_zeros(ctx: RankContext, num_bytes: int) -> torch.Tensor:
    return torch.zeros(num_bytes, dtype=torch.uint8)


def send_huge_text(ctx: RankContext) -> str:
    return "x" * ((1 << 30) + 1)


def send_function(ctx: RankContext) -> object:
    return send_function


def send_endless_list(ctx: RankContext) -> object:
    endless: list[object] = []
    endless.append(endless)
    return endless


# -- what is left behind -----------------------------------------------------------------------------------------------


def leave_child(ctx: RankContext) -> int:
    return subprocess.Popen(["sleep", str(int(FOR_EVER_S))]).pid


def leave_detached_child(ctx: RankContext) -> int:
    """A grandchild in a session of its own, whose parent has ended."""
    script = "import os, subprocess; print(subprocess.Popen(['sleep', '3600'], start_new_session=True, stdout=2).pid)"
    return int(subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout)


def leave_shared_memory(ctx: RankContext, ends: bool) -> str:
    memory = SharedMemory(create=True, size=1000)
    print(memory.name, flush=True)
    if ends:
        os._exit(3)
    return memory.name


def leave_temporary_file(ctx: RankContext) -> str:
    return tempfile.mkdtemp()


def fork_and_come_back_twice(ctx: RankContext) -> int:
    if os.fork() == 0:
        return -1
    os.wait()
    return ctx.rank


def change_surroundings(ctx: RankContext) -> None:
    os.chdir("/")
    os.environ["LEFT_BEHIND"] = "1"
    os.umask(0)
    sys.path.append("/nowhere")
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_num_threads(2)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)


def surroundings(ctx: RankContext) -> dict[str, object]:
    mask = os.umask(0o022)
    os.umask(mask)
    return {
        "cwd": str(Path.cwd()),
        "environment": os.environ.get("LEFT_BEHIND"),
        "umask": mask,
        "path": "/nowhere" in sys.path,
        "dtype": torch.get_default_dtype(),
        "device": str(torch.get_default_device()),
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "random": torch.rand(1).item(),
    }


def patch_torch(ctx: RankContext) -> None:
    dist.all_reduce = dist.barrier


def leave_thread(ctx: RankContext) -> None:
    threading.Thread(target=time.sleep, args=(FOR_EVER_S,), daemon=True, name="left").start()


def leave_group(ctx: RankContext) -> None:
    dist.new_group([0])


def leave_operation(ctx: RankContext) -> None:
    if ctx.rank == 0:
        left_behind.append(dist.irecv(torch.zeros(1), 1))


def make_own_group(ctx: RankContext) -> float:
    dist.init_process_group(
        "gloo", init_method=f"file://{ctx.rendezvous_file()}", rank=ctx.rank, world_size=ctx.world_size
    )
    total = sum_of_ranks(ctx)
    dist.destroy_process_group()
    return total


# -- witnesses ---------------------------------------------------------------------------------------------------------


def reduce_in_window(ctx: RankContext, numel: int) -> None:
    tensor = torch.ones(numel)
    dist.barrier()
    with ctx.window("quiet"):
        pass
    with ctx.window("talk"):
        print("a line that is no traffic")
    with ctx.window("reduce"):
        dist.all_reduce(tensor)


def order_of_a_set(ctx: RankContext) -> list[int]:
    """The order in which a set of 50 parameters is walked."""
    parameters = [torch.nn.Parameter(torch.zeros(1)) for _ in range(50)]
    index = {id(parameter): number for number, parameter in enumerate(parameters)}
    return [index[id(parameter)] for parameter in set(parameters)]


def hash_of_a_text(ctx: RankContext) -> int:
    return hash("layer1.weight")


def name_of_implementation(ctx: RankContext) -> str | None:
    return None if ctx.impl is None else ctx.impl.name


def identity(ctx: RankContext) -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "folder": str(ctx.folder),
        "mode": ctx.folder.stat().st_mode & 0o777,
        "stdin": sys.stdin.read() if sys.stdin else "",
        "threads": torch.get_num_threads(),
        "random": torch.rand(1).item(),
        "hidden": [name for name in os.environ if name.startswith("PYTEST")],
    }
