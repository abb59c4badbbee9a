"""From a scenario and a seed to an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.workload.maker import Maker
from gpusched_env.workload.scenario.scenario import Scenario

if TYPE_CHECKING:
    from gpusched_env.model import Instance
    from gpusched_env.workload.interference_model import InterferenceModel
    from gpusched_env.workload.mixture import Classes
    from gpusched_env.workload.traces.trace import Trace


def make_instance(scenario: Scenario, seed: int, interference: InterferenceModel | None = None) -> Instance:
    """Make an instance: a pure function of the scenario (with the content of its trace, if any) and the seed.

    Applications, library, distributions, epochs needed, arrivals, due dates, weights, sharing and the durations of
    traced jobs each draw from their own stream of the seed. Jobs are sorted by submission.

    Args:
        scenario: The scenario.
        seed: Seed, a whole number from 0 to 2^63 - 1.
        interference: The model of GPU sharing; by default the model that the scenario's `sharing` section names.

    Raises:
        InputError: The seed is out of its range, an application or a job fits no configuration of the cluster, no
            application fits a fraction or was measured on several nodes, or the trace is not valid.
    """
    if not isinstance(scenario, Scenario):
        raise InputError("scenario", scenario, "a Scenario; load_scenario(name_or_path) makes one")
    number = checks.seed(seed)
    if scenario.mixture:
        from gpusched_env.workload.mixture import variant_of  # noqa: PLC0415 - few need it

        scenario = variant_of(scenario, number)
    return InstanceMaker(scenario, interference).make(seed)


class InstanceMaker:
    """Makes instances of a scenario, as `make_instance` does; the common parts are computed once.

    Of a mixture it makes those of each of its scenarios.

    Args:
        scenario: The scenario. A trace is read here, and not again.
        interference: The model of GPU sharing; by default the model that the scenario's `sharing` section names.
        trace: The scenario's trace as `replayed_trace` returns it, where that was read before.

    Raises:
        InputError: An application fits no configuration of the cluster, no application fits a fraction or was measured
            on several nodes, or the trace is not valid.
    """

    def __init__(
        self, scenario: Scenario, interference: InterferenceModel | None = None, trace: Trace | None = None
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise InputError("scenario", scenario, "a Scenario; load_scenario(name_or_path) makes one")
        self._makers: tuple[Maker | Classes, ...]
        if scenario.mixture or scenario.job_classes:
            from gpusched_env.workload.mixture import makers_of  # noqa: PLC0415 - few need it

            self._makers = makers_of(scenario, interference)
        else:
            self._makers = (Maker(scenario, interference, trace),)

    @property
    def trace(self) -> Trace | None:
        """Return the trace that is replayed, as `replayed_trace` returns it; of a mixture that of its first part."""
        return self._makers[0].trace

    def make(self, seed: int) -> Instance:
        """Make the instance of `seed`, a whole number from 0 to 2^63 - 1.

        Raises:
            InputError: The seed is out of its range, or a job fits no configuration of the cluster.
        """
        seed = checks.seed(seed)
        return self._makers[seed % len(self._makers)].make(seed)
