"""Jobs on several nodes over another network than the measured one, or with the help of spare machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Synchronisation, iteration_s
from gpusched_env.workload.tables.communication import builtin_communication

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.site import Site
    from gpusched_env.workload.tables.applications import Application
    from gpusched_env.workload.tables.communication import Communication


@dataclass(frozen=True, slots=True)
class Network:
    """The network of a scenario.

    Attributes:
        seconds: Time of an epoch of every application on every configuration over this network [s], (A, C).
        synchronisation: What instances say of the help of spare machines; None without BytePS.
    """

    seconds: NDArray[np.float64]
    synchronisation: Synchronisation | None = None

    @classmethod
    def of(
        cls, scenario: Scenario, applications: tuple[Application, ...], site: Site, seconds: NDArray[np.float64]
    ) -> Network:
        """Put a scenario's network in place of the measured one.

        Args:
            scenario: The scenario.
            applications: Its applications A.
            site: Its cluster, with the configurations C.
            seconds: Times over the measured network [s], (A, C).

        Raises:
            InputError: The scenario asks for a network, but of no application it is known how it synchronises.
        """
        asked = scenario.interconnect
        if asked.measured:
            return cls(seconds)
        known = _known(scenario, applications)
        several = [c for c in site.configurations if c.nodes > 1]
        if not any((a, c.gpu_type) in known for a in range(len(applications)) for c in several):
            field = "backend" if asked.nic_gb_per_s is None else "nic_gb_per_s"
            allowed = "nothing, unless jobs.node_counts offers several nodes to applications in communication.csv"
            raise InputError(f"interconnect.{field}", getattr(asked, field), allowed)
        sync_s = {key: _sync_s(scenario, own) for key, own in known.items()}
        rescaled = _rescaled(seconds, site, known, sync_s)
        if asked.backend == "all-reduce":
            return cls(rescaled)
        shape = (len(site.gpu_types), len(applications))
        compute, sync = np.ones(shape), np.zeros(shape)
        for v, gpu_type in enumerate(site.gpu_types):
            for a in range(len(applications)):
                if (a, gpu_type.name) in known:
                    compute[v, a] = known[a, gpu_type.name].compute_s
                    sync[v, a] = sync_s[a, gpu_type.name]
        return cls(rescaled, Synchronisation(compute, sync, asked.cpu_machines))


def _known(scenario: Scenario, applications: tuple[Application, ...]) -> dict[tuple[int, str], Communication]:
    """Give what the table says, by index of the application and GPU type; it does not know types of one's own."""
    own = {v.name for v in scenario.gpu_types}
    index = {application.name: a for a, application in enumerate(applications)}
    rows = builtin_communication().items()
    return {(index[name], v): row for (name, v), row in rows if name in index and v not in own}


def _sync_s(scenario: Scenario, own: Communication) -> float:
    nic, exposed = scenario.interconnect.nic_gb_per_s, scenario.interconnect.exposed
    return own.sync_s if nic is None else own.sync_on(nic, exposed)


def _rescaled(
    seconds: NDArray[np.float64],
    site: Site,
    known: Mapping[tuple[int, str], Communication],
    sync_s: Mapping[tuple[int, str], float],
) -> NDArray[np.float64]:
    """Give times over another network: the measured ones times what the model says of the change."""
    table = seconds.copy()
    for column, configuration in enumerate(site.configurations):
        n = float(configuration.nodes)
        for a in range(len(table)) if n > 1.0 else ():
            key = (a, configuration.gpu_type)
            if key in known and sync_s[key] != known[key].sync_s:
                own = known[key]
                now_s = iteration_s(own.compute_s, sync_s[key], n, 0.0)
                table[a, column] *= now_s / iteration_s(own.compute_s, own.sync_s, n, 0.0)
    return table
