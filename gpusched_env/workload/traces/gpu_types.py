"""The GPU types that rows of a trace name, as GPU types of a scenario: on which each job's duration holds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.catalogue import gpu_types_of
from gpusched_env.workload.traces.likeness import likely_gpu_type, shell_word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.traces.trace import Trace

_SHOWN = 3
"""Names for which an error writes the option that says what they are."""


def jobs_by_name(trace: Trace) -> Counter[str]:
    """Count the jobs by the GPU type that their rows name, the most frequent first; empty: those that name none."""
    return Counter(dict(Counter(trace.gpu_type or [""] * len(trace)).most_common()))


def gpu_types_named(scenario: Scenario, trace: Trace) -> dict[str, str | None]:
    """Return the GPU type of the scenario for every name that rows of the trace have.

    A name stands for what `trace.gpu_types` says, else for the type of the cluster of that name, else for the only one
    that is `like` it and as fast; capital and small letters count the same. Rows that name none, and names that
    `trace.gpu_types` maps to an empty text, are of `trace.reference_gpu_type`, by default the cluster's first.

    Returns:
        The types by name, as the file spells it; None where the cluster has none.

    Raises:
        InputError: `trace.gpu_types` maps a name to a type that there is not.
    """
    types, replay = scenario.cluster.gpu_types, scenario.trace
    reference = (replay and replay.reference_gpu_type) or types[0]
    of_name: dict[str, str] = {"": reference}
    alike: dict[str, list[str]] = {}
    for own in scenario.gpu_types:
        if own.name in types and own.like is not None and own.speed == 1.0:
            alike.setdefault(own.like.casefold(), []).append(own.name)
    of_name |= {name: found[0] for name, found in alike.items() if len(found) == 1}
    of_name |= {name.casefold(): name for name in types}
    known = {name.casefold(): name for name in gpu_types_of(scenario)}
    for spelling, name in (replay.gpu_types if replay else {}).items():
        if name.casefold() not in known and name:
            raise InputError(
                f"trace.gpu_types.{spelling}", name, f"one of {', '.join(known.values())}, or an empty text"
            )
        of_name[spelling.casefold()] = known[name.casefold()] if name else reference
    return {name: of_name.get(name.casefold()) for name in jobs_by_name(trace)}


def gpu_type_of_jobs(scenario: Scenario, trace: Trace) -> NDArray[np.str_]:
    """Return the GPU type on which each job's duration holds, shape (J,).

    Raises:
        InputError: Rows name a type that the cluster does not have; says how many, and what can be done.
    """
    types = gpu_types_named(scenario, trace)
    if None in types.values():
        raise _unknown(scenario, trace, types)
    return np.array([types[name] for name in trace.gpu_type or [""] * len(trace)], dtype=np.str_)


def names_a_type(scenario: Scenario, trace: Trace) -> NDArray[np.bool_]:
    """Return which rows name a GPU type, shape (J,); names that are mapped to an empty text count as none."""
    empty = {name.casefold() for name, to in (scenario.trace.gpu_types if scenario.trace else {}).items() if not to}
    names = trace.gpu_type or [""] * len(trace)
    return np.array([bool(name) and name.casefold() not in empty for name in names], dtype=np.bool_)


def ways_out(scenario: Scenario, types: dict[str, str | None]) -> str:
    """Return what can be done about names that the cluster does not have: options, to be pasted."""
    unknown = [name for name, of in types.items() if of is None]
    had = [shell_word(name) for name, of in types.items() if of is not None and name]
    likely = {name: likely_gpu_type(name, scenario.cluster.gpu_types) or "TYPE" for name in unknown[:_SHOWN]}
    mapped = " ".join(f"--set {shell_word(f'trace.gpu_types.{name}={of}')}" for name, of in likely.items())
    rows = f'--where "gpu_type in ({", ".join(had)})"' if had else "--where 'gpu_type = NAME'"
    return (
        f"say which of them each is: {mapped}; or take other rows: {rows}; or leave the column unread: "
        "--set trace.columns.gpu_type="
    )


def _unknown(scenario: Scenario, trace: Trace, types: dict[str, str | None]) -> InputError:
    count = jobs_by_name(trace)
    said = ", ".join(f"{name} {count[name]:,} jobs" for name, of in types.items() if of is None)
    allowed = f"GPU types of the cluster ({', '.join(scenario.cluster.gpu_types)}); {ways_out(scenario, types)}"
    return InputError(f"{trace.name}: gpu_type", said, allowed)
