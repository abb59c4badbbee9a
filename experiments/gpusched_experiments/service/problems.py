"""What is wrong with a request, in one form: field, value, and what is allowed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import SHOWN, InputError
from gpusched_env.workload.scenario.settings import dotted
from gpusched_experiments.service.fields import MARK

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

WAYS = "a name, or a JSON object (or list) as the field takes it"
_PHRASES = {
    "bool_type": "true or false",
    "dict_type": "a JSON object",
    "float_type": "a finite number",
    "finite_number": "a finite number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "list_type": "a JSON list",
    "missing": "a value: the field is missing",
    "model_attributes_type": "a JSON object",
    "model_type": "a JSON object",
    "string_type": "a text",
    "tuple_type": "a JSON list",
    "extra_forbidden": "no such field",
    "union_tag_invalid": WAYS,
    "union_tag_not_found": WAYS,
}
_COMPARED = {"greater_than": (">", "gt"), "greater_than_equal": (">=", "ge"), "less_than_equal": ("<=", "le")}


def input_error(error: ValidationError) -> InputError:
    """Translate the first thing that pydantic found into the project's own error."""
    first = error.errors(include_url=False)[0]
    place = tuple(part for part in first["loc"] if part != "[key]" and not str(part).startswith(MARK))
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return InputError(dotted((*place, cause.field)), cause.value, cause.allowed)
    if first["type"] == "json_invalid":
        return InputError("body", first["ctx"]["error"], "one whole JSON object, in UTF-8")
    value = None if first["type"] == "missing" else first["input"]
    return InputError(dotted(place) or "body", value, _allowed(first))


def _allowed(details: ErrorDetails) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in _COMPARED:
        sign, name = _COMPARED[kind]
        return f"a number {sign} {context[name]:g}"
    if kind in {"too_long", "too_short"}:
        bound = f"at most {context['max_length']:,}" if kind == "too_long" else f"at least {context['min_length']}"
        return f"{bound} entries"
    if kind == "string_too_long":
        return f"a text of at most {context['max_length']} characters"
    if kind == "string_too_short":
        return "a text that is not empty"
    if kind == "literal_error":
        return f"one of {context['expected'].replace(' or ', ', ')}"
    return _PHRASES.get(kind, details["msg"])


def body(field: str | None, value: Any, allowed: str) -> bytes:
    """Give the JSON of an error: a line to read, and its parts; a long value is cut."""
    shown = _short(value)
    line = f"{field} = {json.dumps(shown, ensure_ascii=False)}; allowed: {allowed}" if field else allowed
    document = {"error": line, "field": field, "value": shown, "allowed": allowed}
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode()


def _short(value: Any) -> Any:
    """Give a value as JSON can hold it, in a few characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text, value = str(value), str(value)
    return value if len(text) <= SHOWN else f"{text[: SHOWN // 2]}…{text[-(SHOWN // 2 - 1) :]}"
