"""Whether asking a policy leaves the state of a run as it is, to the last bit."""

import numpy as np

from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at


def arrays(state: State) -> dict[str, np.ndarray]:
    """Copy everything but the policy's memory and the rows of the log that say nothing yet."""
    parts = {"board": state.board, "facts": state.board.facts, "hidden": state.hidden}
    values = {f"{part}.{name}": a for part, of in parts.items() for name, a in of.__getstate__().items()}
    values["hidden.log"] = state.hidden.log[: state.board.count[at.LOGGED]]
    return {name: a.copy() for name, a in values.items() if isinstance(a, np.ndarray) and name != "board.memory"}


def assert_unchanged(state: State, before: dict[str, np.ndarray]) -> None:
    """Compare with what `arrays` gave."""
    for name, now in arrays(state).items():
        assert now.tobytes() == before[name].tobytes(), name
