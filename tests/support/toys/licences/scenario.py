"""The table `[licences]` of a scenario."""

from numpy.random import Generator

from gpusched_env.model import Instance
from gpusched_env.workload.scenario.settings import MechanismTable, PositiveRange, setting
from toys.licences.model import Licences


class LicenceTable(MechanismTable):
    """Prices of licences."""

    eur_per_h: PositiveRange = setting((1.0, 1.0), "Range from which the price of each application is drawn [€/h].")

    def model(self, instance: Instance, rng: Generator) -> Licences:
        return Licences(tuple(rng.uniform(*self.eur_per_h, len(instance.jobs.applications)).tolist()))


TABLE = LicenceTable
