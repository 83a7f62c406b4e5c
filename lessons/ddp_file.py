"""The file that lesson 48 writes: its contents, as ddp-demo.schema.json has them, and how they get there at once."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lessons.ddp_observed import Seen

SCHEMA = "ddp-demo.v1"


def as_json(seen: Seen, trip: Mapping[str, Any], impl: str) -> dict[str, Any]:
    """The contents of the file."""
    return {
        "schema": SCHEMA,
        "impl": impl,
        **dataclasses.asdict(seen.settings),
        "parameter_sums": seen.parameter_sums,
        "spread": seen.spread,
        "largest_parameter_difference": seen.largest_parameter_difference,
        "spread_without_all_reduce": seen.spread_without_all_reduce,
        "losses": seen.losses,
        "gradient_norms": seen.gradient_norms,
        "gradient_difference": seen.gradient_difference,
        "gradient_bound": seen.gradient_bound,
        "fsdp_round_trip": None
        if trip["reason"]
        else {key: trip[key] for key in ("equal", "largest_difference", "num_parameters")},
    }


def write(figures: Mapping[str, Any], path: Path) -> None:
    """Put the figures where they belong, all at once: whoever reads the path sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(figures, indent=2, allow_nan=False) + "\n"
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
