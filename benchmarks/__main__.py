"""The command: `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import (
    before_after,
    bounds,
    compiled_policy,
    forecasts,
    house,
    learning,
    rounds,
    runs,
    scale,
    service,
    slurm,
    solvers,
    startup,
    state,
    steps,
    training,
    vector,
)
from benchmarks.machine import machine
from benchmarks.table import render
from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.figure import Figure

BESIDE = ("before-after", "house")
"""Those that compare with an earlier commit; they run only when they are named."""
BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    "rounds": rounds.measure,
    "steps": steps.measure,
    "vector": vector.measure,
    "learning": learning.measure,
    "training": training.measure,
    "runs": runs.measure,
    "scale": scale.measure,
    "solvers": solvers.measure,
    "bounds": bounds.measure,
    "startup": startup.measure,
    "compiled-policy": compiled_policy.measure,
    "state": state.measure,
    "service": service.measure,
    "slurm": slurm.measure,
    "forecasts": forecasts.measure,
    "before-after": before_after.measure,
    "house": house.measure,
}
TITLES = {
    "rounds": "Decision rounds: all jobs at t = 0, five GPU types, fresh states",
    "steps": "Environment steps with random actions (masked where there is a mask), resets included",
    "vector": "Many environments at once: random allowed actions, resets included",
    "learning": "Rollouts of Stable-Baselines3: scenario default",
    "training": "Trainings on the track slack, one seed: processor time until the agent is cheaper than STS-X",
    "runs": "Whole simulations: scenario large, 100 nodes",
    "scale": "Growth: all jobs at t = 0, five GPU types, fresh states; and long runs",
    "solvers": "Single-job solvers on the same problems, all of which need a plan that speeds up",
    "bounds": "The bound with capacity: scenario default on a few nodes, with cheap tardiness",
    "startup": "Start-up of a fresh process",
    "compiled-policy": "A user's policy, compiled and in plain Python: examples/compiled_policy.py",
    "state": "Ways to pass the state to kernels",
    "service": "Decisions of a service: 100 nodes, 400 jobs at first, five GPU types; from the request to the answer",
    "slurm": "A driver on a real Slurm of this machine, with made-up GPUs",
    "forecasts": "Forecasts: 100 nodes, 400 jobs that wait, five GPU types; rollouts to the end of all",
    "before-after": "Ratio of the speed of the present sources to that of an earlier commit, in pairs",
    "house": "Gates of the sources, beside what they were at 267f4fef",
}


def main(arguments: Sequence[str]) -> int:
    """Measure, print the tables, and write the figures; return the exit code: 0, or 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure speed; takes some minutes.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; by default all but the last two"
    )
    parser.add_argument("--out", default="results/bench.json", help="file for the figures (default: %(default)s)")
    parser.add_argument(
        "--before",
        default=house.BEFORE,
        metavar="COMMIT",
        help="the commit with which `before-after` compares the present sources (default: %(default)s)",
    )
    parser.add_argument("--slow", action="store_true", help="`house` measures too what takes minutes")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(str(InputError("NAME", unknown[0], f"one of {', '.join(BENCHMARKS)}")))
    names = options.names or [name for name in BENCHMARKS if name not in BESIDE]
    chosen = {name: measure for name, measure in BENCHMARKS.items() if name in names}
    for name, given in {"before-after": {"before": options.before}, "house": {"slow": options.slow}}.items():
        if name in chosen:
            chosen[name] = partial(chosen[name], **given)
    try:
        _run(chosen, options.out, arguments)
    except InputError as error:
        parser.error(str(error))
    return 0


def _run(chosen: Mapping[str, Callable[[], list[Figure]]], out: str, arguments: Sequence[str]) -> None:
    facts = machine()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    measured: dict[str, list[Figure]] = {}
    for name, measure in chosen.items():
        print(f"measuring {name} ...", file=sys.stderr)
        measured[name] = measure()
        print(render(TITLES[name], measured[name]), flush=True)
    missed = [figure.name.strip() for figures in measured.values() for figure in figures if figure.met is False]
    print(f"\ntargets missed: {'; '.join(missed) or 'none'}")
    document = {
        "provenance": provenance(shlex.join(["python", "-m", "benchmarks", *arguments]), machine=facts),
        "benchmarks": {name: [figure.as_dict() for figure in figures] for name, figures in measured.items()},
    }
    write_atomically(out, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(f"written: {out}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
