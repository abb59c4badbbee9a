"""The figures of a study: curves, savings by variant, where they come from, and what an agent sets over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_agents.files.storage import PREFIX
from gpusched_agents.policy import load_policy
from gpusched_agents.spec import SETS_CONTROLS
from gpusched_agents.study import VARIANTS
from gpusched_agents.training.algorithm_config import AdaptationConfig
from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.adaptation_env.features import BUSY, OFFERED, QUEUE
from gpusched_baselines.adaptation_env.run import AdaptedRun
from gpusched_env.simulator import layout as at
from gpusched_env.workload import make_instance
from gpusched_experiments.report.chart import Chart, Level, Panel, Series, series
from gpusched_experiments.report.estimate import Estimate, paired_saving, saving_over_trainings
from gpusched_reproductions.learning.plan import AGENT, ON_VALIDATION, StudyPlan
from gpusched_reproductions.learning.tables import BEST, Trained, costs_over_base, spread, validation_eur

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpusched_agents.network.control_policy import ControlPolicy
    from gpusched_experiments.report.run import Runs

PANEL_INCHES = (7.4, 4.0)
TALL_INCHES = (6.4, 4.6)
MARGIN = 1.15  # by how much the close view ends above the costliest reference policy
BASE = "sts-x"
LOAD = {BUSY: "GPUs in use / GPUs", OFFERED: "GPUs that new jobs need / GPUs, squashed", QUEUE: "jobs / (jobs + GPUs)"}
MOST_POINTS = 120  # of a line
MOST_LINES = 3  # controls that are drawn: those that change most
HOUR_S = 3600.0


def study_charts(plan: StudyPlan, trained: Sequence[Trained], runs: Runs, folder: Path) -> dict[str, Chart]:
    """Make the figures of a study by name; see the functions below.

    Args:
        plan: The study.
        trained: Its trainings.
        runs: Its runs.
        folder: The folder of its trainings.
    """
    charts = {"curves": curves_chart(plan, trained, runs), "savings": savings_chart(plan, runs)}
    charts["seeds"] = seeds_chart(plan, runs)
    acting = [name for name in plan.variants if _controls(name) and name != BEST]
    if acting:
        best = min(acting, key=lambda name: np.mean(costs_over_base(runs, plan, name)))
        charts["controls"] = controls_chart(plan, folder / f"{best}-{plan.training_seeds[0]}" / AGENT)
    return charts


def mean_curve(trained: Sequence[Trained]) -> tuple[tuple[int, Estimate], ...]:
    """Return the mean of several trainings' curves at every number of decisions at which one of them was evaluated.

    Returns:
        Decisions, and the mean cost [€] with the least and the greatest in the place of an interval.
    """
    places = sorted({int(point["steps"]) for each in trained for point in each.curve})
    return tuple((steps, spread([each.cost_at(steps) for each in trained])) for steps in places)


def curves_chart(plan: StudyPlan, trained: Sequence[Trained], runs: Runs) -> Chart:
    """Make the figure: all of it on a logarithmic axis, and up close what lies near the reference policies."""
    lines = tuple(
        _line(name, [each for each in trained if each.run.variant == name]) for name in plan.variants if name != BEST
    )
    levels = tuple(Level(validation_eur(runs, name), name) for name in ON_VALIDATION)
    constants = [each.kept["total_eur"] for each in trained if each.run.variant == BEST]
    if constants:
        levels += (Level(float(np.mean(constants)), VARIANTS[BEST].title),)
    low = min([*(estimate.value for line in lines for _, estimate in line.points), *(level.value for level in levels)])
    high = max(level.value for level in levels)
    x_label, cost = _decisions(plan), "mean cost on validation workloads [€]"
    whole = Panel("all of it", x_label, cost, lines, logarithmic="y", levels=levels)
    top = MARGIN * high
    if all(_controls(name) for name in plan.variants):  # they begin as STS-X
        top = 1.03 * next(level.value for level in levels if level.name == BASE)
    near = (low - 0.1 * (top - low), top)
    close = Panel("the same lines, up close", x_label, cost, lines, levels=levels, y_range=near)
    seeds = len(plan.training_seeds)
    several = f"the mean of {seeds} trainings, with their least and greatest cost" if seeds > 1 else "one training each"
    return Chart(f"Learning curves: {several}", ((whole, close),), PANEL_INCHES)


def _line(name: str, trained: Sequence[Trained]) -> Series:
    config = trained[0].run.config
    scale = config.network.rounds / 1000.0 if isinstance(config.agent, AdaptationConfig) else 0.001
    return series(VARIANTS[name].title, ((scale * steps, cost) for steps, cost in mean_curve(trained)))


def _controls(name: str) -> bool:
    """Return whether a variant sets controls; its decisions are rounds."""
    return VARIANTS[name].network in SETS_CONTROLS


def _decisions(plan: StudyPlan) -> str:
    """Name the horizontal axis, and say where imitation ends for the variants that go on by themselves."""
    both = [run.config for run in plan.trainings() if run.config.imitation.steps and run.config.steps]
    until = f" (of those that do both, the first {both[0].imitation.steps / 1000.0:,g} imitate)" if both else ""
    kind = "rounds" if all(_controls(name) for name in plan.variants) else "decisions"
    return f"thousand {kind}{until}"


def _bar(plan: StudyPlan) -> str:
    """Return what savings are against: the best constants if the study has them, else STS-X."""
    return BEST if BEST in plan.variants else BASE


def _title(name: str) -> str:
    return VARIANTS[name].title if name in VARIANTS else name


def savings_chart(plan: StudyPlan, runs: Runs) -> Chart:
    """Make the figure of what variants save on held-out workloads, with intervals over trainings and seeds."""
    bar, names = _bar(plan), [name for name in (BASE, *plan.variants) if name != _bar(plan)]
    base = costs_over_base(runs, plan, bar)
    points = [(_title(name), saving_over_trainings(costs_over_base(runs, plan, name), base)) for name in names]
    panel = Panel(
        "",
        f"saved against {_title(bar)}; 95 % over trainings and seeds",
        "",
        (series("saved", points),),
        kind="dots",
        percent=True,
        levels=(Level(0.0, _title(bar)),),
        categories=tuple(title for title, _ in points),
    )
    return Chart("What the variants save on held-out workloads", ((panel,),), TALL_INCHES)


def seeds_chart(plan: StudyPlan, runs: Runs) -> Chart:
    """Make the figure of what is saved on each held-out workload, and where: in each scenario, or part of a mixture."""
    bar, names = _bar(plan), [name for name in plan.variants if name != BEST]
    base = np.mean(costs_over_base(runs, plan, bar), axis=0)
    each = {name: np.mean(costs_over_base(runs, plan, name), axis=0) for name in names}
    shown = sorted(names, key=lambda name: each[name].mean())[:3]
    lines = tuple(_sorted(_title(name), 1.0 - each[name] / base) for name in shown)
    against = f"saved against {_title(bar)}"
    by_seed = Panel("by workload, sorted", "workload", against, lines, percent=True, levels=(Level(0.0, _title(bar)),))
    parts = _parts(plan)
    where = [
        Series(_title(name), tuple((part, paired_saving(each[name][own], base[own])) for part, own in parts.items()))
        for name in shown
    ]
    by_part = Panel(
        "by scenario, 95 % over workloads",
        against,
        "",
        tuple(where),
        kind="dots",
        percent=True,
        levels=(Level(0.0, _title(bar)),),
        categories=tuple(parts),
    )
    return Chart("Where it saves: means over trainings", ((by_seed, by_part),), TALL_INCHES)


def _sorted(title: str, saved: NDArray[np.float64]) -> Series:
    return series(title, ((float(k), Estimate(float(value), None, 1)) for k, value in enumerate(np.sort(saved))))


def _parts(plan: StudyPlan) -> dict[str, NDArray[np.int64]]:
    """Return the places of the held-out seeds of each scenario of a mixture; all, where the study has none."""
    seeds, scenarios = np.array(plan.test_seeds), plan.base.loaded_scenarios()
    mixture = scenarios[0].mixture if len(scenarios) == 1 else ()
    if not mixture:
        return {", ".join(plan.base.scenarios): np.arange(len(seeds))}
    names = [f"{k}: {part.scenario or scenarios[0].name}" for k, part in enumerate(mixture)]
    parts = {name: np.flatnonzero(seeds % len(names) == k) for k, name in enumerate(names)}
    return {name: own for name, own in parts.items() if len(own)}


def controls_chart(plan: StudyPlan, folder: Path) -> Chart:
    """Make the figure of the controls that an agent sets in a held-out workload, beside the load that it observes.

    Args:
        plan: The study.
        folder: Folder of the agent, which sets controls.
    """
    policy: Any = load_policy(f"{PREFIX}{folder}")
    instance = make_instance(plan.base.loaded_scenario(0), plan.test_seeds[0])
    hours, seen, said = controls_over_time(policy, instance)
    load = tuple(_over(name, hours, seen[:, feature]) for feature, name in LOAD.items())
    names = control_names([v.name for v in instance.gpu_types], policy.controls)
    most = np.argsort(-np.ptp(said, axis=0), kind="stable")[:MOST_LINES]
    lines = tuple(_over(names[k], hours, said[:, k]) for k in most)
    panels = (
        Panel("what it observes", "time [h]", "feature, 0 to 1", load),
        Panel("the controls that change most", "time [h]", "control, -1 to 1; 0 = STS-X", lines),
    )
    return Chart(f"An agent on seed {plan.test_seeds[0]}: {folder.parent.name}", (panels,), TALL_INCHES)


def controls_over_time(
    policy: ControlPolicy, instance: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return times [h], (T,), observations, (T, inputs), and controls, (T, outputs), of a run that an agent decides."""
    actor: Any = policy.actor.for_types([v.name for v in instance.gpu_types])
    run, state, hours, seen, said = AdaptedRun(instance), np.zeros(actor.state_size), [], [], []
    while not run.over:
        observed = np.zeros(actor.inputs)
        run.observe(observed)
        hours.append(float(run.state.board.clock[at.NOW]) / HOUR_S)
        seen.append(observed)
        said.append(actor.act(observed.astype(np.float32), state))
        run.decide(said[-1], policy.rounds)
    return np.array(hours), np.array(seen), np.array(said)


def _over(name: str, hours: NDArray[np.float64], values: NDArray[np.float64]) -> Series:
    every = -(-len(hours) // MOST_POINTS)
    points = zip(hours[::every].tolist(), values[::every].tolist(), strict=True)
    return series(name, ((hour, Estimate(value, None, 1)) for hour, value in points))
