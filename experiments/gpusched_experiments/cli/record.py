"""`gpusched record`."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from gpusched_env.envs.registration import ENVIRONMENT_ID, track_id
from gpusched_env.envs.source import FIRST_SAMPLED_SEED
from gpusched_env.errors import InputError
from gpusched_env.files import check_new_folder
from gpusched_env.workload import list_tracks, load_scenario, load_track, parse_seeds
from gpusched_experiments.cli import scenario_options as options
from gpusched_experiments.cli import terminal as completion
from gpusched_experiments.cli.progress import counting
from gpusched_experiments.recording.plan import RANDOM, check_minari, recording_of

EPISODES = 10
"""How many are recorded of each policy, unless told otherwise."""


@options.with_options
def record_command(
    *,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder for the datasets, new or empty.")],
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            "-p",
            autocompletion=completion.policies,
            help="Policies that decide job by job, and agents, separated by commas; "
            f"{RANDOM} takes any action that can be placed.",
        ),
    ] = f"sts-x,edf,{RANDOM}",
    scenario: options.ScenarioOption = options.USUAL,
    track: options.TrackOption = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds",
            help="Seeds of the workloads: 1000-1099; default: 1000-1009, or the track's first training seeds.",
        ),
    ] = None,
    given: Annotated[options.ScenarioOptions, ("jobs", "nodes", "settings")],
    flat: Annotated[
        bool, typer.Option("--flat/--dict", help="Observations as one vector, or as a dictionary of four.")
    ] = True,
) -> None:
    """Record episodes of policies as datasets for offline reinforcement learning (extra `minari`).

    Every policy has a dataset of its own, with observations, actions, rewards, terminations, and action masks in the
    infos, one episode for each seed. **MINARI_DATASETS_PATH=DIR** lets Minari find them.

    For example:
    - **gpusched record --policies sts-x,edf,random --track busy --out data**

    - **gpusched record --policies atc --scenario tiny --seeds 1000-1099 --dict --out data**
    """
    check_minari()
    check_new_folder(out)
    names = [name.strip() for name in policies.split(",")]
    if len(set(names)) < len(names):
        raise InputError("--policies", policies, "names of policies separated by commas, each once")
    chosen = [recording_of(name) for name in names]
    place = options.scenario_or_track(scenario, track)
    usual = (
        range(FIRST_SAMPLED_SEED, FIRST_SAMPLED_SEED + EPISODES)
        if track is None
        else load_track(track).seeds("training")
    )
    numbers = usual[:EPISODES] if seeds is None else parse_seeds(seeds, "--seeds")
    values = given.changes([place], "--set")
    keywords: dict[str, object] = {"settings": values} if values else {}
    if track in list_tracks():
        environment = track_id(track, "Flat" if flat else "")
    else:
        environment = ENVIRONMENT_ID
        keywords |= {"scenario": place, "flat": flat}
    record = import_module("gpusched_experiments.recording.dataset").record
    with counting("recording", len(chosen) * len(numbers)) as bar:

        def on_episode(policy: str, seed: int) -> None:
            bar.say(f"{policy}, seed {seed}")
            bar.advance()

        written = record(chosen, numbers, out, environment, keywords, load_scenario(place).name, on_episode)
    for name in written:
        typer.echo(f"wrote {Path(out) / name}")
