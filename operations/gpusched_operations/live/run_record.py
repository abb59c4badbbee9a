"""What a driver's journal tells of its last drive as a run folder, which `gpusched audit`, `report` and `compare` read.

Jobs do not keep to the model: of each, all seconds per epoch are multiplied by one factor, so that the epochs of the
intervals in which it really ran add up to the epochs that it reported. The factors are in `run.json`: they are how far
the model is off.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.formats.run_folder import write_run
from gpusched_env.model import Instance
from gpusched_env.simulator import Result
from gpusched_env.simulator.layout import LOG_COLUMNS
from gpusched_operations.live.costs import HeldGpus, shared_energy_eur
from gpusched_operations.live.drive_state import DriveState
from gpusched_operations.live.journal import read_journal
from gpusched_operations.live.last_drive import LastDrive, LiveRun, last_drive
from gpusched_operations.live.lease import JOURNAL
from gpusched_operations.service.cluster import ClusterNames, configuration_of
from gpusched_operations.service.fields import DecideRequest
from gpusched_operations.service.problem import Problem


def write_drive(state_folder: Path, out: Path, partition: str) -> list[str]:
    """Write the run of the last drive that a driver's journal tells."""
    drive = last_drive(read_journal(state_folder / JOURNAL))
    drive.policy = drive.policy or DriveState.load(state_folder, partition).policy
    cluster, runs, lines = drive.cluster, drive.runs, []
    for name, run in list(runs.items()):
        why = _why_not(run)
        if why:
            lines.append(f"job {name} is not in the run: {why}")
            del runs[name]
    if cluster is None or not runs:
        raise InputError("--out", str(out), "a folder for a run in which at least one job was completed")
    for run in runs.values():
        run.measure()
    instance = _instance(cluster, runs)
    result = _result(instance, cluster, drive)
    factors = {name: round(run.factor, 6) for name, run in runs.items()}
    write_run(result, out, facts={"manager": "slurm", "partition": partition, "time_factors": factors})
    median = statistics.median(factors.values())
    lines.append(f"{out}: {len(runs)} jobs; their seconds per epoch were {median:.3g} x the model's (median)")
    return lines


def _why_not(run: LiveRun) -> str:
    """Return why a job cannot be told; empty: it can."""
    if run.told is None:
        return "the policy was never told of it"
    if run.ran_before:
        return "a part of it ran before this drive"
    if run.outcome != "completed":
        return f"it was not completed ({run.outcome or 'it is not over'})"
    run.stays = sorted((stay for stay in run.stays if stay.end_s > stay.start_s), key=lambda stay: stay.start_s)
    if not run.stays:
        return "it was never seen to run"
    for stay in run.stays:
        try:
            known = replace(configuration_of(stay.configuration), power_limit=1.0).name
        except InputError:
            known = ""
        if known not in run.told["seconds_per_epoch"]:
            return f"there are no times for {stay.configuration}, on which it ran"
    return ""


def _instance(cluster: Mapping[str, Any], runs: Mapping[str, LiveRun]) -> Instance:
    """Return the instance of the jobs: with the times, overheads and epochs that were seen."""
    origin_s = min(run.told["submission_s"] for run in runs.values() if run.told is not None)
    jobs = []
    for name, run in runs.items():
        told = dict(run.told or {})
        for when in ("submission_s", "due_s"):
            told[when] = max(0.0, told[when] - origin_s)
        times = told["seconds_per_epoch"]
        limited = {stay.configuration for stay in run.stays} - times.keys()
        told["seconds_per_epoch"] = times | {each: times[_whole(each)] for each in limited}
        jobs.append(told | {"id": name, "start_s": run.overhead[0], "restart_s": run.overhead[1]})
        for stay in run.stays:
            stay.start_s, stay.end_s = max(told["submission_s"], stay.start_s - origin_s), stay.end_s - origin_s
            stay.ready_s = None if stay.ready_s is None else min(stay.end_s, max(stay.start_s, stay.ready_s - origin_s))
    names = sorted({each for job in jobs for each in job["seconds_per_epoch"]}, key=_by_type)
    prices = {k: v for k, v in cluster["prices"].items() if k in ("energy_eur_per_kwh", "pue")}
    body = {
        "policy": cluster["policy"],
        "now_s": max(stay.end_s for run in runs.values() for stay in run.stays),
        "cluster": cluster["cluster"],
        "configurations": names,
        "prices": prices,
        "applications": cluster["applications"],
        "distributions": cluster["distributions"],
        "jobs": jobs,
    }
    request = DecideRequest.model_validate(body)
    order = sorted(range(len(jobs)), key=lambda i: jobs[i]["submission_s"])
    problem = Problem(request, ClusterNames.of(request), order)
    if len(problem.order) < len(jobs):
        raise InputError("jobs", len(jobs), "jobs that fit the nodes of the partition")
    instance = problem.instance(np.arange(len(jobs), dtype=np.int64))
    return _scaled(instance, [runs[jobs[i]["id"]] for i in order])


def _scaled(instance: Instance, runs: list[LiveRun]) -> Instance:
    """Multiply the times of jobs so that they did the epochs that they reported."""
    columns = {configuration.name: i for i, configuration in enumerate(instance.configurations)}
    seconds, needed = instance.jobs.seconds_per_epoch.copy(), instance.jobs.max_epochs.copy()
    for j, run in enumerate(runs):
        if run.epochs is not None and 0.0 < run.epochs < needed[j]:
            needed[j] = run.epochs
        modelled = sum(
            (stay.end_s - (stay.ready_s or stay.start_s)) / seconds[j, columns[stay.configuration]]
            for stay in run.stays
        )
        if modelled <= 0.0:  # it was over before it was ready: all of its time counts
            run.overhead = (0.0, 0.0)
            for stay in run.stays:
                stay.ready_s = stay.start_s
            modelled = sum((stay.end_s - stay.start_s) / seconds[j, columns[stay.configuration]] for stay in run.stays)
        run.factor = modelled / needed[j]
        seconds[j] *= run.factor
    jobs = replace(
        instance.jobs,
        seconds_per_epoch=seconds,
        epochs_needed=needed,
        start_s=np.array([run.overhead[0] for run in runs]),
        restart_s=np.array([run.overhead[1] for run in runs]),
        resume_s=None,
    )
    return replace(instance, jobs=jobs)


def _result(instance: Instance, cluster: Mapping[str, Any], drive: LastDrive) -> Result:
    """Return the run, with what it cost."""
    runs = drive.runs
    nodes = [node["name"] for node in cluster["cluster"]["nodes"]]
    columns = {configuration.name: i for i, configuration in enumerate(instance.configurations)}
    order = sorted(runs.values(), key=lambda run: (run.told or {})["submission_s"])
    rows = []
    for j, run in enumerate(order):
        for stay in run.stays:
            config = columns[stay.configuration]
            ready_s = stay.start_s if stay.ready_s is None else stay.ready_s
            epochs = (stay.end_s - ready_s) / instance.jobs.seconds_per_epoch[j, config]
            held = sorted(nodes.index(name) for name in stay.nodes)
            rows += [[j, node, config, stay.start_s, ready_s, stay.end_s, epochs, -1.0] for node in held]
    log = np.array(rows).reshape(-1, LOG_COLUMNS)
    energy = _energy_eur(instance, log)
    completion = np.array([run.stays[-1].end_s for run in order])
    late_s = np.maximum(0.0, completion - instance.jobs.due_s)
    tardiness = instance.jobs.tardiness_weight_eur_per_s * late_s
    pauses = [[a.end_s < b.start_s for a, b in pairwise(r.stays)] for r in order]
    changes = {stay.start_s for r in order for stay in r.stays} | {s.end_s for r in order for s in r.stays[:-1]}
    return Result(
        instance=instance,
        policy=drive.policy,
        seed=0,
        energy_eur=float(energy.sum()),
        tardiness_eur=float(tardiness.sum()),
        start_s=np.array([run.stays[0].start_s for run in order]),
        completion_s=completion,
        job_energy_eur=energy,
        job_tardiness_eur=tardiness,
        switches=np.array([sum(1 + paused for paused in each) for each in pauses], dtype=np.int64),
        rounds=max(drive.rounds, len(changes)),
        decision_s=drive.decision_s,
        log=log,
    )


def _energy_eur(instance: Instance, log: NDArray[np.float64]) -> NDArray[np.float64]:
    types = {gpu_type.name: gpu_type for gpu_type in instance.gpu_types}
    eur_per_j = instance.energy_price_eur_per_kwh * instance.pue / 3.6e6
    held = []
    for job, node, config, start_s, _, end_s, *_ in log.tolist():
        given, index = instance.configurations[int(config)], int(instance.type_of_configuration[int(config)])
        saved = types[given.gpu_type].saved_w(given) / given.nodes * eur_per_j
        held.append(HeldGpus(int(node), index, given.gpus_per_node, int(job), start_s, end_s, saved))
    return shared_energy_eur(held, instance)


def _whole(name: str) -> str:
    return replace(configuration_of(name), power_limit=1.0).name


def _by_type(name: str) -> tuple[str, int, int, float]:
    configuration = configuration_of(name)
    return configuration.gpu_type, configuration.nodes, configuration.gpus_per_node, -configuration.power_limit
