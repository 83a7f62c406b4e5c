"""Pipeline schedules: as data (`actions`, `schedules`), checked, simulated and drawn without processes."""

from impls.reference.pipeline.actions import Action, Kind, Numbering, Schedule
from impls.reference.pipeline.dualpipe import dualpipe, dualpipev
from impls.reference.pipeline.placement import Placement
from impls.reference.pipeline.schedules import gpipe, interleaved_1f1b, one_f_one_b
from impls.reference.pipeline.zero_bubble import zb_h1, zb_h2, zbv

__all__ = [
    "Action",
    "Kind",
    "Numbering",
    "Placement",
    "Schedule",
    "dualpipe",
    "dualpipev",
    "gpipe",
    "interleaved_1f1b",
    "one_f_one_b",
    "zb_h1",
    "zb_h2",
    "zbv",
]
