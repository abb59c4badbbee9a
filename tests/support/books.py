"""Check that the books of a round agree with what its jobs hold."""

import numpy as np

from gpusched_env import View
from gpusched_env.mechanisms.shares.placement import slots
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.free_capacity import measure


def nodes_of(view: View, job: int) -> list[int]:
    """List the nodes of a job: those of its spread GPUs, those that follow each other for a share, or their chain."""
    nodes, n = [], int(view.jobs[job, at.NODE])
    kind = view.configs[int(view.jobs[job, at.CONFIG])]
    if kind[at.CONFIG_SPREAD]:
        return view.jobs[job, at.JOB_COLUMNS : at.JOB_COLUMNS + kind[at.CONFIG_NODES]].astype(int).tolist()
    if kind[at.CONFIG_UNITS]:
        return list(range(n, n + kind[at.CONFIG_NODES]))
    while n >= 0:
        nodes.append(n)
        n = int(view.nodes[n, at.NEXT])
    return nodes


def check_books(view: View, *, capacity: bool = True) -> None:
    """Check that nothing is given twice, and that nodes (and `capacity`) say just what the active jobs hold."""
    free = view.nodes[:, at.USABLE].copy()
    used = np.zeros((len(free), slots(view.board)), dtype=np.int64)
    for job in view.active:
        config = int(view.jobs[job, at.CONFIG])
        if config < 0:
            assert view.jobs[job, at.NODE] == view.jobs[job, at.SLOT] == -1
            continue
        assert np.isfinite(view.tau[job, config])
        own, kind = nodes_of(view, job), view.configs[config]
        assert len(own) == kind[at.CONFIG_NODES]
        for n in own:
            assert view.nodes[n, at.NODE_TYPE] == kind[at.CONFIG_TYPE]
            if kind[at.CONFIG_UNITS] > 0:
                slot = int(view.jobs[job, at.SLOT])
                used[n, slot : slot + kind[at.CONFIG_GPUS]] += kind[at.CONFIG_UNITS]
            else:
                assert view.jobs[job, at.SLOT] == -1
                whole = kind[at.CONFIG_GPUS] == view.nodes[n, at.NODE_GPUS]
                assert len(own) == 1 or whole or kind[at.CONFIG_SPREAD]
                free[n] -= kind[at.CONFIG_GPUS]
    free -= (used > 0).sum(axis=1)
    assert free.min() >= 0
    assert used.max(initial=0) <= at.UNITS
    np.testing.assert_array_equal(view.nodes[:, at.FREE], free)
    np.testing.assert_array_equal(view.nodes[:, at.NODE_COLUMNS : at.NODE_COLUMNS + slots(view.board)], used)
    if capacity:
        measured = view.capacity.copy()
        measure(view.board)
        np.testing.assert_array_equal(view.capacity, measured)
