"""The description of an agent, and its file `agent.json`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from gpusched_agents.spec import ALLOWED, NETWORKS, AgentSpec, NetworkConfig
from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_fields, json_list, value_of, values_of
from gpusched_env.model import checks
from gpusched_env.parsing import parse_json

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ORIGIN = ("made_utc", "command", "python", "platform", "packages", "facts")
"""The fields of `gpusched_env.provenance.provenance`."""
POINT = ("steps", "seconds", "total_eur")
"""The fields of every point of a training curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDescription:
    """An agent without its weights: where it comes from and what it fits.

    Args:
        name: Its name, as tables show it: letters, digits, dots, dashes and underscores, at most 64.
        algorithm: How it was trained.
        spec: What it was trained for.
        config: The settings of its training: values of JSON, without NaN. Those of its network are in `network` (see
            `NetworkConfig`).
        provenance: The result of `gpusched_env.provenance.provenance`: versions, command, and the seeds as facts.
        curve: Its training curve: for every point `steps` (≥ 0), `seconds` (≥ 0), `total_eur`, and any other numbers or
            texts.
        weights_sha256: Hash of the file with the weights, to detect another one; `save_agent` sets it.
        weights_bytes: Size of that file.

    Raises:
        InputError: A value is of the wrong type or out of its range.
    """

    name: str
    algorithm: str
    spec: AgentSpec
    config: Mapping[str, Any]
    provenance: Mapping[str, Any]
    curve: Sequence[Mapping[str, Any]] = ()
    weights_sha256: str = ""
    weights_bytes: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise InputError("name", self.name, "letters, digits, dots, dashes and underscores, at most 64")
        if not isinstance(self.algorithm, str) or not self.algorithm:
            raise InputError("algorithm", self.algorithm, "a text that is not empty")
        for name in ("config", "provenance"):
            object.__setattr__(self, name, _plain(name, getattr(self, name)))
        _check_network(self.config.get("network"), self.spec)
        for name in ORIGIN:
            if name not in self.provenance:
                raise InputError(f"provenance.{name}", None, "a value: gpusched_env.provenance.provenance makes them")
        points = tuple(_point(f"curve[{index}]", point) for index, point in enumerate(self.curve))
        object.__setattr__(self, "curve", points)
        if self.weights_sha256 and not re.fullmatch("[0-9a-f]{64}", self.weights_sha256):
            raise InputError("weights.sha256", self.weights_sha256, "64 hexadecimal digits")
        checks.whole("weights.bytes", self.weights_bytes, 0)

    @property
    def network(self) -> NetworkConfig:
        """Return the settings of its network."""
        return NetworkConfig(**self.config["network"])


def _check_network(entry: Any, spec: AgentSpec) -> None:
    where = "config.network"
    check_fields(where, entry, {field.name for field in fields(NetworkConfig)})
    if entry["kind"] != spec.network:
        raise InputError(f"{where}.kind", entry["kind"], f"{spec.network}, as in its spec")
    try:
        NetworkConfig(**entry)
    except InputError as error:
        raise InputError(f"config.{error.field}", error.value, error.allowed) from error


def _plain(where: str, value: Any) -> dict[str, Any]:
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(where, value, f"values of JSON, without NaN or inf ({error})") from error
    if not isinstance(plain, dict):
        raise InputError(where, value, "an object with named values")
    return plain


def _point(where: str, value: Any) -> dict[str, Any]:
    point = _plain(where, value)
    for name in POINT:
        if name not in point:
            raise InputError(f"{where}.{name}", None, "a value: the field is missing")
    for name, entry in point.items():
        if name in POINT or not isinstance(entry, str):
            value_of(f"{where}.{name}", entry, float)
    checks.whole(f"{where}.steps", point["steps"], 0)
    checks.not_negative(f"{where}.seconds", point["seconds"])
    return point


FORMAT = "gpusched agent"
VERSION = 1

_TEXTS = ("name", "algorithm")
_OBJECTS = ("config", "provenance")
_WEIGHTS = {"sha256": str, "bytes": int}
_KINDS = {"str": str, "int": int}


def description_text(description: AgentDescription) -> str:
    """Return `description` as the text of agent.json; `read_description` returns an equal description."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(description, name) for name in _TEXTS},
        "spec": asdict(description.spec),
        "weights": {"sha256": description.weights_sha256, "bytes": description.weights_bytes},
        **{name: getattr(description, name) for name in _OBJECTS},
        "curve": list(description.curve),
    }
    return json.dumps({**document, "content_sha256": _hash(document)}, indent=1, allow_nan=False) + "\n"


def read_description(text: str) -> AgentDescription:
    """Read the text of agent.json.

    Raises:
        InputError: It is not whole, has another format or version, a field is missing, unknown, of the wrong type or
            out of its range, or its content was changed; the error names the first such field.
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
        document = parse_json(text, _no_constant)
        json.dumps(document, allow_nan=False)  # 1e999 reads as inf
    except InputError:
        raise
    except ValueError as error:
        raise InputError("file", str(error), "a whole JSON file, as save_agent writes it") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError("format", document.get("format") if isinstance(document, dict) else "...", repr(FORMAT))
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InputError("version", version, f"{VERSION}, the version that this release reads")
    return document


def _no_constant(constant: str) -> float:
    raise InputError("file", constant, "finite numbers")


def _spec(entry: Any) -> AgentSpec:
    if isinstance(entry, dict) and entry.get("network", NETWORKS[0]) not in NETWORKS:  # its other fields differ too
        raise InputError("spec.network", entry["network"], ALLOWED)
    kinds = {field.name: str(field.type) for field in fields(AgentSpec)}
    check_fields("spec", entry, set(kinds))
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind.startswith("tuple"):
            values[name] = tuple(values_of(f"spec.{name}", entry[name], str))
        else:
            values[name] = value_of(f"spec.{name}", entry[name], _KINDS[kind])
    try:
        return AgentSpec(**values)
    except InputError as error:
        raise InputError(f"spec.{error.field}", error.value, error.allowed) from error


def _hash(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
