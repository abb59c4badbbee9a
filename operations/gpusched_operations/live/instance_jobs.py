"""The jobs of an instance on Slurm: submitted, held, as their times come, with made-up training of the right length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError, RunError
from gpusched_env.formats.instance_file import JOB_LABELS
from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.made_up_training import MadeUpTraining, command
from gpusched_operations.live.progress import VARIABLE
from gpusched_operations.service.client import cluster_part

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpusched_env.model import Instance
    from gpusched_operations.live.slurm_commands import Runner

SUBMIT_S = 20.0
OF_JOB = ("submission_s", "due_s", "tardiness_weight_eur_per_s", "max_epochs", "restart_s", "start_s")


class InstanceJobs:
    """The jobs of an instance, of which some are submitted.

    Args:
        instance: The instance.
        speed: Seconds of the model in a second of the cluster, > 0.
        partition: Where they are submitted.
        folder: Where their trainings keep their files.

    Attributes:
        ids: Indices of the submitted jobs in the instance, by Slurm's id.

    Raises:
        InputError: Slurm cannot hold what jobs of the instance may be given.
    """

    def __init__(self, instance: Instance, speed: float, partition: str, folder: Path) -> None:
        wrong = next((c.name for c in instance.configurations if c.kind == "shared" or c.spread), None)
        if wrong is not None:
            raise InputError("scenario: configuration", wrong, "whole GPUs, as many on each node")
        self.instance, self.speed, self.partition, self.folder = instance, speed, partition, folder
        self.ids: dict[str, int] = {}
        self._times = {
            row.tobytes(): (f"t{k}", [None if s == np.inf else s for s in row.tolist()])
            for k, row in enumerate(np.unique(instance.jobs.seconds_per_epoch, axis=0))
        }

    def rules(self, origin_s: float) -> JobRules:
        """Return rules by which a driver knows the jobs; the model's clock and Slurm's agree at a Unix time [s]."""
        table, names = self.instance.jobs, [c.name for c in self.instance.configurations]
        applications = {}
        for index, application in enumerate(table.applications):
            rows = table.seconds_per_epoch[table.application == index]
            if len(rows):
                seconds = zip(names, rows.min(axis=0).tolist(), strict=True)
                applications[application or "none"] = {"seconds_per_epoch": {n: s for n, s in seconds if s < np.inf}}
        fixed, clock = cluster_part(self.instance), {"speed": self.speed, "origin_s": origin_s}
        types = {v["name"].lower(): v for v in fixed["cluster"]["gpu_types"]}
        rules = {"gpu_types": types, "applications": applications, "clock": clock, "prices": fixed["prices"]}
        return JobRules.of(rules)

    def next_s(self) -> float:
        times = self.instance.jobs.submission_s
        return float(times[len(self.ids)]) if len(self.ids) < len(times) else np.inf

    def submit(self, until_s: float, slurm_types: Mapping[str, str], run: Runner) -> None:
        """Submit the jobs whose time has come by `until_s` [s].

        Args:
            slurm_types: Slurm's names of the GPU types that the cluster has, by their names in the instance.
        """
        while self.next_s() <= until_s:
            job = len(self.ids)
            done = run(self._sbatch(job, slurm_types), "", SUBMIT_S)
            name = done.output.strip().split(";")[0]
            if done.code or not name.isdigit():
                raise RunError(f"sbatch: {' '.join(done.errors.split()) or done.output}")
            self.ids[name] = job

    def _sbatch(self, job: int, slurm_types: Mapping[str, str]) -> list[str]:
        """Return the command that submits a job; without a GPU type, for Slurm changes no type of a waiting job."""
        table = self.instance.jobs
        seconds = {
            c: s
            for c, s in zip(self.instance.configurations, table.seconds_per_epoch[job].tolist(), strict=True)
            if s < np.inf and c.gpu_type in slurm_types
        }
        if not seconds:
            allowed = f"one with GPUs for job {job} of the scenario"
            raise InputError("conf", ", ".join(slurm_types) or "no GPUs", allowed)
        training = MadeUpTraining(
            str(self.folder),
            float(table.epochs_needed[job]),
            {f"{slurm_types[c.gpu_type]}x{c.nodes * c.gpus_per_node}": s / self.speed for c, s in seconds.items()},
            float(table.restart_s[job]) / self.speed,
        )
        path = training.save(self.folder / f"training-{job}.json")
        least = min(seconds, key=lambda c: (c.nodes, c.gpus_per_node))
        sizes = dict.fromkeys(f"{c.nodes}*{c.gpus_per_node}" if c.nodes > 1 else str(c.gpus_per_node) for c in seconds)
        types = dict.fromkeys(slurm_types[c.gpu_type] for c in seconds)
        said = [
            "gpusched",
            f"app={table.applications[table.application[job]] or 'none'}",
            f"epochs={table.max_epochs[job]:g}",
            f"due=+{max(0.0, table.due_s[job] - table.submission_s[job]):.0f}s",
            f"weight={table.tardiness_weight_eur_per_s[job]:g}",
            f"gpus={','.join(sizes)}",
            f"types={','.join(types)}",
            f"checkpoint=yes restart={table.restart_s[job]:g}",
        ]
        return [
            "sbatch", "--parsable", "--hold", "--requeue", f"--partition={self.partition}", f"--job-name=job-{job}",
            f"--nodes={least.nodes}", f"--gres=gpu:{least.gpus_per_node}",
            f"--comment={' '.join(said)}", f"--export=ALL,{VARIABLE}={self.folder}", f"--chdir={self.folder}",
            "--output=/dev/null", f"--wrap={command(path)}",
        ]  # fmt: skip

    def told(self, job: int) -> dict[str, Any]:
        """Return the fields of a request that tell a job of the instance; times and distribution by their names."""
        table, tenants = self.instance.jobs, Tenants.of(self.instance).tenants
        return {
            **{name: float(getattr(table, name)[job]) for name in OF_JOB},
            **{name: getattr(table, name)[job].item() for name in JOB_LABELS},
            **({} if table.resume_s is None else {"resume_s": float(table.resume_s[job])}),
            **({"tenant": tenants[table.tenant[job]].name} if tenants else {}),
            "application": table.applications[table.application[job]] or "none",
            "seconds_per_epoch": self._times[table.seconds_per_epoch[job].tobytes()][0],
            "distribution": f"d{table.distribution[job]}",
        }

    def named(self) -> dict[str, Any]:
        curves = {
            f"d{k}": {"edges": each.edges.tolist(), "survival": each.survival.tolist()}
            for k, each in enumerate(self.instance.jobs.distributions)
        }
        return {"times": dict(self._times.values()), "distributions": curves}
