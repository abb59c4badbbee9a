"""What an instance says of licences."""

from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.model import Instance, Mechanism, checks


@dataclass(frozen=True, slots=True)
class Licences(Mechanism):
    """Price of a licence [€/h], ≥ 0, for each application of the instance."""

    mechanism = "toys.licences"
    schema = {"eur_per_h": [float]}  # noqa: RUF012 - never changed

    eur_per_h: tuple[float, ...]

    def __post_init__(self) -> None:
        prices = (checks.not_negative(f"licences.eur_per_h[{i}]", price) for i, price in enumerate(self.eur_per_h))
        object.__setattr__(self, "eur_per_h", tuple(prices))

    def check(self, instance: Instance) -> None:
        wanted = len(instance.jobs.applications)
        if len(self.eur_per_h) != wanted:
            raise InputError("licences.eur_per_h", list(self.eur_per_h), f"{wanted} prices, one for each application")


MODEL = Licences
