"""Where a run comes from: what run.json says of it twice, and what the intervals tell of its rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.holding import Holding
    from gpusched_env.audit.record import Record


def check_origin(record: Record) -> Iterator[Difference]:
    """Compare those facts of the provenance that are there with run.json and instance.json."""
    name, seed, run = record.instance_name, record.instance_seed, record.run
    true = {"policy": run.text("policy"), "seed": run.whole("seed"), "instance": name, "instance_seed": seed}
    facts = run.fields("provenance").optional("facts", {})
    for fact, value in true.items():
        if isinstance(facts, dict) and facts.get(fact, value) != value:
            yield Difference(f"run.json: provenance.facts.{fact}", facts[fact], value, fact)
    scenario = facts.get("scenario") if isinstance(facts, dict) else None
    if isinstance(scenario, dict) and scenario.get("name", name) != name:
        yield Difference("run.json: provenance.facts.scenario.name", scenario["name"], name, "name of the instance")


def check_rounds(record: Record, by_job: list[list[Holding]]) -> Iterator[Difference]:
    """Count the rounds that must have been: one at each time at which a holding begins, or ends before the job."""
    times = {line.start_s for line in record.intervals}
    times |= {holding.end_s for life in by_job for holding in life[:-1]}
    rounds = record.run.whole("rounds")
    if rounds < len(times):
        what = "rounds, and different times at which an interval begins, or ends before its job does"
        yield Difference("run.json", rounds, len(times), what)
