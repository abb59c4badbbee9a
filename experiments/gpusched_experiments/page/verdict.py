"""The verdict of a comparison: what its numbers say, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.rendering.text import duration_text
from gpusched_experiments.report.comparison_table import count_text
from gpusched_experiments.report.estimate import LEAST_SEEDS, paired_saving
from gpusched_experiments.report.statistics import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_experiments.report.comparison_folder import Compared
    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import PolicyStatistics

SAME = 1e-9  # costs nearer to each other than this share are the same
MORE = 1.005  # how many times as much energy is worth a sentence
SLOWER = 1.2  # how many times as long jobs must take to be worth a sentence


def costs_of(runs: Sequence[RunSummary], policy: str) -> list[float]:
    """Give the total costs of a policy [€], by seed."""
    return [run.total_eur for run in sorted(runs, key=lambda run: run.seed) if run.policy == policy]


def saving_against(runs: Sequence[RunSummary], policy: str, other: str) -> Estimate:
    """Estimate which share of the other policy's cost this one saves, paired by seed."""
    return paired_saving(costs_of(runs, policy), costs_of(runs, other))


def verdict_of(compared: Compared, reference: str) -> tuple[str, ...]:
    """Say what came out under one rule for the GPU demand of a trace, or without one.

    A replay that is not the schedule that ran is said to be none, and what is left is compared without it. Where the
    trace has no due dates, energy comes first.

    Args:
        compared: What came out.
        reference: Name of the policy that savings are measured against.
    """
    runs, none = compared.runs, compared.not_claimed
    left = tuple(run for run in runs if run.policy != none)
    against = reference if reference != none else left[0].policy if left else none
    modelled = compared.traced is not None and not compared.traced.due_dates
    said = verdict(left, against, due_dates_modelled=modelled) if left else ()
    return (compared.replay.sentence, *said) if none and compared.replay is not None else said


def verdict(runs: Sequence[RunSummary], reference: str, *, due_dates_modelled: bool = False) -> tuple[str, ...]:
    """Say which policy is cheapest, by how much against the reference and the next, and what it gives up for that.

    Args:
        runs: The runs of a comparison: the same seeds for every policy.
        reference: Name of the policy that savings are measured against.
        due_dates_modelled: Whether energy is to be compared first, since tardiness is modelled.
    """
    if due_dates_modelled:
        return (*_energy(runs, reference), *verdict(runs, reference))
    rows = sorted(summarise(runs, reference), key=lambda row: row.total_eur)
    best, against = rows[0], next(row for row in rows if row.policy == reference)
    if len(rows) == 1:
        return (f"{best.policy} costs {_money(best)} a run, {_parts(best)}.",)
    sentences = [_first(runs, best, against)]
    after = next((row for row in rows[1:] if row.policy != reference), None)
    if after is not None and best.policy != reference:
        sentences.append(_next(runs, best, after))
    if best.policy != reference:
        sentences += _price(best, against)
    if best.runs < LEAST_SEEDS:
        count = f"{best.runs} seed{'s' if best.runs > 1 else ''}"
        sentences.append(f"With {count} there is no interval: another draw of workloads may say otherwise.")
    return tuple(sentences)


def _energy(runs: Sequence[RunSummary], reference: str) -> tuple[str, ...]:
    """Say what energy every policy needs against the reference, the least first, and that all else is modelled."""
    euros = {
        name: [run.energy_eur for run in sorted(runs, key=lambda run: run.seed) if run.policy == name]
        for name in dict.fromkeys(run.policy for run in runs)
    }
    others = sorted((name for name in euros if name != reference), key=lambda name: sum(euros[name]))
    parts = [
        f"{name} {sum(euros[name]) / len(euros[name]):,.2f} €, "
        + _less(paired_saving(euros[name], euros[reference]), "" if place else reference)
        for place, name in enumerate(others)
    ]
    own = f"{reference} {sum(euros[reference]) / len(euros[reference]):,.2f} €"
    return (
        f"Energy of a run: {'; '.join([*parts, own])}.",
        "Due dates are modelled, and so is the cost of tardiness; with it:",
    )


def _first(runs: Sequence[RunSummary], best: PolicyStatistics, against: PolicyStatistics) -> str:
    if best.policy == against.policy:
        others = {run.policy for run in runs} - {best.policy}
        nearest = min(others, key=lambda name: sum(costs_of(runs, name)))
        saved = saving_against(runs, best.policy, nearest)
        return (
            f"{best.policy}, the reference, is cheapest: {_money(best)} a run, {_parts(best)}. It costs "
            f"{_less(saved, nearest)}, the next."
        )
    saved = saving_against(runs, best.policy, against.policy)
    return f"{best.policy} is cheapest: {_money(best)} a run, {_parts(best)}, {_less(saved, against.policy)}."


def _next(runs: Sequence[RunSummary], best: PolicyStatistics, after: PolicyStatistics) -> str:
    saved = saving_against(runs, best.policy, after.policy)
    if not abs(saved.value) >= SAME:
        return f"{after.policy} costs the same."
    return f"The next is {after.policy} with {_money(after)}: {best.policy} costs {_less(saved, after.policy)}."


def _less(saved: Estimate, other: str) -> str:
    """Say `19.0 % less than edf (95 % interval 11.1 % to 25.5 %)`, or more, and whether the interval leaves it open."""
    if not abs(saved.value) >= SAME:  # NaN where both cost nothing
        return f"as much as {other}" if other else "as much"
    more = saved.value < 0.0
    sign = -100 if more else 100
    text = f"{sign * saved.value:.1f} % {'more' if more else 'less'}{f' than {other}' if other else ''}"
    if saved.interval is None:
        return text
    low, high = saved.interval[::-1] if more else saved.interval
    low, high = sign / 100 * low, sign / 100 * high
    text += f" (95 % interval {100 * low:.1f} % to {100 * high:.1f} %"
    return f"{text}, so it may be chance)" if low <= 0.0 <= high else f"{text})"


def _price(best: PolicyStatistics, against: PolicyStatistics) -> list[str]:
    """Say what the cheapest policy does worse than the reference: more energy, later jobs, more late ones."""
    sentences = []
    if against.energy_eur > 0.0 and best.energy_eur > MORE * against.energy_eur:
        more = best.energy_eur / against.energy_eur - 1.0
        sentences.append(f"Its energy costs {100 * more:.1f} % more: what it saves is the cost of late jobs.")
    if best.mean_completion_s > SLOWER * against.mean_completion_s:
        own, other = duration_text(best.mean_completion_s), duration_text(against.mean_completion_s)
        sentences.append(f"Its jobs take longer: {own} from submission to completion on average, against {other}.")
    if best.late_jobs > against.late_jobs:
        late = f"{count_text(best.late_jobs)} jobs a run end late, against {count_text(against.late_jobs)}"
        sentences.append(f"More of its jobs are late: {late}.")
    return sentences


def _money(row: PolicyStatistics) -> str:
    return f"{row.total_eur:,.2f} €"


def _parts(row: PolicyStatistics) -> str:
    return f"{row.energy_eur:,.2f} € for energy and {row.tardiness_eur:,.2f} € for late jobs"
