"""Submitted policies, and a stand-in for the process in which they decide: quick to start, and not locked."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from gpusched_experiments.sandbox.process import Process
from gpusched_experiments.sandbox.serving import Channel, Server
from gpusched_experiments.sandbox.submitted import USUAL, SandboxLimits, Submission

if TYPE_CHECKING:
    from gpusched_env.simulator import View

FIRST_FIT = """
class FirstFit:
    name, preemption = "first-fit", False

    def decide(self, view, rng):
        for job in view.waiting:
            for config in range(len(view.configurations)):
                if view.tau[job, config] < float("inf") and view.place(int(job), config):
                    break

POLICY = FirstFit()
"""


def python_submission(source: str, made_by: str = "POLICY") -> Submission:
    """Make an entry of the content of a Python file."""
    return Submission("mine", "python", {"mine.py": source.encode()}, made_by)


def deciding(body: str, before: str = "") -> str:
    """Write a Python file with a policy whose `decide` is `body`, a line each."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    head = "class Mine:\n    name, preemption = 'mine', False\n    def decide(self, view, rng):"
    return f"{before}\n{head}\n{lines}\nPOLICY = Mine()\n"


class InThread(Process):
    """Answers as the process does, from a thread of this one; an agent is read from the present folder."""

    def __init__(self, submission: Submission, limits: SandboxLimits = USUAL) -> None:
        super().__init__(submission, limits)

    def _start(self) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._channel = Channel(ours_in, ours_out)
        self._theirs = Channel(theirs_in, theirs_out)
        self._thread = threading.Thread(target=Server(self._theirs).serve, args=([],), daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """Do nothing: it ends when nobody asks it."""

    def close(self) -> None:
        """Let the thread find that nobody asks it."""
        if not self._closed:
            self._closed = True
            self._channel.close()
            self._thread.join()
            self._theirs.close()
            self._folder.cleanup()


class OnACopy:
    """Decides on a copy of the board, of which only what jobs hold and when they wake goes back."""

    def __init__(self, policy: object) -> None:
        self.policy = policy
        self.name, self.preemption = policy.name, policy.preemption

    def decide(self, view: View, rng: object) -> None:
        """Decide a round."""
        from copy import deepcopy  # noqa: PLC0415

        from gpusched_env.simulator.placement.held_nodes import most_spread  # noqa: PLC0415
        from gpusched_experiments.sandbox.decisions import (  # noqa: PLC0415
            apply_decisions,
            decisions_of,
            parts_of,
        )

        copy = deepcopy(view)
        self.policy.decide(copy, rng)
        view.memory[:] = copy.memory
        data, spread = b"".join(decisions_of(copy.board, view.active)), int(most_spread(view.board))
        apply_decisions(view.board, *parts_of(data, len(view.active), spread))
