"""The file `summary.json`: how a study was made, and what it came to."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from gpusched_agents.study import VARIANTS
from gpusched_env.provenance import provenance
from gpusched_experiments.report.record import where_made
from gpusched_experiments.report.results_file import document_json
from gpusched_reproductions.learning.curves import validation_eur
from gpusched_reproductions.learning.evaluation import HELD_OUT
from gpusched_reproductions.learning.plan import ON_VALIDATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_experiments.report.run import Runs
    from gpusched_reproductions.learning.curves import Trained
    from gpusched_reproductions.learning.plan import StudyPlan

MEANS = ("energy_eur", "tardiness_eur", "total_eur", "late_jobs", "jobs", "decision_s")
TRAINS = ("torch", "stable-baselines3", "sb3-contrib")


def summary_json(plan: StudyPlan, trained: Sequence[Trained], runs: Runs, workers: int) -> str:
    """Write the summary of a study as JSON."""
    facts = {
        "steps": plan.steps,
        "training_seeds": plan.training_seeds,
        "test_seeds": plan.test_seeds,
        "base": plan.base.as_dict(),
        "variants": {name: _own_settings(plan, name) for name in plan.variants},
        **where_made(),
        "workers": workers,
        "training_packages": {name: _version(name) for name in TRAINS},
    }
    return document_json(
        "gpusched study",
        provenance(None, **facts),
        validation_eur={name: validation_eur(runs, name) for name in ON_VALIDATION},
        trainings=[_training(each) for each in trained],
        held_out=_held_out(runs.where(workloads=HELD_OUT)),
    )


def _own_settings(plan: StudyPlan, name: str) -> dict[str, Any]:
    config = VARIANTS[name].config(plan.base, plan.steps, 0)
    return {
        "title": VARIANTS[name].title,
        "imitation.steps": config.imitation.steps,
        "steps": config.steps,
        "network.kind": config.network.kind,
        "network.distribution": config.network.distribution,
    }


def _training(trained: Trained) -> dict[str, Any]:
    return {
        "variant": trained.run.variant,
        "seed": trained.run.seed,
        "decisions": trained.steps,
        "planned_decisions": trained.run.decisions,
        "seconds": trained.seconds,
        "kept_at": trained.kept["steps"],
        "validation_eur": trained.kept["total_eur"],
        "weights_sha256": trained.weights_sha256,
    }


def _held_out(runs: Runs) -> list[dict[str, Any]]:
    """Give the means of every policy and training on every scenario."""
    return [
        {
            "policy": group.policy,
            **group.labels,
            "seeds": len(group.own),
            **{name: sum(group.own.by_seed(name).values()) / len(group.own) for name in MEANS},
        }
        for group in runs.groups("scenario")
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
