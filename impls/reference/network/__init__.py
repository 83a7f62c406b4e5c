"""A network of two levels: what messages, collectives and whole training steps take on it.

links, presets   a latency and a bandwidth, inside a node and between nodes; what can be bought
formulas         rings and trees in closed form, and where they cross
messages         any sends and receives, replayed on the links; `record` gets them from the collectives' own code
timeline         one rank's computation beside its collectives
steps            data, tensor and pipeline parallel steps of a described model
"""

from impls.reference.network.formulas import crossover_bytes, ring_half_time, ring_time, tree_time
from impls.reference.network.links import Cluster, Link
from impls.reference.network.presets import PRESETS, cluster
from impls.reference.network.steps import Layout, Workload, step_time, tensor_parallel_time

__all__ = [
    "PRESETS",
    "Cluster",
    "Layout",
    "Link",
    "Workload",
    "cluster",
    "crossover_bytes",
    "ring_half_time",
    "ring_time",
    "step_time",
    "tensor_parallel_time",
    "tree_time",
]
