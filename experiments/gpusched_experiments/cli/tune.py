"""`gpusched tune`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.tuned import TunedStsX, cost_of, save_tuned, search
from gpusched_env import Instance, Policy, make_instance
from gpusched_env.child_processes import ProcessPool
from gpusched_env.errors import InputError
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.model import checks
from gpusched_env.workload import Track, load_track
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.cli.scenario_options import SET, SetOption, parse_setting
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.cell import each_once
from gpusched_experiments.report.estimate import Estimate, paired_saving
from gpusched_experiments.report.record import check_same, recorded_facts
from gpusched_experiments.report.table import COUNT, MONEY, PERCENT, Column, Table

OUT = "results/tuned.json"
SMALL = 0.005  # a control nearer to 0 is not listed


@dataclass(frozen=True, slots=True)
class Judged:
    """What constants cost on the validation seeds of a track.

    Attributes:
        track: The track.
        base_eur: Mean cost of STS-X [€].
        tuned_eur: Mean cost with the constants [€].
        saving: What they save, paired by seed.
        seeds: Number of seeds.
    """

    track: str
    base_eur: float
    tuned_eur: float
    saving: Estimate
    seeds: int


COLUMNS: tuple[Column[Judged], ...] = (
    Column("track", "track", lambda each: each.track),
    Column("seeds", "seeds", lambda each: each.seeds, COUNT),
    Column("base_eur", "STS-X €", lambda each: each.base_eur, MONEY),
    Column("tuned_eur", "tuned €", lambda each: each.tuned_eur, MONEY),
    Column("saving", "saved", lambda each: each.saving, PERCENT, interval=True),
)


def tune_command(
    *,
    track: Annotated[str, typer.Option("--track", "-t", help="Tracks, or .toml files of tracks, separated by commas.")],
    evaluations: Annotated[int, typer.Option("--evaluations", "-n", help="Constants that are tried.")] = 150,
    workloads: Annotated[int, typer.Option("--workloads", help="Training workloads of each track.")] = 8,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the search.")] = 0,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", help="Processes; default: one for each core.")
    ] = None,
    settings: SetOption = None,
    validation: Annotated[
        list[str] | None,
        typer.Option("--validation-set", metavar=SET, help="A setting of the validation workloads; repeatable."),
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File for the constants.")] = OUT,
) -> None:
    """Find the constant controls with which STS-X costs least on tracks.

    They are the numbers that agents of the adaptation environment set, but the same in all rounds: what an agent must
    beat to have learnt when to set them. The search runs on the first training seeds of each track, and all tracks
    count the same. What is found is judged on the validation seeds. Compare it as **tuned:FILE**.

    For example: **gpusched tune --track slack,busy --out tuned.json**, then
    **gpusched compare --track slack --policies sts-x,tuned:tuned.json,agent:default**
    """
    checks.whole("--evaluations", evaluations, 1)
    checks.whole("--workloads", workloads, 1)
    tracks = [load_track(name.strip()) for name in track.split(",")]
    each_once("--track", [each.name for each in tracks])
    if not out.endswith(".json"):
        raise InputError("--out", out, "the path of a .json file")
    changes = dict(map(parse_setting, settings or ()))
    held_out = changes | dict(parse_setting(text, option="--validation-set") for text in validation or ())
    whose = {"settings": changes or None, "validation_settings": held_out or None}
    facts: dict[str, Any] = {"tracks": [each.name for each in tracks], "workloads": workloads}
    facts |= {"evaluations": evaluations, "seed": seed}
    if Path(out).exists() and not recorded_facts(Path(out)):
        raise InputError("--out", out, "a new file, or one that gpusched tune wrote")
    check_same(out, Path(out), facts | whose)
    seeds = {each.name: each.seeds("training")[:workloads] for each in tracks}
    made = [[make_instance(each.scenario.replace(changes), s) for s in seeds[each.name]] for each in tracks]
    instances = [instance for group in made for instance in group]
    names = tuple(dict.fromkeys(name for each in instances for name in _controls_of(each)))
    processes = None if workers is None else checks.whole("--workers", workers, 1)
    with ProcessPool(processes) as pool, counting("searching", evaluations) as bar:
        base = _costs(pool, StsX(), instances).reshape(len(tracks), -1).sum(axis=1)

        def cost(action: NDArray[np.float64]) -> float:
            costs = _costs(pool, _tuned(names, action), instances).reshape(len(tracks), -1).sum(axis=1)
            bar.advance()
            return float((costs / base).mean())

        best, least = search(cost, len(names), evaluations, seed, 1.0)
        constants = {name: value for name, value in zip(names, best.tolist(), strict=True) if value != 0.0}
        bar.say("validation")
        judged = [_judge(pool, each, held_out, _tuned(names, best)) for each in tracks]
    facts |= {name: values for name, values in whose.items() if values}
    save_tuned(out, constants, **facts, training_cost=least, validation={j.track: j.saving.value for j in judged})
    note = f"On the training workloads they save {1.0 - least:.1%}."
    table = Table.of("Constants on validation seeds", COLUMNS, judged, (note,))
    print_table(output(), table, title=table.title)
    for name, value in sorted(constants.items(), key=lambda item: -abs(item[1])):
        if abs(value) > SMALL:
            typer.echo(f"{value:+.2f}  {name}")
    typer.echo(f"wrote {out}")


def _tuned(names: Sequence[str], action: NDArray[np.float64]) -> TunedStsX:
    return TunedStsX(constants=tuple(zip(names, action.tolist(), strict=True)))


def _controls_of(instance: Instance) -> tuple[str, ...]:
    """Return the controls that count on an instance: those of prices and a cap too, where there are any."""
    energy = instance.find("prices") is not None or instance.of(PowerCap) is not None
    return control_names([v.name for v in instance.gpu_types], "energy" if energy else "round")


def _judge(pool: ProcessPool, track: Track, settings: Mapping[str, object], tuned: TunedStsX) -> Judged:
    scenario = track.scenario.replace(settings)
    instances = [make_instance(scenario, seed) for seed in track.seeds("validation")]
    base, costs = _costs(pool, StsX(), instances), _costs(pool, tuned, instances)
    saving = paired_saving(costs, base)
    return Judged(track.name, float(base.mean()), float(costs.mean()), saving, len(instances))


def _costs(pool: ProcessPool, policy: Policy, instances: Sequence[Instance]) -> NDArray[np.float64]:
    return np.array(pool.map(cost_of, [(policy, instance) for instance in instances]))
