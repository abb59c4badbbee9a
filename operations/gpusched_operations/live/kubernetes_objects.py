"""Objects of Kubernetes as texts, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

from gpusched_env.errors import InputError, MissingExtraError
from gpusched_env.files import unpack
from gpusched_env.parsing import parse_json

Object = Mapping[str, Any]

ANNOTATION = "gpusched"
"""The annotation of a job that stands for a comment: `gpusched: app=NAME epochs=90 checkpoint=yes`."""

_QUANTITY = re.compile(r"(\d{1,12}(?:\.\d{0,12})?)(m|k|[eE]\d)?")
_SCALE = {"m": "0.001", "k": "1000"}
_OF_YAML = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What loading YAML raises beside its own error, such as for an empty `!!int`."""


def objects_of(text: str, field: str) -> list[Object]:
    """Return the objects of a text of YAML documents or JSON, those of lists one by one."""
    try:
        yaml = import_module("yaml")
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyyaml", "cli", "objects of Kubernetes") from error
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = [parse_json(text)] if text.lstrip().startswith("{") else list(yaml.load_all(text, loader))
    except (yaml.YAMLError, *_OF_YAML) as error:
        raise InputError(field, text, f"YAML or JSON ({error})") from None
    found: list[Object] = []
    for document in documents:
        if document is None:
            continue
        listed = document.get("items") if isinstance(document, dict) and "items" in document else [document]
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise InputError(field, text, "objects of Kubernetes, or lists of them")
        found += listed
    return found


def unpacked(data: bytes, field: str) -> Any:
    """Return the JSON of a file that may be packed, as a ZIP archive of one file or by gzip."""
    try:
        return parse_json(unpack(data))
    except ValueError as error:
        raise InputError(
            field, "...", f"JSON, a ZIP archive of one JSON file, or one packed by gzip ({error})"
        ) from None


def at(value: Any, *names: str) -> Any:
    """Return what stands in a value at nested names; None if it is not there."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def mapping_at(value: Any, *names: str) -> Mapping[str, Any]:
    found = at(value, *names)
    return found if isinstance(found, Mapping) else {}


def objects_at(value: Any, *names: str) -> list[Object]:
    found = at(value, *names)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def full_name(thing: Object) -> str:
    return f"{at(thing, 'metadata', 'namespace') or 'default'}/{at(thing, 'metadata', 'name')}"


def whole(field: str, value: Any) -> int:
    """Return a count, a whole number from 0 on; None counts as 0."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31):
        raise InputError(field, value, "a whole number from 0 on")
    return value or 0


def quantity(field: str, value: Any) -> int:
    """Return a count as Kubernetes writes quantities: 2, "2", "2k" or "2000m"; None counts as 0.

    Raises:
        InputError: It is no whole number from 0 on.
    """
    found = _QUANTITY.fullmatch(str(0 if value is None else value))
    scale = (found and found[2]) or ""
    number = Decimal(found[1]) * Decimal(_SCALE.get(scale, f"1{scale}")) if found else Decimal(-1)
    if isinstance(value, bool) or not 0 <= number < 2**31 or number != int(number):
        raise InputError(field, value, "a whole number from 0 on")
    return int(number)


@contextmanager
def as_written(field: str) -> Iterator[None]:
    """Turn what objects of another form raise into one error."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise InputError(field, "a field of another form", "objects as Kubernetes writes them") from error


def unix_time(value: Any) -> float | None:
    if isinstance(value, str) and value:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InputError("time", value, "a time such as 2026-11-26T08:00:00Z") from None
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def condition(thing: Object, kind: str) -> Object:
    return next((each for each in objects_at(thing, "status", "conditions") if each.get("type") == kind), {})


def holds_true(thing: Object, kind: str) -> bool:
    return condition(thing, kind).get("status") in ("True", True)
