"""Whether policies can decide on an instance: a learned one cannot on every one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusched_env.model import Instance
    from gpusched_env.simulator import Policy


@runtime_checkable
class Selective(Protocol):
    """A policy that cannot decide on every instance."""

    def check(self, instance: Instance) -> None:
        """Raise InputError if the policy cannot decide on `instance`."""


def check_fit(policies: Iterable[Policy], instance: Instance) -> None:
    """Check that every policy can decide on `instance`.

    Raises:
        InputError: One cannot; names it.
    """
    for policy in policies:
        if isinstance(policy, Selective):
            try:
                policy.check(instance)
            except InputError as error:
                raise InputError(f"{policy.name}: {error.field}", error.value, error.allowed) from error


def fits(policy: Policy, instance: Instance) -> bool:
    """Say whether `policy` can decide on `instance`."""
    try:
        check_fit([policy], instance)
    except InputError:
        return False
    return True
