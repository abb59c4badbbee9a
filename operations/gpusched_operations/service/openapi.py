"""The description of the interface: OpenAPI, an example, and a page of our own that needs no network."""

from __future__ import annotations

import html
import json
from typing import Any

from gpusched_operations.service.fields import DecideRequest
from gpusched_operations.service.forecasting import ForecastRequest

EXAMPLE: dict[str, Any] = {
    "policy": "sts-x",
    "now_s": 7200.0,
    "cluster": {
        "gpu_types": ["V100", {"name": "H100", "like": "A100", "speed": 1.9, "gpu_power_w": 700.0}],
        "nodes": [{"name": "v1", "gpu_type": "V100", "gpus": 4}, {"name": "h1", "gpu_type": "H100", "gpus": 2}],
    },
    "prices": {"energy_eur_per_kwh": 0.25, "pue": 1.3},
    "restart_s": 60.0,
    "applications": {
        "our-model": {
            "seconds_per_epoch": {"V100x1": 900.0, "V100x2": 480.0, "V100x4": 260.0, "H100x1": 300.0, "H100x2": 165.0},
            "max_epochs": 60.0,
            "distribution": {"history_epochs": [18.0, 22.0, 25.0, 31.0, 40.0, 60.0]},
        }
    },
    "jobs": [
        {
            "id": "4711",
            "application": "our-model",
            "submission_s": 0.0,
            "due_s": 36000.0,
            "tardiness_weight_eur_per_s": 0.002,
            "epochs_done": 12.0,
            "running": {"configuration": "V100x2", "nodes": ["v1"], "since_s": 60.0},
        },
        {
            "id": "4712",
            "application": "our-model",
            "submission_s": 7200.0,
            "due_s": 18000.0,
            "tardiness_weight_eur_per_s": 0.002,
        },
    ],
}


FORECAST_EXAMPLE: dict[str, Any] = EXAMPLE | {
    "forecast": {
        "samples": 200,
        "arrivals": {"per_hour": 0.5},
        "what_if": [{"name": "one H100 node more", "nodes_more": [{"gpu_type": "H100"}]}],
    }
}


DESCRIPTION = (
    "Who runs where on what: send the cluster, the jobs and the present schedule at every event (a submission, an end, "
    "the time of `ask_again_at_s`), and do what is answered. Nothing is kept between two requests."
)
_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}pre{background:#f4f4f4;padding:1em;"
    "overflow:auto}td,th{text-align:left;vertical-align:top;padding:.2em .8em .2em 0}"
)
_PROBLEM = {
    "type": "object",
    "required": ["error", "field", "value", "allowed"],
    "properties": {
        "error": {"type": "string", "description": "All of it in a line."},
        "field": {"type": ["string", "null"], "description": "The field, such as jobs[3].epochs_done."},
        "value": {"description": "What was given; a long one is cut."},
        "allowed": {"type": "string", "description": "What is allowed there."},
    },
}
_PROBLEMS = {
    "401": "No key of this service.",
    "413": "The request is too large.",
    "422": "A field is not allowed.",
    "500": "The decision failed.",
    "503": "All workers are busy; try again.",
    "504": "The decision took too long and was given up.",
}


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """Add what the door itself does not know: the fields of requests, an example, and errors."""
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, kind, example in (("decide", DecideRequest, EXAMPLE), ("forecast", ForecastRequest, FORECAST_EXAMPLE)):
        models = kind.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= models.pop("$defs") | {kind.__name__: models, "Problem": _PROBLEM}
        post = schema["paths"][f"/v1/{path}"]["post"]
        content = {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}, "example": example}
        post["requestBody"] = {"required": True, "content": {"application/json": content}}
        post["responses"] |= {code: {"description": text, "content": problem} for code, text in _PROBLEMS.items()}
    return schema


def page(schema: dict[str, Any]) -> str:
    """Return the interface as one page of HTML without scripts."""
    rows = [
        f"<li><code>{method.upper()} {html.escape(path)}</code> {html.escape(operation['summary'])}</li>"
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    parts = [
        _table(name, model) for name, model in sorted(schema["components"]["schemas"].items()) if "properties" in model
    ]
    example = html.escape(json.dumps(EXAMPLE, indent=1))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>gpusched</title><style>{_STYLE}</style>"
        f"<h1>gpusched {html.escape(schema['info']['version'])}</h1><p>{html.escape(DESCRIPTION)} "
        f"<a href=openapi.json>openapi.json</a></p><ul>{''.join(rows)}</ul>"
        f"<h2>A request</h2><pre>{example}</pre>{''.join(parts)}</html>"
    )


def _table(name: str, model: dict[str, Any]) -> str:
    required = set(model.get("required", []))
    rows = [
        f"<tr><td><code>{html.escape(field)}</code></td><td>{'required' if field in required else ''}</td>"
        f"<td>{html.escape(str(value.get('description', '')))}</td></tr>"
        for field, value in model["properties"].items()
    ]
    return f"<h2 id={html.escape(name)}>{html.escape(name)}</h2><table>{''.join(rows)}</table>"
