"""A run as a folder of open files: instance.json, intervals.csv, jobs.csv, run.json (docs/run-format.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.files import new_folder, write_atomically
from gpusched_env.formats.instance_file import load_instance, save_instance
from gpusched_env.formats.json_fields import check_provenance, value_of
from gpusched_env.model import Instance
from gpusched_env.model.rates import rent_eur_per_h
from gpusched_env.parsing import parse_json
from gpusched_env.provenance import provenance
from gpusched_env.simulator import Result
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.result import kwh_of_bill
from gpusched_env.simulator.state import log_columns

FORMAT = "gpusched run"
VERSION = 2
RUN_FILES = ("instance.json", "intervals.csv", "jobs.csv", "run.json")
MAY_HOLD = (*RUN_FILES, "report.html")
"""Files that the folder of a former run may hold; the report that `gpusched report` made of it is one of them."""

_INTERVALS = {
    "job": at.LOG_JOB, "node": at.LOG_NODE, "gpus": None, "gpu": at.LOG_SLOT, "configuration": at.LOG_CONFIG,
    "start_s": at.LOG_START, "ready_s": at.LOG_READY, "end_s": at.LOG_END, "epochs": at.LOG_EPOCHS,
}  # fmt: skip
"""Columns of `intervals.csv`, and where each is in the simulator's log."""
_WHOLE = ("job", "node", "gpus", "gpu", "host", "switches")
_JOBS = (
    "job", "submission_s", "due_s", "start_s", "completion_s", "epochs_needed", "energy_eur", "tardiness_eur",
    "switches",
)  # fmt: skip
_FACTS = (
    "policy", "seed", "energy_eur", "tardiness_eur", "total_eur", "late_jobs", "mean_completion_s", "rounds",
    "decision_s", "provenance",
)  # fmt: skip
_COUNTS = ("seed", "late_jobs", "rounds")
SITE_FACTS = ("cap_forced_s", "over_cap_eur", "gpu_eur")
"""Fields of `run.json` where the power of the site has a cap, GPU-hours have a price, or there are `mechanisms`."""
_METERED = ("energy_kwh", "co2_kg", "demand_eur")
"""Fields of `run.json` where prices change by period; `co2_kg` where the carbon intensity is known."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The content of a run folder.

    Attributes:
        instance: The instance that was run.
        intervals: One row per interval and node, the columns of `intervals.csv`.
        jobs: One row per job, the columns of `jobs.csv`.
        policy: Name of the policy.
        facts: The fields of `run.json`: seed, totals, rounds, provenance.
    """

    instance: Instance
    intervals: pl.DataFrame
    jobs: pl.DataFrame
    policy: str
    facts: Mapping[str, Any]


def write_run(
    result: Result, folder: str | Path, *, command: str | None = None, facts: Mapping[str, Any] | None = None
) -> None:
    """Write the finished run `result` to `folder`: the whole of it, or nothing.

    An existing folder is replaced only if it is empty or holds nothing but the files of a former run. A run is written
    with the epochs needed: the folder has values that policies may not know.

    Args:
        result: The run, simulated with its intervals (`record=True`).
        folder: The folder to make.
        command: The command line that made it; by default the present process's.
        facts: All else that the run depends on (scenario, options of `simulate`), for its provenance.

    Raises:
        InputError: The run is not finished or has no intervals, or the folder cannot be taken.
    """
    if not np.all(np.isfinite(result.completion_s)):
        first = int(np.argmin(np.isfinite(result.completion_s)))
        raise InputError(f"result.completion_s[{first}]", float(result.completion_s[first]), "a finished run")
    if not len(result.log):
        raise InputError("result.log", 0, "a run simulated with its intervals (record=True)")
    with new_folder(folder, ours=MAY_HOLD) as draft:
        save_instance(result.instance, draft / "instance.json")
        write_atomically(
            draft / "intervals.csv", result.intervals().select(list(_interval_columns(result.instance))).write_csv()
        )
        write_atomically(draft / "jobs.csv", _job_rows(result).write_csv())
        write_atomically(
            draft / "run.json", json.dumps(_run_facts(result, command, facts or {}), indent=1, allow_nan=False) + "\n"
        )


def read_run(folder: str | Path) -> RecordedRun:
    """Read the run folder that `write_run` made.

    Raises:
        InputError: A file or a column is missing, a file is incomplete, or the format version is another one.
    """
    source = Path(folder)
    facts = _read_facts(source / "run.json")
    instance = load_instance(source / "instance.json")
    return RecordedRun(
        instance=instance,
        intervals=_read_rows(source / "intervals.csv", _interval_columns(instance)),
        jobs=_read_rows(source / "jobs.csv", _schema(_JOBS)),
        policy=facts["policy"],
        facts=facts,
    )


def _schema(names: Iterable[str]) -> pl.Schema:
    types = {"configuration": pl.String(), **dict.fromkeys(_WHOLE, pl.Int64())}
    return pl.Schema({name: types.get(name, pl.Float64()) for name in names})


def _interval_columns(instance: Instance) -> pl.Schema:
    return _schema([*_INTERVALS, "host"] if instance.first_machine else _INTERVALS)


def _job_rows(result: Result) -> pl.DataFrame:
    jobs = result.instance.jobs
    own = {"job": np.arange(len(jobs)), "energy_eur": result.job_energy_eur, "tardiness_eur": result.job_tardiness_eur}
    of_result = ("start_s", "completion_s", "switches")
    columns = [own[name] if name in own else getattr(result if name in of_result else jobs, name) for name in _JOBS]
    return pl.DataFrame(dict(zip(_JOBS, columns, strict=True)), schema=_schema(_JOBS))


def _run_facts(result: Result, command: str | None, facts: Mapping[str, Any]) -> dict[str, Any]:
    instance = result.instance
    own = {"policy": result.policy, "seed": result.seed, "instance": instance.name, "instance_seed": instance.seed}
    values = {name: getattr(result, name) for name in _FACTS[:-1]}
    if rent_eur_per_h(instance) or any(own.mechanism == "cap" or "." in own.mechanism for own in instance.mechanisms):
        values |= {name: getattr(result, name) for name in SITE_FACTS}
    if instance.find("prices") is not None:
        values |= {name: getattr(result, name) for name in _METERED if np.isfinite(getattr(result, name))}
    values["decision_s"] = result.decision_s if np.isfinite(result.decision_s) else None
    return {"format": FORMAT, "version": VERSION, **values, "provenance": provenance(command, **{**facts, **own})}


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = parse_json(path.read_bytes())
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file of a run folder") from error
    except ValueError as error:
        raise InputError(str(path), str(error), "a whole JSON file, as write_run writes it") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise InputError(f"{path}: format", facts.get("format") if isinstance(facts, dict) else facts, repr(FORMAT))
    if facts.get("version") != VERSION:
        raise InputError(f"{path}: version", facts.get("version"), f"{VERSION}, the version that this release reads")
    for name in _FACTS:
        if name not in facts:
            raise InputError(f"{path}: {name}", None, "a value: the field is missing")
    for name in {*_FACTS, *SITE_FACTS, *_METERED} & facts.keys() - {"provenance"}:
        kind = str if name == "policy" else int if name in _COUNTS else float
        if name != "decision_s" or facts[name] is not None:
            value_of(f"{path}: {name}", facts[name], kind)
    check_provenance(str(path), facts["provenance"])
    return facts


def _read_rows(path: Path, schema: pl.Schema) -> pl.DataFrame:
    try:
        text = pl.read_csv(path, infer_schema=False)
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a file of a run folder") from error
    except pl.exceptions.PolarsError as error:
        raise InputError(str(path), str(error), "a whole CSV file, as write_run writes it") from error
    if text.columns != list(schema):
        raise InputError(f"{path}: columns", text.columns, ", ".join(schema))
    frame = text.cast(schema, strict=False)
    for name in schema:
        good = frame[name].is_not_null() & (frame[name].is_finite() if schema[name] == pl.Float64 else True)
        if not good.all():
            row = int(good.arg_min() or 0)
            raise InputError(f"{path}: line {row + 2}, {name}", text[name][row], f"a value of type {schema[name]}")
    return frame


def read_result(folder: Path) -> Result:
    """Read the run folder, with its intervals."""
    return result_of(read_run(folder))


def result_of(run: RecordedRun) -> Result:
    if len(run.jobs) != len(run.instance.jobs):
        raise InputError("jobs.csv", len(run.jobs), f"a row for each of the {len(run.instance.jobs)} jobs")
    seconds = run.facts["decision_s"]
    facts = {name: run.facts[name] for name in ("seed", "energy_eur", "tardiness_eur", "rounds")}
    facts |= {name: run.facts.get(name, 0.0) for name in SITE_FACTS}
    facts |= {name: run.facts[name] for name in _METERED if name in run.facts}
    if run.instance.find("prices") is None:
        facts["energy_kwh"] = kwh_of_bill(run.instance, facts["energy_eur"] - facts["over_cap_eur"] - facts["gpu_eur"])
    return Result(
        instance=run.instance,
        policy=run.policy,
        **facts,
        start_s=run.jobs["start_s"].to_numpy(),
        completion_s=run.jobs["completion_s"].to_numpy(),
        switches=run.jobs["switches"].to_numpy(),
        job_energy_eur=run.jobs["energy_eur"].to_numpy(),
        job_tardiness_eur=run.jobs["tardiness_eur"].to_numpy(),
        decision_s=float("nan") if seconds is None else seconds,
        log=_log(run),
    )


def _log(run: RecordedRun) -> NDArray[np.float64]:
    """Return the intervals as rows of the simulator's log, (L, `log_columns`)."""
    instance, rows = run.instance, run.intervals
    place = {configuration.name: i for i, configuration in enumerate(instance.configurations)}
    for field, most in (("job", len(instance.jobs)), ("node", len(instance.nodes))):
        wrong = [value for value in rows[field].to_list() if not 0 <= value < most]
        if wrong:
            raise InputError(f"intervals.csv: {field}", wrong[0], f"from 0 to {most - 1}")
    unknown = [name for name in rows["configuration"].to_list() if name not in place]
    if unknown:
        raise InputError("intervals.csv: configuration", unknown[0], "a configuration of the instance")
    log = np.full((len(rows), log_columns(instance)), -1.0)
    for name, index in (_INTERVALS | ({"host": at.LOG_HOST} if instance.first_machine else {})).items():
        if index not in {None, at.LOG_CONFIG}:
            log[:, index] = rows[name].to_numpy()
    if instance.most_spread:
        log[:, at.LOG_GPUS] = rows["gpus"].to_numpy()
    log[:, at.LOG_CONFIG] = [place[name] for name in rows["configuration"].to_list()]
    return log
