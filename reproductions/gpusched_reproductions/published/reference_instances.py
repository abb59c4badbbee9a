"""The reference instances of the published generator, and what the published program answered on them.

Instances and answers lie outside the package (their PROVENANCE says where they come from); times, costs and histograms
are those of the package's scenario `published-high`. Node i has 8 GPUs, K80 if i is even, else M60.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution, Instance, Job
from gpusched_env.workload import load_scenario
from gpusched_env.workload.catalogue import Catalogue
from gpusched_env.workload.site import Site
from gpusched_env.workload.tables import PUBLISHED
from gpusched_env.workload.tables.own_applications import read_histograms

SCENARIO = "published-high"


class ReferenceAnswer(NamedTuple):
    """What the published program answered on a reference instance: energy and tardiness cost [€]."""

    energy_eur: float
    tardiness_eur: float


def reference_names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder.glob("reference/*-*.csv")))


def reference_digest(folder: Path, name: str) -> str:
    """Return what tells the content of the reference instance `name` from another: 12 hexadecimal digits."""
    return hashlib.sha256(_content(folder / "reference" / f"{name}.csv").encode()).hexdigest()[:12]


def reference_answers(folder: Path) -> dict[tuple[str, str], ReferenceAnswer]:
    return read_answers(folder / "reference" / "results.csv")


def read_answers(path: Path) -> dict[tuple[str, str], ReferenceAnswer]:
    """Read the published program's answers, by instance and method: FIFO, EDF, PS, G, STS or EDF-mean."""
    return {
        (row["instance"], row["method"]): ReferenceAnswer(float(row["energy_eur"]), float(row["tardiness_eur"]))
        for row in _rows(path)
    }


def reference_instance(folder: Path, name: str) -> Instance:
    return read_instance(folder / "reference" / f"{name}.csv")


def read_instance(path: Path) -> Instance:
    """Build the instance of a file whose name is KIND-NODES-SEED.csv."""
    parts = path.stem.split("-")
    if len(parts) != 3 or not parts[1].isdecimal():
        raise InputError("file", path.name, "KIND-NODES-SEED.csv, such as high-10-0.csv")
    scenario = load_scenario(SCENARIO).replace({"cluster.nodes": int(parts[1])})
    site, prices = Site.of(scenario), scenario.prices
    return Instance.from_jobs(
        site.gpu_types,
        site.nodes,
        [_job(row, site) for row in _rows(path)],
        site.configurations,
        energy_price_eur_per_kwh=prices.energy_price_eur_per_kwh,
        pue=prices.pue,
        name=path.stem,
    )


def _job(row: dict[str, str], site: Site) -> Job:
    application = _catalogue().applications[f"alexnet-{row['job'].lower()}"]
    epochs = application.max_epochs
    return Job(
        submission_s=float(row["submission_s"]),
        due_s=float(row["due_s"]),
        tardiness_weight_eur_per_s=float(row["weight_eur_per_s"]),
        max_epochs=epochs,
        distribution=_histograms()[row["distribution"]],
        epochs_needed=epochs * float(row["epochs_needed_percent"]) / 100.0,
        seconds_per_epoch={c: application.time_s(c) for c in site.configurations},
        memory_gib=application.memory_gib,
        application=application.name,
    )


@cache
def _catalogue() -> Catalogue:
    return load_scenario(SCENARIO).catalogue()


@cache
def _histograms() -> dict[str, EpochDistribution]:
    return read_histograms(PUBLISHED)


def _rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(_content(path).splitlines()))


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "a table of the reference instances") from None


@dataclass(frozen=True, slots=True)
class Reference:
    """Put a reference instance in place of what a scenario makes.

    Args:
        folder: Folder of the reference instances.
        name: Name of the instance, KIND-NODES-SEED.
        digest: What tells its content from another one of this name.
    """

    folder: str
    name: str
    digest: str

    def __call__(self, instance: Instance) -> Instance:  # noqa: ARG002 - nothing of it is kept
        return reference_instance(Path(self.folder), self.name)
