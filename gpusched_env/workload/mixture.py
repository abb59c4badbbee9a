"""Mixtures, whose workloads are each of one of several scenarios; and workloads with several classes of jobs."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Instance, JobTable
from gpusched_env.workload.maker import Maker
from gpusched_env.workload.scenario.scenario_file import load_scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.workload.interference_model import InterferenceModel
    from gpusched_env.workload.scenario.scenario import Scenario


def variants_of(scenario: Scenario) -> tuple[Scenario, ...]:
    """Return the scenarios of a mixture, with its name; of a scenario that is none, itself alone."""
    return tuple(_variant(scenario, number) for number in range(len(scenario.mixture))) or (scenario,)


def variant_of(scenario: Scenario, seed: int) -> Scenario:
    """Return the scenario of a seed's workload: number seed modulo how many there are of a mixture."""
    return _variant(scenario, seed % len(scenario.mixture)) if scenario.mixture else scenario


def _variant(mixture: Scenario, number: int) -> Scenario:
    where, variant = f"mixture[{number}]", mixture.mixture[number]
    try:
        other = mixture if variant.scenario is None else load_scenario(variant.scenario)
    except InputError as error:
        raise InputError(f"{where}.scenario: {error.field}", error.value, error.allowed) from None
    if other is not mixture and other.mixture:
        raise InputError(f"{where}.scenario", variant.scenario, "a scenario that is not a mixture itself")
    common: dict[str, object] = {"name": mixture.name, "mixture": None, "compare": mixture.compare}
    if other is not mixture:
        common["jobs.count"] = min(mixture.jobs.count, other.jobs.count)
    try:
        made = other.replace({**common, **variant.settings})
    except InputError as error:
        raise InputError(f"{where}.settings: {error.field}", error.value, error.allowed) from None
    if made.mixture or made.name != mixture.name:
        raise InputError(f"{where}.settings", dict(variant.settings), "neither name nor mixture")
    return made


def classes_of(scenario: Scenario) -> tuple[Scenario, ...]:
    """Return a scenario for each class of jobs; of a scenario without classes, itself alone."""
    made = []
    for number, each in enumerate(scenario.job_classes):
        try:
            made.append(scenario.replace({"job_classes": None, **each.settings}))
        except InputError as error:
            raise InputError(f"job_classes[{number}].settings: {error.field}", error.value, error.allowed) from None
    return tuple(made) or (scenario,)


def parts_of(scenario: Scenario) -> tuple[Scenario, ...]:
    """Return a scenario for each class of jobs of each scenario of a mixture; of another scenario, itself alone."""
    return tuple(part for variant in variants_of(scenario) for part in classes_of(variant))


def seed_of_class(seed: int, number: int) -> int:
    """Return the seed of a class's jobs in the workload of a seed; the first class has that seed itself."""
    return seed if number == 0 else int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> 1)


def join_classes(scenario: Scenario, parts: Sequence[Instance], seed: int) -> Instance:
    """Return the instance with the jobs of all classes, `jobs.count` of the scenario at most, sorted by submission.

    Raises:
        InputError: A job is submitted later than `LONGEST_S`, or co-runners slow each other otherwise in another class.
    """
    first, tables = parts[0], [part.jobs for part in parts]
    if any(part.interference != first.interference for part in parts[1:]):
        allowed = "the same applications in all classes, since they slow each other on shared GPUs"
        raise InputError("job_classes", len(parts), allowed)
    begins = [each.begins_s for each in scenario.job_classes]
    submission_s = np.concatenate([table.submission_s + begin for table, begin in zip(tables, begins, strict=True)])
    order = np.argsort(submission_s, kind="stable")[: scenario.jobs.count]
    applications = tuple(dict.fromkeys(name for table in tables for name in table.applications))
    index = [np.array([applications.index(name) for name in table.applications]) for table in tables]
    later = np.cumsum([0, *(len(table.distributions) for table in tables[:-1])])
    columns: dict[str, NDArray[Any]] = {
        "submission_s": submission_s,
        "due_s": np.concatenate([table.due_s + begin for table, begin in zip(tables, begins, strict=True)]),
        "application": np.concatenate([place[table.application] for place, table in zip(index, tables, strict=True)]),
        "distribution": np.concatenate([table.distribution + n for table, n in zip(tables, later, strict=True)]),
    }
    for field in fields(JobTable):
        values = [getattr(table, field.name) for table in tables]
        if field.name not in columns and isinstance(values[0], np.ndarray):
            columns[field.name] = np.concatenate(values)
    distributions = tuple(each for table in tables for each in table.distributions)
    jobs = JobTable(
        **{name: column[order] for name, column in columns.items()},
        applications=applications,
        distributions=distributions,
    )
    return replace(first, jobs=jobs, seed=seed, saved_kw=_saved_kw(parts, applications))


def _saved_kw(parts: Sequence[Instance], applications: tuple[str, ...]) -> tuple[tuple[float, ...], ...] | None:
    rows = {n: row for p in parts if p.saved_kw for n, row in zip(p.jobs.applications, p.saved_kw, strict=True)}
    return tuple(rows[name] for name in applications) if rows else None


def makers_of(scenario: Scenario, interference: InterferenceModel | None) -> tuple[Maker | Classes, ...]:
    """Return what makes the workloads of a mixture, or of a scenario with classes: one for each of its scenarios."""
    kinds = ((Classes if variant.job_classes else Maker, variant) for variant in variants_of(scenario))
    return tuple(kind(variant, interference) for kind, variant in kinds)


class Classes:
    """Makes instances of a scenario with classes of jobs."""

    def __init__(self, scenario: Scenario, interference: InterferenceModel | None) -> None:
        self._scenario, self.trace = scenario, None
        self._makers = tuple(Maker(each, interference) for each in classes_of(scenario))

    def make(self, seed: int) -> Instance:
        parts = [maker.make(seed_of_class(seed, number)) for number, maker in enumerate(self._makers)]
        return join_classes(self._scenario, parts, seed)
