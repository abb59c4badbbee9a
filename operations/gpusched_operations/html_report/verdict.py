"""The verdict of a comparison: what its numbers say, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.rendering.text import duration_text
from gpusched_experiments.report.comparison_folder import Compared
from gpusched_experiments.report.comparison_table import count_text
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate, paired_saving
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.statistics import PolicyStatistics, summarise

SAME = 1e-9  # costs nearer to each other than this share are the same
MORE = 1.005  # how many times as much energy is worth a sentence
SLOWER = 1.2  # how many times as long jobs must take to be worth a sentence


def costs_of(runs: Sequence[RunSummary], policy: str, part: str = "total_eur") -> list[float]:
    return [getattr(run, part) for run in sorted(runs, key=lambda run: run.seed) if run.policy == policy]


def saving_against(runs: Sequence[RunSummary], policy: str, other: str) -> Estimate:
    return paired_saving(costs_of(runs, policy), costs_of(runs, other))


def verdict_of(compared: Compared, reference: str) -> tuple[str, ...]:
    """Return what came out under one rule for the GPU demand of a trace, or without one.

    A replay that is not the schedule that ran is said to be none, and what is left is compared without it. Where the
    trace has no due dates, energy comes first.

    Savings are measured against the policy `reference`.
    """
    runs, none = compared.runs, compared.not_claimed
    left = tuple(run for run in runs if run.policy != none)
    against = reference if reference != none else left[0].policy if left else none
    modelled = compared.traced is not None and not compared.traced.due_dates
    said = verdict(left, against, due_dates_modelled=modelled) if left else ()
    return (compared.replay.sentence, *said) if none and compared.replay is not None else said


def verdict(runs: Sequence[RunSummary], reference: str, *, due_dates_modelled: bool = False) -> tuple[str, ...]:
    """Return which policy is cheapest, what it saves against the reference and the next, and what it gives up."""
    if due_dates_modelled:
        return (*_energy(runs, reference), *verdict(runs, reference))
    best, *others = rows = sorted(summarise(runs, reference), key=lambda row: row.total_eur)
    parts = f"{best.energy_eur:,.2f} € for energy and {best.tardiness_eur:,.2f} € for late jobs"
    costs = f"{best.total_eur:,.2f} € a run, {parts}"
    if not others:
        return (f"{best.policy} costs {costs}.",)
    less = {row.policy: _less(saving_against(runs, best.policy, row.policy), row.policy) for row in others}
    if best.policy == reference:
        nearest = min(others, key=lambda row: (sum(costs_of(runs, row.policy)), row.policy)).policy
        sentences = [f"{best.policy}, the reference, is cheapest: {costs}. It costs {less[nearest]}, the next."]
    else:
        sentences = [f"{best.policy} is cheapest: {costs}, {less[reference]}."]
        after = next((row for row in others if row.policy != reference), None)
        if after is not None and less[after.policy].startswith("as much"):
            sentences.append(f"{after.policy} costs the same.")
        elif after is not None:
            costlier = f"The next is {after.policy} with {after.total_eur:,.2f} €"
            sentences.append(f"{costlier}: {best.policy} costs {less[after.policy]}.")
        sentences += _price(best, next(row for row in rows if row.policy == reference))
    if best.runs < LEAST_SEEDS:
        count = f"{best.runs} seed{'s' if best.runs > 1 else ''}"
        sentences.append(f"With {count} there is no interval: another draw of workloads may say otherwise.")
    return tuple(sentences)


def _energy(runs: Sequence[RunSummary], reference: str) -> tuple[str, ...]:
    """Return what energy every policy needs against the reference, the least first, and that all else is modelled."""
    euros = {run.policy: costs_of(runs, run.policy, "energy_eur") for run in runs}
    means = {name: f"{name} {sum(each) / len(each):,.2f} €" for name, each in euros.items()}
    others = sorted((name for name in euros if name != reference), key=lambda name: sum(euros[name]))
    parts = [
        f"{means[name]}, {_less(paired_saving(euros[name], euros[reference]), '' if place else reference)}"
        for place, name in enumerate(others)
    ]
    return (
        f"Energy of a run: {'; '.join([*parts, means[reference]])}.",
        "Due dates are modelled, and so is the cost of tardiness; with it:",
    )


def _less(saved: Estimate, other: str) -> str:
    """Return `19.0 % less than edf (95 % interval 11.1 % to 25.5 %)`, or more, and whether 0 is in the interval."""
    if not abs(saved.value) >= SAME:  # NaN where both cost nothing
        return f"as much as {other}" if other else "as much"
    more = saved.value < 0.0
    shown = saved.as_extra() if more else saved
    text = f"{100 * shown.value:.1f} % {'more' if more else 'less'}{f' than {other}' if other else ''}"
    if shown.interval is None:
        return text
    low, high = shown.interval
    text += f" (95 % interval {100 * low:.1f} % to {100 * high:.1f} %"
    return f"{text}, so it may be chance)" if low <= 0.0 <= high else f"{text})"


def _price(best: PolicyStatistics, against: PolicyStatistics) -> list[str]:
    """Return what the cheapest policy does worse than the reference: more energy, later jobs, more late ones."""
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
