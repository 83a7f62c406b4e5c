"""Running many scripts: torch is imported once, and each script runs in a fork of the process that has it.

    python conformance/scripts/running.py FOLDER/*.py        # beside each PATH.py: PATH.out, what it printed

The last line of what it printed is ``exit status 0`` or ``exit status 1``. Whatever a script started ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

LIMIT_S = 200  # of one script: twice what it gives its ranks
JOBS = 3  # ranks of small tensors wait for each other most of the time


def outputs(paths: Sequence[Path], jobs: int = JOBS) -> dict[Path, str]:
    """Run the scripts in processes that know no Lockstep, and give what each printed; nothing for no scripts."""
    if not paths:
        return {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "LOCKSTEP_JOBS": str(jobs)}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-P", __file__, *map(str, paths)]
    subprocess.run(command, env=environment, cwd=paths[0].parent, check=True)
    return {path: path.with_suffix(".out").read_text(encoding="utf-8") for path in paths}


def main(paths: Sequence[str], jobs: int) -> None:
    """Run each script in a fork, `jobs` at a time."""
    import torch._dynamo
    import torch.distributed
    import torch.multiprocessing  # noqa: F401  (all three: for the forks)

    gc.freeze()
    running = 0
    for path in [*paths, *[None] * jobs]:
        if running and (running == jobs or path is None):
            pid, _ = os.wait()
            running -= 1
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        if path is not None:
            running += 1
            if os.fork() == 0:
                _run(Path(path))


def _run(path: Path) -> None:
    """In the fork, which ends here."""
    os.setpgid(0, 0)
    signal.alarm(LIMIT_S)
    output = os.open(path.with_suffix(".out"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = 0
    try:
        sys.argv = [str(path)]
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        status = int(bool(end.code))
        if isinstance(end.code, str):
            print(end.code)
    except BaseException:
        traceback.print_exc()
        status = 1
    print(f"exit status {status}", flush=True)
    os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:], int(os.environ.get("LOCKSTEP_JOBS", JOBS)))
