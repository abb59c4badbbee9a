"""The audit of a run folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.audit.bill import Bill, check_bill, make_bill
from gpusched_env.audit.difference import Difference, same_amount
from gpusched_env.audit.holding import check_allowed, check_together, lives
from gpusched_env.audit.progress import check_progress
from gpusched_env.audit.reading import check_lines
from gpusched_env.audit.record import check_origin, check_rounds, read_record
from gpusched_env.audit.tenants import check_cells, check_quotas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.holding import Holding
    from gpusched_env.audit.record import Record

_LATE_S = 1e-6  # a job that ends within a microsecond of its due date is not counted as late


def audit(folder: str | Path) -> list[Difference]:
    """Recompute a run from its folder alone, and list what the folder records otherwise.

    Checked are: GPUs, GPU type, memory and permission of every interval; the nodes of what takes several; the GPUs of
    every node, the shares of every GPU and the quotas of tenants at every time; order, restart overhead, interference
    and progress of every job's intervals; start, completion, switches, energy and tardiness cost of every job; the
    totals; the order of the lines; policy, seeds and names that the folder gives twice; and that there were as many
    rounds as the intervals tell of. Amounts are compared to 1e-9 relative, times to a nanosecond (see `difference`).
    The seconds of decision leave no trace to check.

    Args:
        folder: A run folder, as docs/run-format.md says.

    Returns:
        The differences, causes before effects: what the intervals hold, progress, attributions, totals, lines,
        origin. Empty if all agree.

    Raises:
        InputError: The folder is malformed: a file, field or column is missing, a value is no number or is out of its
            range, a version is unknown, or a line names what the instance does not have.
    """
    record = read_record(Path(folder))
    by_job = lives(record)
    bill = make_bill(record)
    return [
        *check_allowed(record),
        *check_together(record, by_job),
        *bill.overfull,
        *check_quotas(record),
        *check_cells(record),
        *check_progress(record, by_job),
        *check_bill(record, bill),
        *_check_costs(record, by_job, bill),
        *check_lines(record, by_job),
        *check_rounds(record, by_job),
        *check_origin(record),
    ]


def _check_costs(record: Record, by_job: list[list[Holding]], bill: Bill) -> Iterator[Difference]:
    """Compare tardiness costs and totals; a job without intervals is reported elsewhere and left out here."""
    tardiness: list[float] = []
    stays: list[float] = []
    late = 0
    for job, (facts, life) in enumerate(zip(record.jobs, by_job, strict=True)):
        if not life:
            continue
        completion = max(holding.end_s for holding in life)
        cost = facts.weight_eur_per_s * max(0.0, completion - facts.due_s)
        tardiness.append(cost)
        stays.append(completion - facts.submission_s)
        late += completion > facts.due_s + _LATE_S
        claimed = record.claims[job]["tardiness_eur"]
        if not same_amount(claimed, cost):
            yield Difference(f"jobs.csv line {job + 2} (job {job})", claimed, cost, "tardiness_eur")
    recomputed = {
        "energy_eur": bill.energy_eur,
        "tardiness_eur": math.fsum(tardiness),
        "total_eur": bill.energy_eur + math.fsum(tardiness),
        "late_jobs": late,
        "mean_completion_s": math.fsum(stays) / max(1, len(stays)),
    }
    for name, value in recomputed.items():
        claimed = record.run.number(name)
        if not same_amount(claimed, value):
            yield Difference("run.json", claimed, value, name)
