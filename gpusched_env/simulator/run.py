"""The state of a run, in three parts: constants, what policies may see, and what is hidden from policies.

Kernels take these values as they are. The columns of the arrays are in `layout`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from gpusched_env.arrays import Floats, Ints
from gpusched_env.named_arrays import NamedArrays


class Facts(NamedArrays):
    """The constants of a run. Mechanisms add some (`gpusched_env.mechanisms`).

    Attributes:
        configs: The configurations, (C, CONFIG_COLUMNS).
        shares: Their shares of a GPU, 1 for whole ones, (C,).
        kilowatts: Power of a node with u busy GPUs [kW], (V, G + 1).
        planned: The factor on the time of every application with which policies plan, (A, C).
    """

    if TYPE_CHECKING:  # constants of mechanisms

        def __getattr__(self, name: str) -> Any: ...

    configs: Annotated[Ints, 2]
    shares: Annotated[Floats, 1]
    kilowatts: Annotated[Floats, 2]
    planned: Annotated[Floats, 2]


class Board(NamedArrays):
    """The part of the state that policies may see.

    Mechanisms add arrays (`gpusched_env.mechanisms`): a kernel may read them where `board.has_x` is true.

    Rows of jobs that are not submitted yet, and of distributions of only such jobs, are NaN.

    Attributes:
        facts: The constants.
        jobs: The jobs, (J, JOB_COLUMNS).
        tau: Seconds per epoch, (J, C); inf where not allowed. On shared GPUs with an interference model: with the
            worst possible co-runners.
        nodes: The nodes, (N, NODE_COLUMNS and, if GPUs can be shared, two columns for each).
        capacity: Free capacity of each GPU type now, (V, CAPACITY_COLUMNS + index).
        node_rate: r_v(u), the cost rate of a node with u busy GPUs at the present price [€/s], (V, G + 1).
        planning_rate: Planned cost rate of an application on a configuration, alone on its node [€/s], (A, C).
        least_rate: Its least cost rate, in a full node [€/s], (A, C); inf where its type has no node.
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

    together: ClassVar[tuple[str, ...]] = (
        "clock", "count", "capacity", "nodes", "order", "active", "keys", "edges", "jobs", "tau", "memory", "survival",
        "tail",
    )  # fmt: skip

    if TYPE_CHECKING:  # arrays of mechanisms

        def __getattr__(self, name: str) -> Any: ...

    facts: Facts
    jobs: Annotated[Floats, 2]
    tau: Annotated[Floats, 2]
    nodes: Annotated[Ints, 2]
    capacity: Annotated[Ints, 2]
    node_rate: Annotated[Floats, 2]
    planning_rate: Annotated[Floats, 2]
    least_rate: Annotated[Floats, 2]
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
    """The part of the state that is hidden from policies.

    Attributes:
        outcome: Epochs needed, and when jobs will be complete, (J, OUTCOME_COLUMNS).
        jobs: Every job's first row of `Board.jobs`, disclosed when it is submitted, (J, JOB_COLUMNS).
        tau: Its row of `Board.tau`, likewise, (J, C).
        edges: The rows of `Board.edges`, disclosed with the first job that has such bins, (E, B + 1).
        survival: Those of `Board.survival`, disclosed with the first job that has the distribution, (D, B).
        tail: Those of `Board.tail`, likewise, (D, B + 1).
        log: One row per node and interval in which a job held one configuration in one place, (L, LOG_COLUMNS).
    """

    together: ClassVar[tuple[str, ...]] = ("outcome",)

    if TYPE_CHECKING:  # arrays of mechanisms

        def __getattr__(self, name: str) -> Any: ...

    outcome: Annotated[Floats, 2]
    jobs: Annotated[Floats, 2]
    tau: Annotated[Floats, 2]
    edges: Annotated[Floats, 2]
    survival: Annotated[Floats, 2]
    tail: Annotated[Floats, 2]
    log: Annotated[Floats, 2]
