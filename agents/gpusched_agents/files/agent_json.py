"""The text of agent.json: an agent's description, with a hash of its own content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import Any

from gpusched_agents.files.description import AgentDescription
from gpusched_agents.spec import AgentSpec
from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_fields, json_list, value_of, values_of
from gpusched_env.simulator import Asking

FORMAT = "gpusched agent"
VERSION = 1

_TEXTS = ("name", "algorithm")
_OBJECTS = ("config", "provenance")
_WEIGHTS = {"sha256": str, "bytes": int}
_KINDS = {"str": str, "int": int, "float": float}


def description_text(description: AgentDescription) -> str:
    """Write `description` as the text of agent.json; `read_description` gives an equal one."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(description, name) for name in _TEXTS},
        "spec": _flat(description.spec),
        "weights": {"sha256": description.weights_sha256, "bytes": description.weights_bytes},
        **{name: getattr(description, name) for name in _OBJECTS},
        "curve": list(description.curve),
    }
    return json.dumps({**document, "content_sha256": _hash(document)}, indent=1, allow_nan=False) + "\n"


def read_description(text: str) -> AgentDescription:
    """Read the text of agent.json.

    Raises:
        InputError: It is not whole, has another format or version, a field is missing, unknown, of the wrong kind or
            out of its range, or its content is not what was written; names the first such field.
    """
    document = _parse(text)
    check_fields("", document, {"format", "version", *_TEXTS, "spec", "weights", *_OBJECTS, "curve", "content_sha256"})
    check_fields("weights", document["weights"], set(_WEIGHTS))
    weights = {name: value_of(f"weights.{name}", document["weights"][name], kind) for name, kind in _WEIGHTS.items()}
    if not weights["sha256"]:
        raise InputError("weights.sha256", "", "64 hexadecimal digits")
    description = AgentDescription(
        **{name: value_of(name, document[name], str) for name in _TEXTS},
        spec=_spec(document["spec"]),
        **{name: document[name] for name in _OBJECTS},
        curve=json_list("curve", document["curve"]),
        weights_sha256=weights["sha256"],
        weights_bytes=weights["bytes"],
    )
    written = document.pop("content_sha256")
    if written != _hash(document):
        raise InputError("content_sha256", written, f"{_hash(document)}: the file was changed after it was written")
    return description


def _parse(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, parse_constant=_no_constant)
        json.dumps(document, allow_nan=False)  # 1e999 reads as inf
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError("file", str(error), "a whole JSON file, as save_agent writes it") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError("format", document.get("format") if isinstance(document, dict) else "...", repr(FORMAT))
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InputError("version", version, f"{VERSION}, the version that this release reads")
    return document


def _no_constant(constant: str) -> float:
    raise InputError("file", constant, "finite numbers")


def _flat(spec: AgentSpec) -> dict[str, Any]:
    """Give a spec as an object: how its rounds ask stands there setting by setting, before the features."""
    document: dict[str, Any] = {}
    for name, value in asdict(spec).items():
        document |= value if name == "asking" else {name: value}
    return document


def _spec(entry: Any) -> AgentSpec:
    own = {field.name: str(field.type) for field in fields(AgentSpec) if field.name != "asking"}
    asking = {field.name: str(field.type) for field in fields(Asking)}
    kinds = own | asking
    check_fields("spec", entry, set(kinds))
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind.startswith("tuple"):
            values[name] = tuple(values_of(f"spec.{name}", entry[name], str))
        else:  # AgentSpec itself looks at True and False
            values[name] = value_of(f"spec.{name}", entry[name], _KINDS[kind]) if kind in _KINDS else entry[name]
    try:
        return AgentSpec(asking=Asking(**{n: values[n] for n in asking}), **{n: values[n] for n in own})
    except InputError as error:
        raise InputError(f"spec.{error.field}", error.value, error.allowed) from error


def _hash(document: dict[str, Any]) -> str:
    """Hash the content of a document: the same however it is laid out."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
