"""Pipeline schedules: as data (`actions`, `schedules`), checked, simulated and drawn without processes."""

from impls.reference.pipeline.actions import Action, Kind, Numbering, Schedule
from impls.reference.pipeline.placement import Placement
from impls.reference.pipeline.schedules import gpipe, one_f_one_b

__all__ = ["Action", "Kind", "Numbering", "Placement", "Schedule", "gpipe", "one_f_one_b"]
