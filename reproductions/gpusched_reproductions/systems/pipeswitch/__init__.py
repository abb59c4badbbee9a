"""PipeSwitch (Bai, Zhang, Zhu and Jin, OSDI 2020): start-up from layers, turns on one GPU, and bursts in a cluster."""

from __future__ import annotations

from gpusched_reproductions.systems.checks import Part
from gpusched_reproductions.systems.pipeswitch.bursts import by_slack, cluster
from gpusched_reproductions.systems.pipeswitch.one_gpu import figure_6
from gpusched_reproductions.systems.pipeswitch.start_up import against_mps, start_up

PARTS = (
    Part("pipeswitch", "start-up", "A task takes the place of another one: latency by method and model", start_up),
    Part("pipeswitch", "mps", "The same in another run, and MPS", against_mps),
    Part("pipeswitch", "figure-6", "Two jobs take turns on a GPU: throughput by how often", figure_6),
    Part("pipeswitch", "cluster", "Bursts beside training on 8 GPUs: split, shared with switches or with MPS", cluster),
    Part(
        "pipeswitch",
        "slack",
        "Bursts that preempt at once, or when their due dates need it: drawn loads beside 12 trainings",
        by_slack,
    ),
)
