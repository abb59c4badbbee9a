"""`gpusched warm-up`."""

from collections.abc import Callable
from os.path import commonpath
from time import monotonic
from typing import Annotated, Any

import numba
import numpy as np
import typer

from gpusched_agents.any_policy import make_any_policy
from gpusched_baselines.planning.plan import solve
from gpusched_env.compiling import compiled_kernels
from gpusched_env.rendering.text import duration_text
from gpusched_env.simulator import State, simulate
from gpusched_env.simulator.placement.placement import place
from gpusched_env.simulator.policy import memory_columns
from gpusched_experiments.cli.policies import parse_policies
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.report.warm_up import is_compiled, note_compiled, tiny_instance, two_processes, warm_up_steps
from gpusched_operations.forecast import ForecastSettings, forecast
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.decision import Decider, PolicyCatalogue


def warm_up_command(
    policies: Annotated[
        str | None,
        typer.Option("--policies", "-p", help="Policies and agents, separated by commas; default: all there are."),
    ] = None,
) -> None:
    """Compile ahead what the other commands need, once for each installation; it is kept on the disk.

    Without it the first command that needs something compiles it, which takes a minute or two. All policies take some
    ten; stop it at any moment: what is compiled is kept. Where all is compiled, it says so at once.

    For example:
    - **gpusched warm-up**

    - **gpusched warm-up --policies edf,sts-x**
    """
    settings: Any = numba.config
    if settings.DISABLE_JIT:
        typer.echo("nothing to compile: NUMBA_DISABLE_JIT is set")
        return
    steps = steps_of(policies)
    names = [name for name, _ in steps]
    if is_compiled(names):
        typer.echo(f"nothing to do: all is compiled, and kept under {_place()}")
        return
    begin = monotonic()
    with two_processes(names), compiled_kernels() as count, counting("compiling", len(steps)) as bar:
        for name, step in steps:
            bar.say(name)
            step()
            bar.advance()
    note_compiled(names)
    if count():
        typer.echo(
            f"compiled {count()} kernels in {duration_text(monotonic() - begin)}; they are kept under {_place()}"
        )
    else:
        typer.echo(f"nothing to do: all is compiled, and kept under {_place()}")


def steps_of(policies: str | None) -> list[tuple[str, Callable[[], None]]]:
    """Return what to do, each with its name; forecasts and the decision service only where all is compiled."""
    if policies is not None:
        return list(warm_up_steps(list(parse_policies(policies))))
    return [*warm_up_steps(), ("forecasts", _forecasts), ("decision service", _decisions)]


def _forecasts() -> None:
    for name in ("edf", "sts", "atc", "sts-x"):
        policy, instance = make_any_policy(name), tiny_instance()
        state = State(instance, record=False, memory_columns=memory_columns(policy, instance))
        state.advance()
        forecast(state, policy, np.random.default_rng(0), ForecastSettings(samples=2))


def _decisions() -> None:
    instance, decide = tiny_instance(), Decider(PolicyCatalogue.of("edf"), b"warm-up")
    simulate(instance, ServicePolicy("", "edf", instance, post=lambda _, body: decide(body)), record=False)


def _place() -> str:
    kernels: list[Any] = [place, solve]
    return commonpath([kernel.stats.cache_path for kernel in kernels])
