"""Instances in which everything of shared clusters may come together: what is in one is drawn with its seed."""

from dataclasses import replace

import numpy as np

from gpusched_env import Cells, Instance, SharedMemory, Tenant, Tenants, UtilisationModel
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from helpers import helped_instance
from instances import by_utilisation, random_instance, with_switching


def mixed_instance(seed: int) -> Instance:
    """Make a crowded instance, with or without pairs, utilisation, networks, switching, labels, quotas, spread GPUs."""
    rng = np.random.default_rng([seed, 12])
    make = helped_instance if rng.random() < 0.4 else random_instance
    spread = bool(np.random.default_rng([seed, 13]).random() < 0.5)
    blocks = ((1,) if make is helped_instance else (1, 2)) if np.random.default_rng([seed, 14]).random() < 0.5 else ()
    more = {"varied": seed % 2 == 1} if make is helped_instance else {"kinds": True, "spread": spread}
    pairs = bool(rng.random() < 0.5)
    instance = make(seed, jobs=20, nodes=6, span_s=500.0, interference=pairs, blocks=blocks, **more)
    if rng.random() < 0.6:
        instance = by_utilisation(instance, priorities=bool(rng.random() < 0.8), power=bool(rng.random() < 0.5))
        if np.random.default_rng([seed, 15]).random() < 0.6:
            instance = _with_memory_that_moves(instance)
    if rng.random() < 0.6:
        instance = with_switching(instance, seed)
    jobs = replace(instance.jobs, opportunistic=rng.random(len(instance.jobs)) < 0.4)
    if rng.random() < 0.5:
        return replace(instance, jobs=jobs)
    gpus = {v.name: sum(n.gpus for n in instance.nodes if n.gpu_type == v.name) for v in instance.gpu_types}
    cells = tuple(Cells(name, 1, count) for name, count in gpus.items() if count)
    tenants = tuple(Tenant(name, cells) for name in "ab")  # as much as there is, so that every job fits at some time
    half = tuple(Cells(cell.gpu_type, 1, max(1, cell.count - 1)) for cell in cells)
    jobs = replace(jobs, tenant=rng.integers(0, 2, len(jobs)))
    try:
        return replace(instance, jobs=jobs).with_mechanisms(Tenants((tenants[0], Tenant("b", half)), "quota"))
    except ValueError:  # a job of the second needs the last GPU
        return replace(instance, jobs=jobs).with_mechanisms(Tenants(tenants, "quota"))


def _with_memory_that_moves(instance: Instance) -> Instance:
    """Let jobs on a GPU of 16 GiB need up to 12 each; limits follow them after up to 5 s."""
    rng = np.random.default_rng([instance.seed, 16])
    need, types = rng.uniform(6.0, 12.0, len(instance.jobs.applications)), len(instance.gpu_types)
    memory = SharedMemory(need, need / 4.0, rng.uniform(0.5, 2.0, (types, len(need))), adapt_s=rng.uniform(0.0, 5.0))
    return instance.with_mechanisms(replace(instance.find("shares"), memory=memory))


def check_shared_gpus(state: State) -> None:
    """Check that no GPU works more than all of its time, and that no host is slowed by more than the overhead.

    A host on several GPUs, or without all memory that it needs, may be slower.
    """
    model, board = state.instance.find("shares"), state.board
    if not isinstance(model, UtilisationModel):
        return
    work: dict[tuple[int, int], float] = {}
    top: dict[tuple[int, int], list[tuple[int, float, float]]] = {}
    for job in board.active[: board.count[at.ACTIVE]].tolist():
        config, node, gpu = (int(board.jobs[job, column]) for column in (at.CONFIG, at.NODE, at.SLOT))
        if gpu < 0:
            continue
        own = int(board.jobs[job, at.APPLICATION])
        pace = 1.0 / (board.jobs[job, at.SLOWDOWN] * board.facts.planned[own, config])
        utilisation = board.facts.utilisation[board.facts.configs[config, at.CONFIG_TYPE], own]
        gpus, nodes, priority = board.facts.configs[config, [at.CONFIG_GPUS, at.CONFIG_NODES, at.CONFIG_PRIORITY]]
        for place in [(n, g) for n in range(node, node + nodes) for g in range(gpu, gpu + gpus)]:
            work[place] = work.get(place, 0.0) + utilisation * pace
            slowest = pace if gpus * nodes == 1 and model.memory is None else np.inf
            top.setdefault(place, []).append((int(priority), utilisation, slowest))
    assert all(total <= 1.0 + 1e-9 for total in work.values())
    for members in top.values():
        highest = max(priority for priority, _, _ in members)
        demand = sum(utilisation for priority, utilisation, _ in members if priority == highest)
        for priority, _, pace in members:
            if priority == highest:
                assert pace >= min(1.0, 1.0 / demand) / (1.0 + model.overhead) - 1e-9
