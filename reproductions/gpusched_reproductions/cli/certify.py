"""`gpusched certify`."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, cast

import typer

from gpusched_baselines.solvers import SolverFailedError, require_highs
from gpusched_env.files import new_folder, write_atomically
from gpusched_env.model import checks
from gpusched_env.provenance import provenance
from gpusched_env.simulator import Policy
from gpusched_env.simulator.policy import check_fit
from gpusched_env.workload import InstanceMaker, Scenario, parse_seeds
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli.policies import parse_policies
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.cli.terminal import output, print_table
from gpusched_experiments.report.record import check_same
from gpusched_experiments.report.warm_up import warm_up
from gpusched_reproductions.certify.certified_run import (
    PROBLEMS,
    BoundBrokenError,
    CertifiedRun,
    Problem,
    certificate_csv,
    certificate_json,
    certify,
    instance_table,
    notes,
    policy_table,
)
from gpusched_reproductions.cli import chosen_names

FILES = ("certificate.csv", "certificate.json")
SOLVER_COLUMNS, WIDEST_GAP, BETWEEN = 66, 12, 3  # characters of a table: its left part, a gap, and between two columns
SEEDS, QUICK_SEEDS, QUICK_POLICIES = "0-19", "0-1", "edf,sts,sts-x"
SMALL = ("cluster.gpus_per_node=4", 'cluster.gpu_types=["V100", "T4"]')


def certify_command(
    policies: Annotated[
        str | None,
        typer.Option("--policies", "-p", help="Policies, separated by commas (see `gpusched policies`); default: all."),
    ] = None,
    scenario: options.ScenarioOption = "default",
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Seeds of the instances: 0-19, or 0,3,5; default: 0-19.")
    ] = None,
    problems: Annotated[
        str, typer.Option("--problems", help="Problems to make of every instance: round, known, hidden, or all.")
    ] = "all",
    limit_s: Annotated[float, typer.Option("--limit", help="Most seconds of the solver for each problem.")] = 10.0,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for certificate.csv and certificate.json.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Number of jobs; more than 5 take long.")] = 4,
    nodes: Annotated[int, typer.Option("--nodes", "-n", help="Number of nodes; more than 3 take long.")] = 3,
    settings: options.SetOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two seeds and few policies, unless they are named, in a minute: to try it.")
    ] = False,
) -> None:
    """Certify how far each policy is from the optimum, on instances small enough to be solved.

    All jobs of the scenario are put at time 0. Mixed-integer programs, solved by HiGHS, give the optimum or a bound
    that no policy can undercut: of the first decision round (by the proxy cost), and of the whole instance, with epochs
    known to the policies and hidden from them. Nodes have 4 GPUs of V100 or T4 unless `--set` says otherwise. Needs the
    extra `solvers`.

    For example:
    - **gpusched certify --quick**

    - **gpusched certify --policies edf,sts --seeds 0-9 --problems known --out results/certify**

    - **gpusched certify --set sharing.fractions=[0.5] --set cluster.gpus_per_node=2 --jobs 5**
    """
    seed_list = parse_seeds((QUICK_SEEDS if quick else SEEDS) if seeds is None else seeds, "--seeds")
    policies = (QUICK_POLICIES if quick else "all") if policies is None else policies
    every = problems.strip() == "all"
    chosen_problems = PROBLEMS if every else cast("tuple[Problem, ...]", chosen_names("--problems", problems, PROBLEMS))
    checks.positive("--limit", limit_s)
    chosen = options.ScenarioOptions(
        scenario=scenario, jobs=jobs, nodes=nodes, settings=[*SMALL, *(settings or [])]
    ).make()
    chosen_policies = tuple(parse_policies(policies).values())
    facts = {
        "scenario": chosen.model_dump(mode="json"),
        "seeds": seed_list,
        "problems": chosen_problems,
        "policies": [policy.name for policy in chosen_policies],
        "limit_s": limit_s,
        "solver": {name: version(name) for name in ("pyomo", "highspy")},
    }
    require_highs()
    if out is not None:
        check_same(
            out, Path(out) / FILES[1], {name: facts[name] for name in ("scenario", "seeds", "problems", "policies")}
        )
    with nullcontext() if out is None else new_folder(out, ours=FILES) as folder:
        try:
            runs = _certify(chosen, chosen_policies, seed_list, chosen_problems, limit_s)
        except (SolverFailedError, BoundBrokenError) as error:
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(1) from error
        if folder is not None:
            write_atomically(folder / "certificate.csv", certificate_csv(runs))
            write_atomically(folder / "certificate.json", certificate_json(runs, provenance(None, **facts)))
    console = output()
    for group in _groups([policy.name for policy in chosen_policies], console.width):
        print_table(console, instance_table(runs, group), no_wrap=True)
    print_table(console, replace(policy_table(runs), notes=notes(runs, limit_s)), no_wrap=True)
    if out is not None:
        for name in FILES:
            typer.echo(f"wrote {Path(out) / name}")


def _certify(
    scenario: Scenario,
    policies: Sequence[Policy],
    seeds: Sequence[int],
    problems: Sequence[Problem],
    limit_s: float,
) -> tuple[CertifiedRun, ...]:
    with counting(f"{len(policies)} policies, {len(seeds)} seeds", len(seeds) * len(problems)) as bar:
        make = InstanceMaker(scenario).make
        check_fit(policies, make(seeds[0]))  # a bad workload shows before anything begins
        warm_up(policies)
        return certify(make, policies, seeds, problems=problems, limit_s=limit_s, on_problem=bar.advance)


def _groups(names: Sequence[str], width: int) -> list[list[str]]:
    each = max(WIDEST_GAP, *(len(name) for name in names)) + BETWEEN
    most = max(1, (width - SOLVER_COLUMNS) // each)
    return [list(names[start : start + most]) for start in range(0, len(names), most)]
