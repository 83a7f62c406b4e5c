"""Pipelines: schedules as data, checked, simulated and drawn without processes, and executed on ranks.

What is in which module:

    actions, placement, rows           a list of actions for each rank, millions of them in arrays
    schedules, zero_bubble, dualpipe   the eight orders, in named phases
    validate, rendezvous               whether a schedule is right
    costs, links, waves, simulate      when everything happens, exactly
    counts, bubbles, gantt             what follows: memory, overlap, idle time, a picture
    execute, split, partition          the same on real ranks, and where to cut a model into stages
"""

from impls.reference.pipeline.actions import Action, Kind, Numbering, Schedule
from impls.reference.pipeline.costs import Costs
from impls.reference.pipeline.counts import copies, held, paired_share, peak_activations
from impls.reference.pipeline.dualpipe import dualpipe, dualpipev
from impls.reference.pipeline.gantt import chart, lists
from impls.reference.pipeline.placement import Placement
from impls.reference.pipeline.rendezvous import Sends
from impls.reference.pipeline.schedules import gpipe, interleaved_1f1b, one_f_one_b
from impls.reference.pipeline.simulate import ShareOf, Timeline, simulate
from impls.reference.pipeline.validate import Fault, InvalidSchedule, faults, validate
from impls.reference.pipeline.zero_bubble import zb_h1, zb_h2, zbv

__all__ = [
    "Action",
    "Costs",
    "Fault",
    "InvalidSchedule",
    "Kind",
    "Numbering",
    "Placement",
    "Schedule",
    "Sends",
    "ShareOf",
    "Timeline",
    "chart",
    "copies",
    "dualpipe",
    "dualpipev",
    "faults",
    "gpipe",
    "held",
    "interleaved_1f1b",
    "lists",
    "one_f_one_b",
    "paired_share",
    "peak_activations",
    "simulate",
    "validate",
    "zb_h1",
    "zb_h2",
    "zbv",
]
