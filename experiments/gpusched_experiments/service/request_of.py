"""The request that a run makes at an event: from what a policy may see, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.instance_file import interference_fields, synchronisation_field
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.whole_nodes import mark

if TYPE_CHECKING:
    from gpusched_env.model import Configuration, GpuType, Instance
    from gpusched_env.simulator import View

_FIGURES = ("gpu_power_w", "node_base_power_w", "idle_gpu_power_w")


def cluster_part(instance: Instance) -> dict[str, Any]:
    """Give the fields that are the same at every event of a run.

    Raises:
        InputError: The instance has cells, which requests cannot tell.
    """
    if instance.hosts:
        raise InputError("tenancy", instance.tenancy, "none, quota or private")
    tenants = [
        {"name": tenant.name, "cells": [[c.gpu_type, c.gpus, c.count] for c in tenant.cells]}
        for tenant in instance.tenants
    ]
    nodes = [
        {"name": f"node-{n}", "gpu_type": node.gpu_type, "gpus": node.gpus} for n, node in enumerate(instance.nodes)
    ]
    return {
        "cluster": {
            "gpu_types": [_gpu_type(v) for v in instance.gpu_types],
            "nodes": nodes,
            "tenants": tenants,
            "tenancy": instance.tenancy,
        },
        "configurations": [_configuration(c) for c in instance.configurations],
        "prices": {"energy_eur_per_kwh": instance.energy_price_eur_per_kwh, "pue": instance.pue},
        "interference": interference_fields(instance.interference),
        "synchronisation": synchronisation_field(instance).get("synchronisation"),
        "applications": _applications(instance),
    }


def _applications(instance: Instance) -> dict[str, Any]:
    """Give the applications, and with an interference model where their jobs may share GPUs."""
    jobs, told = instance.jobs, instance.interference is not None
    found: dict[str, Any] = {}
    for index, name in enumerate(jobs.applications):
        own = jobs.seconds_per_epoch[jobs.application == index]
        least = own.min(axis=0, initial=np.inf).tolist() if told else []
        found[name or "none"] = {"seconds_per_epoch": [None if s == np.inf else s for s in least]} if least else {}
    return found


def jobs_part(view: View, instance: Instance, seen: dict[int, list[int]]) -> dict[str, Any]:
    """Give the fields that tell the present time, the jobs and the schedule; times and distributions are said once.

    Args:
        view: The present state, in an open round.
        instance: What is run.
        seen: The sets of nodes that jobs of the run have held, by their mark; those held now are added.
    """
    board = view.board
    times: dict[bytes, str] = {}
    curves: dict[tuple[int, int], str] = {}
    jobs = [_job(view, instance, job, times, curves) for job in view.active.tolist()]
    for job, told in zip(view.active.tolist(), jobs, strict=True):
        row = view.jobs[job]
        if row[at.OLD_CONFIG] >= 0:
            seen[mark(board, int(row[at.OLD_NODE]), True)] = _chain(view, int(row[at.OLD_NODE]))
        if row[at.LAST_NODE] >= 0:
            told["state_on"] = [f"node-{n}" for n in seen[int(row[at.LAST_NODES])]]
    return {
        "now_s": view.now_s,
        "jobs": jobs,
        "times": {
            name: [None if s == np.inf else s for s in np.frombuffer(row).tolist()] for row, name in times.items()
        },
        "distributions": {name: _curve(board.edges[bins], board.survival[row]) for (bins, row), name in curves.items()},
        "idle_rounds": int(board.count[at.IDLE]),
    }


def _gpu_type(v: GpuType) -> dict[str, Any]:
    names = _FIGURES if v.node_power_w is None else ("gpu_power_w", "node_power_w")
    figures = {name: getattr(v, name) for name in names}
    return {"name": v.name, "memory_gib": v.memory_gib, "gpus_per_node": v.max_gpus_per_node, **figures}


def _configuration(c: Configuration) -> dict[str, Any]:
    names = ("gpu_type", "gpus_per_node", "nodes", "share", "priority")
    return {name: getattr(c, name) for name in names}


def _job(
    view: View, instance: Instance, job: int, times: dict[bytes, str], curves: dict[tuple[int, int], str]
) -> dict[str, Any]:
    row, table = view.jobs[job], instance.jobs
    # `view.tau` is these seconds with the slow-down that is planned for; the service makes that of them itself.
    seconds = times.setdefault(table.seconds_per_epoch[job].tobytes(), f"t{len(times)}")
    curve = curves.setdefault((int(row[at.EDGES]), int(row[at.DISTRIBUTION])), f"d{len(curves)}")
    resume = {} if table.resume_s is None else {"resume_s": float(row[at.RESUMING_S])}
    tenant = {"tenant": instance.tenants[int(row[at.TENANT])].name} if instance.tenants else {}
    return {
        "id": f"job-{job}",
        "submission_s": float(row[at.SUBMISSION]),
        "due_s": float(row[at.DUE]),
        "tardiness_weight_eur_per_s": float(row[at.WEIGHT]),
        "application": table.applications[int(row[at.APPLICATION])] or "none",
        "max_epochs": float(row[at.MAX_EPOCHS]),
        "epochs_done": float(row[at.EPOCHS]),
        "seconds_per_epoch": seconds,
        "distribution": curve,
        "restart_s": float(row[at.RESTART_S]),
        "start_s": float(row[at.STARTING_S]),
        "opportunistic": bool(row[at.OPPORTUNISTIC]),
        "running": _running(view, job),
        "started_s": None if np.isnan(row[at.START_S]) else float(row[at.START_S]),
        **resume,
        **tenant,
    }


def _running(view: View, job: int) -> dict[str, Any] | None:
    """Give what a job held when the round began."""
    row = view.jobs[job]
    config = int(row[at.OLD_CONFIG])
    if config < 0:
        return None
    slot = int(row[at.OLD_SLOT])
    return {
        "configuration": view.configurations[config].name,
        "nodes": [f"node-{n}" for n in _chain(view, int(row[at.OLD_NODE]))],
        "gpu": None if slot < 0 else slot,
        "since_s": float(row[at.BASE_S]),
        "ready_s": float(row[at.READY_S]),
    }


def _chain(view: View, first: int) -> list[int]:
    nodes, n = [], first
    while n >= 0:
        nodes.append(n)
        n = int(view.nodes[n, at.OLD_NEXT])
    return nodes


def _curve(edges: Any, survival: Any) -> dict[str, list[float]]:
    """Give a distribution without the bins of no length that pad it."""
    last = int(np.argmax(edges >= 1.0))
    return {"edges": edges[: last + 1].tolist(), "survival": survival[:last].tolist()}
