"""The fields of mechanisms in instance files and requests; those of other packages stand by name in `mechanisms`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import checked
from gpusched_env.model.mechanism import Mechanism, model_of
from gpusched_env.parts import is_loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.model import Instance


OWN = {
    "synchronisation": "network",
    "host_memory": "switching",
    "site": "cap",
    "gpu_hour_eur": "rent",
    "prices": "prices",
    "interference": "shares",
    "saved_kw": "saved_power",
}
"""Fields of the mechanisms of this package, each on its own in a document."""
TENANT_FIELDS = ("tenancy", "tenants", "racks", "hosts")
"""The fields of the mechanism `tenants`, likewise."""


def mechanism_fields(instance: Instance) -> dict[str, Any]:
    """Return the field `mechanisms` by its name, or nothing where the instance has none."""
    entries = {own.mechanism: own.fields() for own in instance.mechanisms if "." in own.mechanism}
    return {"mechanisms": entries} if entries else {}


def own_fields(instance: Instance) -> dict[str, Any]:
    """Return the fields of the mechanisms of this package that the instance has."""
    found = {field: instance.find(mechanism) for field, mechanism in OWN.items()}
    tenants = instance.find("tenants")
    document = {} if tenants is None else tenants.fields()
    return document | {field: own.fields() for field, own in found.items() if own is not None}


def mechanisms_of(document: Mapping[str, Any], *, loaded: bool = False) -> tuple[Mechanism, ...]:
    """Read the mechanisms of a document; the packages that it names are imported.

    Args:
        document: The document; without the field there are none.
        loaded: Whether only mechanisms are allowed that this process has imported before.

    Raises:
        InputError: There is no such mechanism, or a field of one is not allowed.
    """
    entries = document.get("mechanisms") or {}
    if not isinstance(entries, dict):
        raise InputError("mechanisms", type(entries).__name__, "a JSON object")
    own = [_made(OWN[field], field, document[field]) for field in OWN if field in document]
    given = {field: document[field] for field in TENANT_FIELDS if field in document}
    tenants = _made("tenants", "", given) if given else None
    own += [] if tenants is None or tenants == type(tenants)() else [tenants]
    return (*own, *(_model(name, entry, loaded=loaded) for name, entry in entries.items()))


def _model(name: str, entry: Any, *, loaded: bool) -> Mechanism:
    if "." not in name or (loaded and not is_loaded(name)):
        raise InputError("mechanisms", name, "a mechanism of a package" + " that is imported here" * loaded)
    return _made(name, f"mechanisms.{name}", entry)


def _made(mechanism: str, where: str, entry: Any) -> Mechanism:
    kind = model_of(mechanism)
    return kind.of_fields(checked(where, entry, kind.schema))
