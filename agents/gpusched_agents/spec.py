"""The clusters for which an agent was trained, the settings of its network, and the checks of both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, get_args, get_type_hints

from gpusched_baselines.adaptation_env.controls import ROUNDS, SETS, control_names
from gpusched_baselines.adaptation_env.features import GPU_TYPES, JOBS, ROUND
from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, GpuType, checks
from gpusched_env.model.configuration import Kind

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

NETWORKS = ("control-set", "controls")
BY_JOB = (
    "; what decides job by job is trained by Stable-Baselines3 itself, as in examples/train_maskable_ppo.py, "
    "and named sb3:FILE.zip"
)
ALLOWED = " or ".join(NETWORKS) + BY_JOB
"""The networks that agents have, for errors on another one."""
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST = 2**31 - 1
FEATURES = {
    "job_features": JOBS,
    "option_features": control_names(()),
    "cluster_features": GPU_TYPES,
    "queue_features": ROUND,
}
"""The names of the features that networks observe, by the field of the spec."""

Check: TypeAlias = Callable[[str, Any], object]


def choice(names: Sequence[str], allowed: str) -> Check:
    def check(field: str, value: Any) -> None:
        if value not in names:
            raise InputError(field, value, allowed)

    return check


def check_flag(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError(field, value, "True or False")


def _check_part(field: str, value: Any) -> None:
    if checks.not_negative(field, value) > 1.0:
        raise InputError(field, value, "a number from 0 to 1")


def check_at_most(highest: int, field: str, value: Any) -> int:
    if checks.whole(field, value) > highest:
        raise InputError(field, value, f"a whole number from 1 to {highest}")
    return int(value)


Count = Annotated[int, checks.whole]
CountFromZero = Annotated[int, partial(checks.whole, lowest=0)]
Positive = Annotated[float, checks.positive]
Part = Annotated[float, _check_part]


def check_settings(settings: DataclassInstance, section: str = "") -> None:
    """Check every setting by its annotation, where None may pass; errors begin with `section`, such as `agent.`."""
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        kinds, value = (hint, *get_args(hint)), getattr(settings, name)
        if value is None and type(None) in kinds:
            continue
        for check in (check for kind in kinds for check in getattr(kind, "__metadata__", ())):
            check(section + name, value)


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The network, which sets the controls of STS-X.

    Args:
        kind: `control-set` has the same weights for every GPU type (`gpusched_agents.network.type_set`), is what `es`
            trains, and fits any cluster; `controls` is a perceptron, is what `AdaptationConfig` trains, or `es`, and
            fits one number of GPU types.
        hidden: Width of its hidden layers, 1 to 1,024.
        layers: Number of its hidden layers, ≥ 0.
        rounds: Rounds after which it sets the controls again, ≥ 1.
        controls: The set of controls: `round` or `jobs`, as in `GpuAdaptationEnv`.
        job_features: Number of single jobs that `controls` observes, ≥ 0, as there.
        job_codes: Width of the codes of these jobs, which are averaged by attention
            (`gpusched_agents.network.actors.JobSetActor`); 0: none, so that the order of the jobs matters.
        contexts: Number of contexts that `control-set` keeps of its imitation, ≥ 0; far from all of them it sets
            nothing (`gpusched_agents.network.type_set.TypeSetActor`), nor with kinds of configurations that no
            scenario has whose constants were searched. 0: it sets controls everywhere, and refuses other kinds.

    Raises:
        InputError: A value is not allowed.
    """

    kind: Annotated[str, choice(NETWORKS, ALLOWED)] = "control-set"
    hidden: Annotated[int, partial(check_at_most, 1024)] = 64
    layers: CountFromZero = 1
    rounds: Count = ROUNDS
    controls: Annotated[str, choice(SETS, " or ".join(SETS))] = "round"
    job_features: CountFromZero = 0
    job_codes: CountFromZero = 0
    contexts: CountFromZero = 0

    def __post_init__(self) -> None:
        check_settings(self, "network.")
        if self.job_codes and not self.job_features:
            raise InputError("network.job_codes", self.job_codes, "0, without network.job_features")
        if self.kind == "control-set" and self.job_features:
            raise InputError("network.job_features", self.job_features, "0, for control-set")
        if self.contexts and self.kind != "control-set":
            raise InputError("network.contexts", self.contexts, f"0, for {self.kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """The clusters for which an agent was trained; `check` checks whether it can decide on another cluster.

    Args:
        network: `controls` sets the controls of STS-X for as many GPU types as in training; `control-set` sets those
            of any cluster.
        configurations: Names of the configurations at training, in their order.
        gpu_types: Names of the GPU types at training, in their order.
        max_configurations: Most configurations that it may be used with.
        max_gpu_types: Most GPU types that it may be used with; for `controls`, as many as in training.
        kinds: Kinds of configurations in training: `single-node`, `multi-node`, `shared`.
        job_features: Names of the observed features of the active jobs.
        option_features: Names of the controls that are not prices of GPU types.
        cluster_features: Names of the observed features of a GPU type.
        queue_features: Names of the other observed features.

    Raises:
        InputError: A value is of the wrong type or out of its range.
    """

    network: str
    configurations: tuple[str, ...]
    gpu_types: tuple[str, ...]
    max_configurations: int
    max_gpu_types: int
    kinds: tuple[str, ...]
    job_features: tuple[str, ...] = FEATURES["job_features"]
    option_features: tuple[str, ...] = FEATURES["option_features"]
    cluster_features: tuple[str, ...] = FEATURES["cluster_features"]
    queue_features: tuple[str, ...] = FEATURES["queue_features"]

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            raise InputError("network", self.network, ALLOWED)
        for field in ("configurations", "gpu_types", "kinds", *FEATURES):
            object.__setattr__(self, field, _names(field, getattr(self, field)))
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError("kinds", kind, f"one of {', '.join(KINDS)}")
        self._check_most("max_configurations", len(self.configurations))
        self._check_most("max_gpu_types", len(self.gpu_types))

    @classmethod
    def of(
        cls,
        network: str,
        configurations: Sequence[Configuration],
        gpu_types: Sequence[GpuType],
        *,
        max_configurations: int | None = None,
        max_gpu_types: int | None = None,
    ) -> Self:
        """Make the spec of an agent that is trained on these configurations and GPU types.

        Args:
            network: `controls` or `control-set`.
            configurations: Those of training.
            gpu_types: Those of training.
            max_configurations: Most configurations that it may be used with; by default, as many as in training.
            max_gpu_types: Most GPU types that it may be used with; by default, as many as in training.

        Raises:
            InputError: A value is of the wrong type or out of its range.
        """
        met = {configuration.kind for configuration in configurations}
        return cls(
            network=network,
            configurations=tuple(configuration.name for configuration in configurations),
            gpu_types=tuple(gpu_type.name for gpu_type in gpu_types),
            max_configurations=len(configurations) if max_configurations is None else max_configurations,
            max_gpu_types=len(gpu_types) if max_gpu_types is None else max_gpu_types,
            kinds=tuple(kind for kind in KINDS if kind in met),
        )

    def has_kinds(self, configurations: Sequence[Configuration]) -> bool:
        """Return whether the training had all kinds of these configurations."""
        return all(configuration.kind in self.kinds for configuration in configurations)

    def check(
        self, configurations: Sequence[Configuration], gpu_types: Sequence[GpuType], *, other_kinds: bool = False
    ) -> None:
        """Check that the agent can decide on a cluster with these configurations and GPU types.

        Args:
            other_kinds: Whether it may have kinds of configurations that the training did not have.

        Raises:
            InputError: It was trained with another version of the observation, there are more configurations or GPU
                types than it can take (for `controls`: fewer GPU types), or a configuration of a kind that was not in
                its training.
        """
        self.check_features()
        self._check_fit("configurations", len(configurations), self.max_configurations)
        self._check_fit("gpu_types", len(gpu_types), self.max_gpu_types)
        for configuration in configurations:
            if configuration.kind not in self.kinds and not other_kinds:
                allowed = f"{' and '.join(self.kinds)} configurations, the kinds that the agent was trained with"
                raise InputError("instance.configurations", f"{configuration.name} ({configuration.kind})", allowed)

    def check_features(self) -> None:
        """Check that the agent observes the features of this release's environment.

        Raises:
            InputError: It was trained with another version of the observation.
        """
        for field, present in FEATURES.items():
            _check_features(field, getattr(self, field), present)

    def _check_most(self, field: str, trained_with: int) -> None:
        most = _whole(field, getattr(self, field), 1)
        object.__setattr__(self, field, most)
        exactly = self._exactly(field)
        if most < trained_with or (exactly and most != trained_with):
            relation = "exactly" if exactly else "at least"
            raise InputError(field, most, f"{relation} {trained_with}, the number at training")

    def _check_fit(self, field: str, count: int, most: int) -> None:
        exactly = self._exactly(field)
        if count > most or (exactly and count < most):
            allowed = f"{'exactly' if exactly else 'at most'} {most}, which the agent can take"
            raise InputError(f"instance.{field}", f"{count} of them", allowed)

    def _exactly(self, field: str) -> bool:
        return self.network == "controls" and field.endswith("gpu_types")


def _names(field: str, values: Any) -> tuple[str, ...]:
    """Return the names as a tuple: at least one, none empty, each once."""
    listed = tuple(values) if isinstance(values, list | tuple) else ()
    texts = all(isinstance(name, str) and name for name in listed)
    if not listed or not texts or len(set(listed)) != len(listed):
        raise InputError(field, values, "a list of names, at least one, each once")
    return listed


def _whole(field: str, value: int, lowest: int) -> int:
    number = checks.whole(field, value, lowest)
    if number > MOST:
        raise InputError(field, value, f"a whole number <= {MOST}")
    return number


def _check_features(field: str, trained_with: tuple[str, ...], present: tuple[str, ...]) -> None:
    if trained_with == present:
        return
    missing = [name for name in present if name not in trained_with]
    unknown = [name for name in trained_with if name not in present]
    difference = "in another order"
    if missing:
        difference = f"without {missing[0]!r}"
    elif unknown:
        difference = f"with {unknown[0]!r}"
    allowed = "those of this release's observation; the agent was trained with another version: train it again"
    raise InputError(f"agent's {field}", difference, allowed)
