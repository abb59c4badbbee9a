"""Make an agent of the mean of the weights of training runs: of the agents that they kept, and of those at their ends.

Such a mean is less a matter of chance than any of them (Izmailov et al., 2018). The runs must be adaptation agents',
and the later ones should have begun at an earlier one's agent. `agent:default` was made so: see docs/train.md.

    python scripts/mean_agent.py runs/default runs/first runs/second --name default
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpusched_agents import AgentDescription, load_agent, save_agent
from gpusched_agents.network.adaptation import arrays_of, flat_of
from gpusched_agents.training.checkpoint import Checkpoint
from gpusched_agents.training.run import AGENT, CHECKPOINT
from gpusched_env.provenance import provenance


def main() -> None:
    """Write the agent's folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the agent")
    parser.add_argument("runs", type=Path, nargs="+", help="folders of training runs, in their order")
    parser.add_argument("--name", default="agent", help="name of the agent")
    asked = parser.parse_args()
    weights, descriptions = [], []
    for run in asked.runs:
        description, arrays = load_agent(run / AGENT)
        descriptions.append(description)
        hidden = description.network.hidden
        weights += [flat_of(arrays, hidden), Checkpoint.read(run / CHECKPOINT).get("state")["average"]]
    facts = descriptions[-1].provenance["facts"]
    origin = provenance(**facts, of=[description.provenance["command"] for description in descriptions])
    mean = replace(descriptions[-1], name=asked.name, provenance=origin, curve=joined(descriptions))
    save_agent(asked.out, mean, arrays_of(np.mean(weights, axis=0), hidden))
    print(f"wrote {asked.out}: the mean of {len(weights)}")


def joined(descriptions: list[AgentDescription]) -> list[dict[str, Any]]:
    """Return one curve of all runs, a run after the other."""
    curve: list[dict[str, Any]] = []
    for description in descriptions:
        before = {name: curve[-1][name] if curve else 0 for name in ("steps", "seconds")}
        curve += [{**point, **{name: point[name] + before[name] for name in before}} for point in description.curve]
    return curve


if __name__ == "__main__":
    main()
