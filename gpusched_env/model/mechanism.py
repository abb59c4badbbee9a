"""What an instance says of a mechanism that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from gpusched_env.errors import InputError
from gpusched_env.parts import part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

M = TypeVar("M", bound="Mechanism")


class Mechanism:
    """Base of the models of mechanisms, which are frozen dataclasses: `Instance(..., mechanisms=(model,))`.

    Attributes:
        mechanism: The mechanism: a folder of `gpusched_env.mechanisms`, or the name of another package with the same
            modules. Its module `model` has the class as `MODEL`.
        schema: The fields in files, as `formats.json_fields` checks them.
        constants_from: What constants of runs follow from, beside the cluster: nothing, the model, or the jobs too.
        divides_time: Whether jobs divide the time of shared GPUs, and shares may have priorities.
        keeps_state: Whether it keeps in arrays of its own what the next events of a run depend on. Requests and
            checkpoints refuse it; simulations of the future need its module `futures` (`own_state.drawn_future`).
        moves_memory: Whether a share has all memory of its GPUs, since it moves between their jobs.
    """

    __slots__ = ()

    mechanism: ClassVar[str]
    schema: ClassVar[Any]
    constants_from: ClassVar[Literal["nothing", "model", "jobs"]] = "model"
    divides_time: ClassVar[bool] = False
    keeps_state: ClassVar[bool] = False

    @property
    def moves_memory(self) -> bool:
        """Whether a share has all memory of its GPUs."""
        return False

    @property
    def machines(self) -> int:
        """How many of the last nodes are machines, to which the nodes before them are bound; 0: all nodes are."""
        return 0

    @property
    def rent_eur_per_h(self) -> float:
        """Price of a held GPU [€/h], which is billed and planned with."""
        return 0.0

    def open_seconds(self, instance: Any, seconds: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002 - of others
        """Return the seconds per epoch of jobs, (J, C), inf also where the mechanism excludes a configuration.

        It is called before any `check`, with the configurations that nodes cannot hold.

        Raises:
            InputError: The cluster is not one for the mechanism, or it excludes all configurations of a job.
        """
        return seconds

    def check(self, instance: Any) -> None:
        """Check that an `Instance`, which is complete but for this, may use the mechanism.

        Raises:
            InputError: It may not.
        """

    def least_seconds(self, instance: Any, seconds: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: ARG002 - of others
        """Return the least seconds per epoch of jobs, (J, C), where `seconds` are those without the mechanism."""
        return seconds

    def alike(self, types: Sequence[int], configurations: Sequence[int]) -> Self:  # noqa: ARG002 - of others
        """Return the model for GPU types and configurations that are each like one of the present ones, by place."""
        return self

    def planned_saving(self, instance: Any) -> NDArray[np.float64] | None:  # noqa: ARG002 - of others
        """Return what GPUs draw less than busy ones as policies plan, by configuration [kW], (A, C); None: nothing."""
        return None

    def down_times(self) -> Iterable[tuple[int, float, float]]:
        """Return when nodes are down, for charts: the node, from and until when [s]."""
        return ()

    def fields(self) -> Any:
        """Return the fields in files: by default those of the dataclass that are not None, or its only one alone."""
        found = {name: value for name, value in asdict(self).items() if value is not None}  # type: ignore[call-overload]
        return found if isinstance(self.schema, Mapping) else next(iter(found.values()))

    @classmethod
    def of_fields(cls, fields: Any) -> Self:
        """Make it from the fields of a file, which are checked by `schema`."""
        return cls(**fields) if isinstance(cls.schema, Mapping) else cls(fields)  # type: ignore[call-arg]


def in_order(mechanisms: Iterable[Mechanism]) -> tuple[Mechanism, ...]:
    """Return models by the names of their mechanisms.

    Raises:
        InputError: One is no model, or two are of one mechanism.
    """
    given = tuple(mechanisms)
    for i, each in enumerate(given):
        if not isinstance(each, Mechanism):
            raise InputError(f"mechanisms[{i}]", each, "a model of a mechanism")
    made = {each.mechanism: each for each in given}
    if len(made) < len(given):
        raise InputError("mechanisms", [each.mechanism for each in given], "at most one model of each mechanism")
    return tuple(made[name] for name in sorted(made))


def model_of(mechanism: str) -> type[Mechanism]:
    """Return the class of the models of a mechanism.

    Raises:
        InputError: There is no such mechanism.
    """
    found = getattr(part_of(mechanism, "model"), "MODEL", None)
    if not isinstance(found, type) or not issubclass(found, Mechanism):
        raise InputError("mechanisms", mechanism, "a package whose module model has a MODEL")
    return found
