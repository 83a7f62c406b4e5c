"""``python course.py …``: the grade command with a pytest that is quick, and does what a hand-in's text says.

The words are those of ``FAKE``; a hand-in without any gets full points.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from conformance.__main__ import main
from conformance.grading import course, hand_ins, process

FAKE = """
import hashlib, json, os, pathlib, signal, subprocess, sys, time
options = {name.removeprefix("--"): value for name, _, value in (option.partition("=") for option in sys.argv[1:])}
impl, report = pathlib.Path(options["impl"]), pathlib.Path(options["report"])
sources = [impl] if impl.is_file() else sorted(impl.rglob("*.py"))
words = " ".join(path.read_text() for path in sources).split()
is_stand_in = options.get("time-limit") == "0"

def write(points, verdict="holds", message=""):
    report.mkdir(exist_ok=True)
    total = {"points": points, "out_of": 4, "open": 4 if verdict == "lost" else 0}
    result = {"verdict": verdict, "message": message}
    rubric = {"sha256": hashlib.sha256(pathlib.Path(options["rubric"]).read_bytes()).hexdigest()}
    taken = [options.get("adapters"), "device-shim" in options]
    found = [{"name": impl.name, "path": str(impl), "error": "no such\\nname" if "empty" in words else ""}]
    text = json.dumps({"impls": found, "rubric": rubric, "results": [result],
        "score": {impl.name: total}, "run": {"exit_status": 0}, "seed": options["hypothesis-seed"], "taken": taken})
    os.write(int(os.environ["LOCKSTEP_RECEIPT"]), hashlib.sha256(text.encode()).hexdigest().encode())
    (report / "report.json").write_text(text.replace('"points": 1', '"points": 4') if "forged" in words else text)
    if "altered" in words and not is_stand_in:
        impl.write_text(impl.read_text() + "# by another")

with open(os.environ["COURSE_LOG"], "a") as log:
    log.write(f"{os.getpid()} {impl.name} {options.get('time-limit')}\\n")
print("examined", impl.name)
if is_stand_in:
    write(0, "lost", "the time limit of this implementation")
elif "waits" in words:
    time.sleep(600)
elif "kills" in words:
    os.kill(os.getpid(), signal.SIGKILL)
elif "plants" in words:
    write(4)
    os.kill(os.getpid(), signal.SIGKILL)
elif "leaves" in words:
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    write(4)
elif "unlucky" in words:
    attempts = sum(impl.name in line for line in open(os.environ["COURSE_LOG"]))
    write(*((0, "lost", "the worker died") if attempts == 1 else (4,)))
elif "eats" in words:
    eater = "import sys; bytearray(400 * 2**20); sys.stdin.read()"
    command = [sys.executable, "-c", eater]
    for _ in range(2):
        command = [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))", *command]
    write(4 if subprocess.call(command, stdin=subprocess.PIPE) == 0 else 1)
elif "forged" in words or "altered" in words:
    write(1)
elif "tampers" in words:
    write(1)
    for other in pathlib.Path(os.environ["COURSE_OUT"]).glob("hand-ins/*/report.json"):
        other.write_text(other.read_text().replace('"points": 4', '"points": 0'))
else:
    write(4)
"""


def _copy_file(path: Path, place: Path) -> None:
    """Whoever runs the tests may be allowed to read everything."""
    if path.name == "unreadable.py":
        raise PermissionError(13, "Permission denied", str(path))
    place.write_bytes(path.read_bytes())


def _merge(reports: list[Path], remarks: dict[str, list[str]], out: Path, temporary: Path) -> int:
    (out / "remarks.json").write_text(json.dumps(remarks), encoding="utf-8")
    (out / "merged.txt").write_text("\n".join(path.parent.name for path in reports), encoding="utf-8")
    return 0


if __name__ == "__main__":
    process.PYTEST = (sys.executable, "-c", FAKE)
    process.load = lambda options, folder: False  # so that the pytest above is executed
    process.STARTING_S = 0.0
    process.STOPPING_S = 0.3
    process.Orphans.GRACE_S = 0.3
    course.TICK_S = 0.02
    hand_ins._copy_file = _copy_file
    course.merge = _merge
    sys.exit(main(["grade", *sys.argv[1:]]))
