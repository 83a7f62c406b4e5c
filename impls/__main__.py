"""``python -m impls new NAME``: a folder of your own in ``impls``, every block an empty function with its contract."""

from __future__ import annotations

import argparse
import keyword
import shutil
import sys

from impls.locate import HOME, bundled


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m impls", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new", help="make impls/NAME from the template")
    new.add_argument("name", metavar="NAME")
    name = parser.parse_args(arguments).name

    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        new.error(f"{name!r} cannot name a Python package; use letters, digits and underscores, such as mine")
    folder = HOME / name
    if folder.exists() or folder.with_suffix(".py").exists() or name in bundled():
        new.error(f"impls/{name} exists already and is left as it is; choose another name")
    shutil.copytree(HOME / "template", folder, ignore=shutil.ignore_patterns("__pycache__"))
    sys.stdout.write(
        f"Made {folder}.\n"
        f"Fill in any function, then check it:  pytest -n 4 --impl={name}\n"
        f"What is taken for what:               python -m conformance show {name}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
