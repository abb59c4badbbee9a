"""Comparisons, runs and report pages small enough to check by hand."""

from dataclasses import MISSING, fields
from html.parser import HTMLParser
from typing import Any

from gpusched_baselines import make_policy
from gpusched_env import Configuration, Instance
from gpusched_env.simulator import Result, simulate
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_operations.html_report.report_data import ReportData
from gpusched_operations.html_report.runs import comparison_data
from small_instances import hours_job, kilowatt_cluster

ONE, TWO = Configuration("V", 1), Configuration("V", 2)


def summary(policy: str, seed: int, energy_eur: float, tardiness_eur: float = 0.0, **values: Any) -> RunSummary:
    """Make the summary of a run; what is not said is 0, of 10 jobs."""
    known = {"policy": policy, "seed": seed, "energy_eur": energy_eur, "tardiness_eur": tardiness_eur, "jobs": 10}
    needed = {field.name: 0 for field in fields(RunSummary) if field.default is MISSING}
    return RunSummary(**needed | known | values)


def costs(**by_policy: list[float]) -> tuple[RunSummary, ...]:
    """Make the runs of policies whose energy cost so much on seeds 0, 1 and so on; `_` in a name stands for `-`."""
    return tuple(
        summary(name.replace("_", "-"), seed, euros)
        for name, values in by_policy.items()
        for seed, euros in enumerate(values)
    )


def two_jobs() -> Instance:
    """Make a node of two GPUs, 1 €/h each while busy, and two jobs of one GPU: of 2 hours, and of 1, which is late."""
    jobs = [hours_job(4.0, {ONE: 2.0}), hours_job(0.5, {ONE: 1.0})]
    return kilowatt_cluster(jobs, [2], [ONE])


def ran(policy: str = "edf", instance: Instance | None = None) -> Result:
    """Run a policy on these jobs, or on `two_jobs`."""
    return simulate(instance or two_jobs(), make_policy(policy), seed=0)


def comparison(**values: Any) -> ReportData:
    """Make the data of a comparison of three policies on five seeds, with the runs of two of them."""
    runs = costs(edf=[10.0, 11, 12, 13, 14], fifo=[20.0, 22, 24, 26, 28], sept=[15.0, 10, 14, 13, 13])
    provenance = {"command": "gpusched compare", "python": "3.11.7", "facts": {"seeds": [0, 1, 2, 3, 4]}}
    return comparison_data(runs, "fifo", **{"recorded": (ran("edf"), ran("fifo")), "provenance": provenance} | values)


class Page(HTMLParser):
    """The elements and texts of a page.

    Attributes:
        elements: Every element's name and attributes, in order.
        text: The text outside of scripts and styles.
        unclosed: Elements that were opened and not closed.
    """

    _ALONE = ("meta", "img", "br")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.unclosed: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self._ALONE:
            self.unclosed.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.unclosed[-1:] not in (["script"], ["style"]):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]
