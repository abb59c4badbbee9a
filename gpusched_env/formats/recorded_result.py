"""A run folder as the result that was written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.run_folder import read_run
from gpusched_env.simulator import Result
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gpusched_env.formats.run_folder import RecordedRun


def read_result(folder: Path) -> Result:
    """Read the run folder, with its intervals.

    Raises:
        InputError: It is no run folder, or names what its instance does not have.
    """
    return result_of(read_run(folder))


def result_of(run: RecordedRun) -> Result:
    """Give the result that was written as this run.

    Raises:
        InputError: An interval names a job, node or configuration that the instance does not have, or a job is missing.
    """
    if len(run.jobs) != len(run.instance.jobs):
        raise InputError("jobs.csv", len(run.jobs), f"a row for each of the {len(run.instance.jobs)} jobs")
    column = {name: run.jobs[name].to_numpy() for name in run.jobs.columns}
    seconds = run.facts["decision_s"]
    return Result(
        instance=run.instance,
        policy=run.policy,
        seed=run.facts["seed"],
        energy_eur=run.facts["energy_eur"],
        tardiness_eur=run.facts["tardiness_eur"],
        start_s=column["start_s"],
        completion_s=column["completion_s"],
        job_energy_eur=column["energy_eur"],
        job_tardiness_eur=column["tardiness_eur"],
        switches=column["switches"],
        rounds=run.facts["rounds"],
        decision_s=float("nan") if seconds is None else seconds,
        log=_log(run),
    )


def _log(run: RecordedRun) -> NDArray[np.float64]:
    """Give the intervals as rows of the simulator's log, (L, LOG_COLUMNS), with cells one column more."""
    instance, rows = run.instance, run.intervals
    place = {configuration.name: i for i, configuration in enumerate(instance.configurations)}
    for field, most in (("job", len(instance.jobs)), ("node", len(instance.nodes))):
        wrong = [value for value in rows[field].to_list() if not 0 <= value < most]
        if wrong:
            raise InputError(f"intervals.csv: {field}", wrong[0], f"from 0 to {most - 1}")
    unknown = [name for name in rows["configuration"].to_list() if name not in place]
    if unknown:
        raise InputError("intervals.csv: configuration", unknown[0], "a configuration of the instance")
    columns = {
        at.LOG_JOB: rows["job"],
        at.LOG_NODE: rows["node"],
        at.LOG_START: rows["start_s"],
        at.LOG_READY: rows["ready_s"],
        at.LOG_END: rows["end_s"],
        at.LOG_EPOCHS: rows["epochs"],
        at.LOG_SLOT: rows["gpu"],
    } | ({at.LOG_HOST: rows["host"]} if instance.hosts else {})
    log = np.empty((len(rows), at.LOG_COLUMNS + bool(instance.hosts)))
    for index, values in columns.items():
        log[:, index] = values.to_numpy()
    log[:, at.LOG_CONFIG] = [place[name] for name in rows["configuration"].to_list()]
    return log
