"""Writing the folder of a comparison: whose workload it is, and the files that say what came out."""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from gpusched_agents.files.imported_files import digest_of, files_from
from gpusched_env.envs.source import Replay
from gpusched_env.errors import InputError
from gpusched_env.files import one_error, write_atomically
from gpusched_env.formats import save_instance
from gpusched_env.formats.instance_file import instance_json
from gpusched_env.formats.run_folder import read_result
from gpusched_env.model import Instance
from gpusched_env.parsing import parse_toml
from gpusched_env.provenance import provenance
from gpusched_env.simulator import Policy
from gpusched_env.workload import InstanceMaker, Scenario, scenario_toml
from gpusched_env.workload.mixture import variants_of
from gpusched_env.workload.priced import price_notes
from gpusched_experiments.report.cell import NO_TEXT, origin
from gpusched_experiments.report.code_version import code_version, mechanisms_of
from gpusched_experiments.report.comparison_folder import (
    FIGURES,
    FILES,
    JOURNAL_PAGE,
    JOURNAL_TRACE,
    Compared,
    ComparisonFolder,
    can_be_recorded,
    comparison_files,
)
from gpusched_experiments.report.metrics import Billing
from gpusched_experiments.report.record import flat_settings
from gpusched_experiments.report.store import key_of

CHARTS, PAGES = "gpusched_experiments.report.figures", "gpusched_operations.html_report"
SCENARIO, INSTANCE, RESULTS = "scenario.toml", "instance.json", "results.json"


@dataclass(frozen=True, slots=True)
class Workload:
    """A scenario; or one instance and its file or name, where seeds decide the policies' own randomness alone.

    With neither it is what a function of Python made, whose name `file` is, and whose source `source` stands for.
    """

    scenario: Scenario | None
    instance: Instance | None = None
    file: str = ""
    source: str = ""

    @property
    def title(self) -> str:
        return Path(self.file).name if self.scenario is None else self.scenario.name

    def maker(self) -> Callable[[int], Instance]:
        if self.instance is not None:
            return Replay(self.instance).make
        return InstanceMaker(self.scenario or Scenario()).make

    def notes(self) -> tuple[str, ...]:
        """Return what was filled in or left out of files of prices, a sentence each."""
        variants = () if self.scenario is None else variants_of(self.scenario)
        return tuple(dict.fromkeys(note for each in variants for note in price_notes(each.prices)))

    def facts(self) -> dict[str, Any]:
        if self.scenario is not None:
            return {"scenario": self.scenario.model_dump(mode="json")}
        if self.instance is None:
            return {"made_by": self.file, "source": self.source}
        digest = hashlib.sha256(instance_text(self.instance).encode()).hexdigest()
        return {"instance_file": self.file, "instance_sha256": digest}

    def write(self, folder: ComparisonFolder, keys: Iterable[str], *, replaces: bool = False) -> None:
        """Write the scenario or instance; of another one than that of the finished runs only if it `replaces` it.

        Args:
            keys: Those of the runs that are asked for; where no file shows the workload, a finished one does, or the
                source of the function that made it.

        Raises:
            InputError: The folder holds runs of another workload.
        """
        shown = any((folder.path / name).exists() for name in (SCENARIO, INSTANCE))
        same = replaces or not folder.runs
        same |= not shown and (not folder.runs.keys().isdisjoint(keys) or self._is_of_same_function(folder.path))
        other = None if same else self._difference(folder.path) if shown else "another workload"
        if other is not None:
            allowed = f"another folder (--out): it holds runs of {other}, and these are of {self.title}"
            raise InputError("path", str(folder.path), f"{allowed}; or remove it")
        if self.scenario is not None:
            write_atomically(folder.path / SCENARIO, scenario_toml(self.scenario))
        if self.instance is not None:
            save_instance(self.instance, folder.path / INSTANCE)

    def _is_of_same_function(self, folder: Path) -> bool:
        try:
            stored = json.loads((folder / RESULTS).read_text(encoding="utf-8"))["provenance"]["facts"]["source"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return bool(self.source) and stored == self.source

    def _difference(self, folder: Path) -> str | None:
        """Return what the workload of the folder is, if it is another one: its name, and what is set otherwise."""
        try:
            if (folder / INSTANCE).exists():
                text = (folder / INSTANCE).read_text(encoding="utf-8")
                same = self.instance is not None and text.strip() == instance_text(self.instance)
                return None if same else INSTANCE
            stored = _settings((folder / SCENARIO).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return "a workload that cannot be read"
        own = {} if self.scenario is None else _settings(scenario_toml(self.scenario))
        name = stored.pop("name", SCENARIO)
        own.pop("name", None)
        changed = [each for each in {**stored, **own} if stored.get(each) != own.get(each)]
        if not changed:
            return None
        return f"{name} ({changed[0]} = {stored.get(changed[0])}, here {own.get(changed[0])})"


def instance_text(instance: Instance) -> str:
    return instance_json(instance).strip()


def _settings(text: str) -> dict[str, Any]:
    read = parse_toml(text)
    return {"name": read.get("name", SCENARIO)} | flat_settings({n: v for n, v in read.items() if n not in NO_TEXT})


def keys_of(
    make: Callable[[int], Instance], seeds: Sequence[int], policies: Mapping[str, str | Policy], billing: Billing
) -> dict[tuple[int, str], str]:
    """Return the key of every run, by seed and policy; `policies`: by name, what makes each, or itself if none does."""
    keys, billed = {}, asdict(billing)
    for seed in seeds:
        made = make(seed)
        instance, used = key_of(instance=instance_json(made)), mechanisms_of(made)  # once a seed: it is long
        for name, policy in policies.items():
            code = origin(policy, mechanisms=used) if isinstance(policy, str) else origin_of_object(policy)
            keys[seed, name] = key_of(code=code, instance=instance, policy=name, seed=seed, billing=billed)
    return keys


def origin_of_object(policy: Policy) -> str:
    """Return what makes a policy of Python: its class, the source of its file, its settings; or what nothing equals."""
    kind = type(policy)
    try:
        parts = [digest_of(files_from(Path(inspect.getfile(kind)))), kind.__qualname__]
        parts.append(hashlib.sha256(pickle.dumps(policy)).hexdigest()[:16])
    except (OSError, TypeError, AttributeError, pickle.PicklingError):
        parts = [secrets.token_hex(8)]
    return ", ".join([code_version(), *parts])


def source_of_function(made: Callable[[int], Instance]) -> str:
    """Return what stands for a function: module, name and digest of its source; empty if more than these decide."""
    if not inspect.isfunction(made) or made.__closure__ or made.__defaults__ or made.__kwdefaults__:
        return ""
    try:
        source = inspect.getsource(made)
    except OSError:
        return ""
    return f"{made.__module__}:{made.__qualname__} {hashlib.sha256(source.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Written:
    """What the files of a comparison say of it.

    Attributes:
        workload: What was run.
        policies: Names of the policies.
        seeds: The seeds.
        reference: The policy that savings are measured against.
        workers: Number of processes.
        first: The instance of the first seed.
    """

    workload: Workload
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    reference: str
    workers: int
    first: Instance

    @property
    def instance_title(self) -> str | None:
        return self.workload.title if self.workload.instance is not None else None

    def files(self, folder: ComparisonFolder, compared: Sequence[Compared]) -> None:
        """Write what came out, in place of what a former command wrote."""
        facts = {
            **self.workload.facts(),
            "policies": self.policies,
            "seeds": self.seeds,
            "reference": self.reference,
            "workers": self.workers,
        }
        recorded = {
            name: path.name
            for name in self.policies
            if (path := folder.recorded(name)).exists() and can_be_recorded(self.first)
        }
        contents = comparison_files(compared, self.reference, self.instance_title, recorded, provenance(None, **facts))
        for name, content in contents.items():
            write_atomically(folder.path / name, content)
        kept = {SCENARIO} if self.workload.scenario is not None else {INSTANCE} if self.workload.instance else set()
        made = {"groups.csv", SCENARIO, INSTANCE, "report.html", JOURNAL_TRACE, JOURNAL_PAGE, *FIGURES}
        with one_error(folder.path):
            for name in made - contents.keys() - kept:
                (folder.path / name).unlink(missing_ok=True)  # of a former comparison

    def draw(self, folder: ComparisonFolder, compared: Compared, forms: Sequence[str]) -> None:
        """Draw the costs, and the first seed's run of the policy that costs least, in these forms."""
        if not forms:
            return
        charts = import_module(CHARTS)
        count = len(self.seeds)
        whose = " of the policies" if self.workload.instance is not None else ""
        seeds = f"{count} seed{'s' if count > 1 else ''}{whose}"
        title = f"{self.workload.title}: {len(self.first.machines)} nodes, {len(self.first.jobs)} jobs, {seeds}"
        costs = partial(charts.cost_figure, compared.rows, compared.runs, title, of_trace=bool(compared.gpu_demand))
        contents = charts.figure_files("costs", costs(), forms)
        best = folder.recorded(compared.best)
        if can_be_recorded(self.first) and best.exists():
            contents |= charts.figure_files("gantt", charts.gantt(read_result(best)), forms)
        for name, content in contents.items():
            write_atomically(folder.path / name, content)


def write_page(folder: Path) -> Path:
    """Write the page of a folder.

    Raises:
        MissingExtraError: What draws it is not installed.
    """
    pages: Any = import_module(PAGES)
    write_atomically(folder / "report.html", pages.report_html(pages.folder_report(folder)))
    return folder / "report.html"


def written(out: str | Path) -> list[Path]:
    return [path for name in FILES if (path := Path(out) / name).exists()]
