"""How well a cluster was used in a run, and what jobs of a class got: measures of shared clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.mechanisms.shares.model import UtilisationModel
from gpusched_env.model import Instance
from gpusched_env.simulator import Result
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.result import gpus_on_nodes
from gpusched_experiments.report.metrics import busy_s

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Usage:
    """How a cluster was used from the first submission to the last completion.

    Attributes:
        makespan_s: How long that was [s].
        computing: Part of the GPU time in which GPUs were busy: Σ utilisation · speed · time. An application without a
            utilisation counts as 1. Where sharing is by pairs, a job's work is its time alone.
        memory: Part of the GPUs' memory that jobs had for themselves, over the time; where it moves between jobs, what
            they need of a GPU together, at most all of it.
        held: Part of the GPU time in which a GPU was held; a shared one counts once.
    """

    makespan_s: float
    computing: float
    memory: float
    held: float

    @classmethod
    def of(cls, result: Result) -> Usage:
        """Measure a finished run whose intervals were kept."""
        instance, log = result.instance, result.log
        makespan_s = float(result.completion_s.max() - instance.jobs.submission_s.min())
        gpus = np.array([node.gpus for node in instance.machines])
        memory_gib = np.array([v.memory_gib for v in instance.gpu_types])[instance.type_of_node][
            instance.first_machine :
        ]
        job, length_s = log[:, at.LOG_JOB].astype(np.int64), log[:, at.LOG_END] - log[:, at.LOG_START]
        on_node = gpus_on_nodes(instance, log)
        resident_gib_s = float((instance.jobs.memory_gib[job] * on_node * length_s).sum())
        model = instance.of(UtilisationModel)
        if model is not None and model.memory is not None:
            resident_gib_s = _resident_gib_s(result)
        computing_s = float((_duties(instance, log) * on_node * _alone_s(instance, log)).sum())
        whole_s, whole_gib_s = float(gpus.sum()) * makespan_s, float((gpus * memory_gib).sum()) * makespan_s
        return cls(
            makespan_s=makespan_s,
            computing=computing_s / whole_s,
            memory=resident_gib_s / whole_gib_s,
            held=busy_s(result)[0] / whole_s,
        )


@dataclass(frozen=True, slots=True)
class JobTimes:
    """What jobs of a class got in a run, on average.

    Attributes:
        jobs: How many they are.
        completion_s: From submission to completion [s].
        queueing_s: From submission to the first start [s].
        stretch: Time in which they held GPUs over the time of the same epochs alone on them.
        most_stretch: The greatest of one job.
    """

    jobs: int
    completion_s: float
    queueing_s: float
    stretch: float
    most_stretch: float

    @classmethod
    def of(cls, result: Result, chosen: NDArray[np.bool_]) -> JobTimes:
        """Measure the jobs `chosen`, (J,), of a finished run whose intervals were kept."""
        submission_s, log = result.instance.jobs.submission_s, result.log
        first_rows = np.ones(len(log), dtype=bool)  # a job on several nodes has a row for each
        order = np.lexsort((log[:, at.LOG_NODE], log[:, at.LOG_START], log[:, at.LOG_JOB]))
        same = np.diff(log[order][:, [at.LOG_JOB, at.LOG_START]], axis=0) == 0.0
        first_rows[order[1:]] = ~same.all(axis=1)
        job = log[:, at.LOG_JOB].astype(np.int64)
        held_s, alone_s = (
            np.bincount(job, values * first_rows, minlength=len(submission_s))
            for values in (log[:, at.LOG_END] - log[:, at.LOG_START], _alone_s(result.instance, log))
        )
        stretch = held_s[chosen] / alone_s[chosen]
        return cls(
            jobs=int(chosen.sum()),
            completion_s=float((result.completion_s - submission_s)[chosen].mean()),
            queueing_s=float((result.start_s - submission_s)[chosen].mean()),
            stretch=float(stretch.mean()),
            most_stretch=float(stretch.max()),
        )

    @classmethod
    def by_label(cls, result: Result) -> dict[str, JobTimes]:
        label = result.instance.jobs.opportunistic
        classes = {"guaranteed": ~label, "opportunistic": label}
        return {name: cls.of(result, chosen) for name, chosen in classes.items() if chosen.any()}


def _resident_gib_s(result: Result) -> float:
    """Return the memory that jobs take of their GPUs, at most all of it, times the time that they do [GiB·s]."""
    instance, log = result.instance, result.log
    gpus = gpus_on_nodes(instance, log)
    slot, node = log[:, at.LOG_SLOT].astype(np.int64), log[:, at.LOG_NODE].astype(np.int64)
    need = instance.jobs.memory_gib[log[:, at.LOG_JOB].astype(np.int64)]
    whole = slot < 0
    total = float((need * gpus * (log[:, at.LOG_END] - log[:, at.LOG_START]))[whole].sum())
    each = np.repeat(np.flatnonzero(~whole), gpus[~whole])
    number = slot[each] + np.arange(len(each)) - np.repeat(np.cumsum(gpus[~whole]) - gpus[~whole], gpus[~whole])
    most = np.array([v.memory_gib for v in instance.gpu_types])[instance.type_of_node]
    place = np.tile(node[each] * (number.max(initial=0) + 1) + number, 2)
    times, change = np.concatenate([log[each, at.LOG_START], log[each, at.LOG_END]]), np.r_[need[each], -need[each]]
    order = np.lexsort((times, place))
    held = np.minimum(np.cumsum(change[order])[:-1], np.tile(most[node[each]], 2)[order][:-1])
    same = np.diff(place[order]) == 0
    return total + float((held * np.diff(times[order]))[same].sum())


def _configs(log: NDArray[np.float64]) -> NDArray[np.int64]:
    return log[:, at.LOG_CONFIG].astype(np.int64)


def _alone_s(instance: Instance, log: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long the epochs of every interval would have taken alone on what the job held [s], (L,)."""
    seconds = instance.jobs.seconds_per_epoch[log[:, at.LOG_JOB].astype(np.int64), _configs(log)]
    alone: NDArray[np.float64] = log[:, at.LOG_EPOCHS] * seconds
    return alone


def _duties(instance: Instance, log: NDArray[np.float64]) -> NDArray[np.float64]:
    model = instance.of(UtilisationModel)
    if model is None:
        return np.ones(len(log))
    application = instance.jobs.application[log[:, at.LOG_JOB].astype(np.int64)]
    utilisations: NDArray[np.float64] = model.utilisation[instance.type_of_configuration[_configs(log)], application]
    return utilisations
