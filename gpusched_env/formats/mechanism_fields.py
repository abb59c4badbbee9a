"""The field `mechanisms` of instance files and requests: the fields of each mechanism of another package, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import checked
from gpusched_env.model.mechanism import Mechanism, model_of
from gpusched_env.parts import is_loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.model import Instance


def mechanism_fields(instance: Instance) -> dict[str, Any]:
    """Return the field by its name, or nothing where the instance has none."""
    entries = {own.mechanism: own.fields() for own in instance.mechanisms if "." in own.mechanism}
    return {"mechanisms": entries} if entries else {}


def mechanisms_of(document: Mapping[str, Any], *, loaded: bool = False) -> tuple[Mechanism, ...]:
    """Read the field of a document; the packages that it names are imported.

    Args:
        document: The document; without the field there are none.
        loaded: Whether only mechanisms are allowed that this process has imported before.

    Raises:
        InputError: There is no such mechanism, or a field of one is not allowed.
    """
    entries = document.get("mechanisms") or {}
    if not isinstance(entries, dict):
        raise InputError("mechanisms", type(entries).__name__, "a JSON object")
    return tuple(_model(name, entry, loaded=loaded) for name, entry in entries.items())


def _model(name: str, entry: Any, *, loaded: bool) -> Mechanism:
    if "." not in name or (loaded and not is_loaded(name)):
        raise InputError("mechanisms", name, "a mechanism of a package" + " that is imported here" * loaded)
    kind = model_of(name)
    return kind.of_fields(checked(f"mechanisms.{name}", entry, kind.schema))
