"""Programs that are right and look suspicious are called healthy by the doctor, all for one number of ranks in one run.

Those for three ranks once, here. All of them, ten times, on a machine that is busy with something else:

    LOCKSTEP_ROUNDS=10 LOCKSTEP_BURNERS=4 nice pytest tests/doctor/test_no_false_alarm.py --timeout=3600
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doctor.running import doctor
from tests.witness.burning import busy

ROUNDS = int(os.environ.get("LOCKSTEP_ROUNDS", "1"))
SIZES = (3,) if ROUNDS == 1 else (2, 3, 4)


@pytest.fixture(scope="module", autouse=True)
def _load() -> Iterator[None]:
    with busy():
        yield


@pytest.mark.parametrize("world_size", SIZES)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_the_battery_of_correct_programs_is_healthy(number: int, world_size: int, tmp_path: Path) -> None:
    run = doctor(tmp_path, "tests.witness.suspicious", nproc=world_size)
    assert (run.status, run.json["findings"], run.json["healthy"]) == (0, [], True), run.told
