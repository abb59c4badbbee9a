"""The state of a run, in three parts: what never changes, what policies may see, and what no policy gets.

Kernels take these values as they are. The columns of the arrays are in `layout`.
"""

from __future__ import annotations

from typing import Annotated

from gpusched_env.arrays import Floats, Ints
from gpusched_env.named_arrays import NamedArrays


class Facts(NamedArrays):
    """What never changes in a run.

    Attributes:
        configs: The configurations, (C, CONFIG_COLUMNS).
        shares: Their shares of a GPU, 1 for whole ones, (C,).
        kilowatts: What a node with u busy GPUs draws [kW], (V, G + 1).
        slowdown: What jobs on one GPU do to one another, (V, A, A), A applications; (0, 0, 0) without a model.
        utilisation: Part of the time for which an application keeps a GPU busy, (V, A); (0, 0) if GPUs are not shared
        by utilisation.
        sharing: Numbers of the interference model, (SHARING_COLUMNS,).
        spared: What a GPU that is held draws less when it does nothing [kW], (V,); (0,): it draws the same.
        planned: The factor on the time of every application with which policies plan, (A, C).
        iteration: How long iterations compute and synchronise [s], (2, V, A); (0, 0, 0) where nobody helps.
        helpers: The number of CPU machines that help to synchronise, (1,); (0,) where nobody helps.
    """

    configs: Annotated[Ints, 2]
    shares: Annotated[Floats, 1]
    kilowatts: Annotated[Floats, 2]
    slowdown: Annotated[Floats, 3]
    utilisation: Annotated[Floats, 2]
    sharing: Annotated[Floats, 1]
    idle_saving: Annotated[Floats, 1]
    planned: Annotated[Floats, 2]
    iteration: Annotated[Floats, 3]
    helpers: Annotated[Ints, 1]


class Board(NamedArrays):
    """What a policy may see. Rows of jobs that are not submitted yet, and of distributions of only such, are NaN.

    Attributes:
        facts: What never changes.
        jobs: The jobs, (J, JOB_COLUMNS).
        tau: Seconds per epoch, (J, C); inf where not allowed. On shared GPUs with an interference model: beside the
            worst jobs that there can be.
        nodes: The nodes, (N, NODE_COLUMNS and, if GPUs can be shared, two columns for each).
        room: What fits now on the nodes of each GPU type, (V, CAPACITY_COLUMNS + index).
        quota: What the jobs of every tenant may hold of each GPU type, and what they hold [units], (T, 2 V); (0, 2 V)
            without quotas.
        cells: Where the nodes of tenants lie, (N, CELL_COLUMNS); (0, CELL_COLUMNS) without cells.
        hosts: The hosts on which they lie, (H, columns of `cells.blocks`); none without cells.
        node_rate: r_v(u), what a node with u busy GPUs costs at the present price [€/s], (V, G + 1).
        planning_rate: What a configuration is planned to cost, alone on its node [€/s], (C,).
        least_rate: The least that it can cost, in a full node [€/s], (C,); inf where its type has no node.
        edges: Different edges of bins, as fractions of the maximum epochs, (E, B + 1).
        survival: S on each bin, (D, B).
        tail: ∫ S from each edge to 1, (D, B + 1).
        clock: Times and costs, (CLOCK_COLUMNS,).
        count: Numbers of the round and of the run, and how rounds ask, (COUNT_COLUMNS,).
        active: The jobs submitted and not completed, in its first `count[ACTIVE]` places, (J,).
        keys: Their sort keys, (J,).
        order: The jobs that the round asks, in its first `count[TO_ASK]` places, (J,).
        memory: Scratch of the policy, (J, M), 0 at the start; the simulator never reads it.
    """

    together = (
        "clock", "count", "capacity", "nodes", "order", "active", "keys", "edges", "jobs", "tau", "memory", "survival",
        "tail", "quota", "cells", "hosts",
    )  # fmt: skip

    facts: Facts
    jobs: Annotated[Floats, 2]
    tau: Annotated[Floats, 2]
    nodes: Annotated[Ints, 2]
    capacity: Annotated[Ints, 2]
    quota: Annotated[Ints, 2]
    cells: Annotated[Ints, 2]
    hosts: Annotated[Ints, 2]
    node_rate: Annotated[Floats, 2]
    planning_rate: Annotated[Floats, 1]
    least_rate: Annotated[Floats, 1]
    edges: Annotated[Floats, 2]
    survival: Annotated[Floats, 2]
    tail: Annotated[Floats, 2]
    clock: Annotated[Floats, 1]
    count: Annotated[Ints, 1]
    active: Annotated[Ints, 1]
    keys: Annotated[Floats, 1]
    order: Annotated[Ints, 1]
    memory: Annotated[Floats, 2]


class Hidden(NamedArrays):
    """What no policy gets.

    Attributes:
        outcome: Epochs needed, and when jobs will be complete, (J, OUTCOME_COLUMNS).
        jobs: Every job's first row of `Board.jobs`, disclosed when it is submitted, (J, JOB_COLUMNS).
        tau: Its row of `Board.tau`, likewise, (J, C).
        edges: The rows of `Board.edges`, disclosed with the first job that has such bins, (E, B + 1).
        survival: Those of `Board.survival`, disclosed with the first job that has the distribution, (D, B).
        tail: Those of `Board.tail`, likewise, (D, B + 1).
        log: One row per node and interval in which a job held one configuration in one place, (L, LOG_COLUMNS).
    """

    together = ("outcome",)

    outcome: Annotated[Floats, 2]
    jobs: Annotated[Floats, 2]
    tau: Annotated[Floats, 2]
    edges: Annotated[Floats, 2]
    survival: Annotated[Floats, 2]
    tail: Annotated[Floats, 2]
    log: Annotated[Floats, 2]
