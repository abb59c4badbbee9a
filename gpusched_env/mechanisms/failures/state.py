"""What failures add to the state of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.mechanisms.failures.checkpoints import expected_factor
from gpusched_env.mechanisms.failures.model import Failures
from gpusched_env.mechanisms.shares.planned import planned_slowdown
from gpusched_env.simulator.run import Board, Facts, Hidden

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance

# outages: float64 (N, OUTAGE_COLUMNS).
IS_DOWN = 0  # 1 if the node is down
ANNOUNCED_S = 1  # when it will go down, as announced [s]; inf: nothing is announced
FAILED = 2  # outages without notice so far
NOTICED_S = 3  # when the present or the next outage was announced [s]; inf: it was or is not
STOPS = 4  # 1 if the announced outage stops jobs, 0 if the node comes back at once
OUTAGE_COLUMNS = 5

# saved: float64 (J, SAVED_COLUMNS).
SAVED_EPOCHS = 0  # epochs that the job had done when it was last saved
SAVED_S = 1  # when that was, or when it has been ready since [s]
LOST_EPOCHS = 2  # epochs that it has lost
STOPPED_S = 3  # when an outage stopped it, if that was after the last round [s]; else -1
SAVED_COLUMNS = 4

# checkpointing: float64 (C, CHECKPOINT_COLUMNS).
INTERVAL_S = 0  # seconds of work between checkpoints; inf: none are written
WRITING_S = 1  # seconds for which a checkpoint takes
CHECKPOINT_COLUMNS = 2

# timeline: float64 (T, TIMELINE_COLUMNS), by time.
TIME = 0  # when it happens [s]
EVENT = 1  # UP, NOTICE or DOWN
NODE = 2  # to which node
DOWN_S = 3  # of a NOTICE when the node goes down [s]; of a DOWN when it was announced [s]
ROW_STOPS = 4  # 1 if the outage stops jobs, 0 if the node comes back at once
TIMELINE_COLUMNS = 5
UP, NOTICE, DOWN = range(3)


class FailureFacts(Facts):
    """Adds the constants of checkpoints.

    Attributes:
        checkpointing: Checkpoints by configuration, (C, CHECKPOINT_COLUMNS); (0, 0) without failures.
        working: The true time of every application over the planned one, while it runs, (A, C); (0, 0) without.
        expected_outages: What is expected of a node, by GPU type, as `Expected`, (V, 5); (0, 0) without.
    """

    checkpointing: Annotated[Floats, 2]
    working: Annotated[Floats, 2]
    expected_outages: Annotated[Floats, 2]


class FailureBoard(Board):
    """Adds what policies see of failures.

    Attributes:
        outages: The nodes, (N, OUTAGE_COLUMNS); (0, 0) without failures.
        saved: The jobs, (J, SAVED_COLUMNS); (0, 0) without failures.
        passed: How many rows of the timeline have happened, (1,).
    """

    outages: Annotated[Floats, 2]
    saved: Annotated[Floats, 2]
    passed: Annotated[Ints, 1]


class FailureHidden(Hidden):
    """Adds all outages, also those to come.

    Attributes:
        timeline: What happens to nodes, (T, TIMELINE_COLUMNS).
    """

    timeline: Annotated[Floats, 2]


def constants(instance: Instance) -> dict[str, NDArray[np.float64]]:
    """Return the constants of the runs of an instance: also the planned times, which contain checkpoints."""
    own = instance.of(Failures)
    if own is None:
        return {name: np.zeros((0, 0)) for name in ("checkpointing", "working", "expected_outages")}
    # A restart takes an application as long as its jobs on average.
    table, applications = instance.jobs, len(instance.jobs.applications)
    counts = np.maximum(1, np.bincount(table.application, minlength=applications))
    restart_s = np.bincount(table.application, table.restart_s, applications) / counts
    checkpointing = np.zeros((len(instance.configurations), CHECKPOINT_COLUMNS))
    planned, working = planned_slowdown(instance), np.ones((applications, len(instance.configurations)))
    for c, (configuration, v) in enumerate(zip(instance.configurations, instance.type_of_configuration, strict=True)):
        interval_s, between_s = own.interval_of(v, configuration.nodes), own.between_failures_s(v, configuration.nodes)
        checkpointing[c] = interval_s, own.checkpoint_s
        writing = expected_factor(interval_s, own.checkpoint_s, np.inf, 0.0)
        for a in range(applications):
            factor = expected_factor(interval_s, own.checkpoint_s, between_s, restart_s[a]) if own.planned else writing
            planned[a, c] *= factor
            working[a, c] = writing / factor
    expected = np.zeros((0, 0)) if own.expected is None else np.array(own.expected, dtype=np.float64)
    return {"checkpointing": checkpointing, "working": working, "expected_outages": expected, "planned": planned}


def arrays(instance: Instance) -> dict[str, NDArray[Any]]:
    """Return the arrays of a run of an instance that begins."""
    own = instance.of(Failures)
    if own is None:
        none = np.zeros((0, 0))
        return {"outages": none, "saved": none, "timeline": none, "passed": np.zeros(1, dtype=np.int64)}
    outages, saved = np.zeros((len(instance.nodes), OUTAGE_COLUMNS)), np.zeros((len(instance.jobs), SAVED_COLUMNS))
    outages[:, [ANNOUNCED_S, NOTICED_S]], saved[:, STOPPED_S] = np.inf, -1.0
    rows: list[tuple[float, ...]] = []
    for node, noticed_s, down_s, up_s in own.outages:
        if noticed_s < down_s:
            rows.append((noticed_s, NOTICE, node, down_s, float(up_s > down_s)))
        rows.append((down_s, DOWN, node, noticed_s, float(up_s > down_s)))
        if up_s < np.inf:
            rows.append((up_s, UP, node, 0.0, 0.0))
    # An outage of no length ends after it has begun; else nodes come back before others go.
    rows.sort(key=lambda row: row[0])
    timeline = np.array(rows).reshape(len(rows), TIMELINE_COLUMNS)
    return {"outages": outages, "saved": saved, "timeline": timeline, "passed": np.zeros(1, dtype=np.int64)}
