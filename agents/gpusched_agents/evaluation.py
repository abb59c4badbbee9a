"""What evaluating an agent on one seed gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusched_env import Result


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """One finished episode of an agent.

    Attributes:
        result: Costs, completion times and intervals of the run; `result.seed` is the seed of the instance.
        steps: Steps of the episode, one per decision.
        invalid_actions: Actions of the agent that could not be placed, so that the job waited.
        forced: Decisions that were taken from the agent, since it left every job waiting (see `evaluate`). If this is
            not 0, the costs are not the agent's alone: show it beside them.
    """

    result: Result
    steps: int
    invalid_actions: int
    forced: int
